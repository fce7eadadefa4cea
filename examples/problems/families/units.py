"""Unit conversion through the convert_units tool, called in every way that Python allows."""

from fractions import Fraction

from problem import Problem, rounded, step

KM_PER_MILE = Fraction("1.609344")
GRAMS_PER_OUNCE = Fraction("28.349523125")
GRAMS_PER_POUND = Fraction("453.59237")


def road_trip(rng, number):
    legs = [(rng.randint(20, 400), rng.choice(["mi", "km"])) for _ in range(3)]
    legs.append((rng.randint(20, 400), "mi"))
    exact = sum(n * (KM_PER_MILE if unit == "mi" else 1) for n, unit in legs)
    call = 'convert_units(length, unit, to_unit="km")' if number == 0 else \
        'convert_units(length, unit, "km")'
    return Problem(
        "A road trip has legs of " + ", ".join(f"{n} {unit}" for n, unit in legs) + ". How long is "
        "it in kilometres, rounded to 2 decimals? Use the convert_units tool.",
        rounded(exact, 2),
        [
            step("I convert each leg that is not in km yet and add up.", f"""
                legs = $legs
                kilometres = []
                for length, unit in legs:
                    kilometres.append(length if unit == "km" else {call})
                print(kilometres)
                """, legs=legs),
            step("All legs are in km now.", "final_answer(round(sum(kilometres), 2))"),
        ],
        mistakes={"tool_error": step("I convert every leg at once.", """
                legs = $legs
                kilometres = [convert_units(length, unit, "kg") for length, unit in legs]
                print(kilometres)
                """, legs=legs)},
    )


def recipe(rng, number):
    parts = {"flour": (rng.randint(2, 9), "lb"), "butter": (rng.randint(5, 30), "oz"),
             "sugar": (rng.randint(3, 25), "oz"), "raisins": (rng.randint(50, 400), "g")}
    servings, guests = rng.randint(6, 12), rng.randint(20, 60)
    grams = {"lb": GRAMS_PER_POUND, "oz": GRAMS_PER_OUNCE, "g": Fraction(1)}
    exact = sum(n * grams[unit] for n, unit in parts.values()) * guests / servings
    call = 'convert_units(amount, from_unit=unit, to_unit="g")' if number == 0 else \
        'convert_units(value=amount, from_unit=unit, to_unit="g")'
    listing = ", ".join(f"{n} {unit} {name}" for name, (n, unit) in parts.items())
    return Problem(
        f"A recipe for {servings} people takes {listing}. How many grams of ingredients are "
        f"needed in total for {guests} people, rounded to 1 decimal? Use the convert_units tool.",
        rounded(exact, 1),
        [
            step("Everything in grams first.", f"""
                parts = $parts
                grams = {{}}
                for name, (amount, unit) in parts.items():
                    grams[name] = {call}
                print(grams)
                """, parts=parts),
            step("Then scale from $servings to $guests people.", """
                total = sum(grams.values()) * $guests / $servings
                final_answer(round(total, 1))
                """, servings=servings, guests=guests),
        ],
        mistakes={"tool_error": step("I convert all ingredients to grams.", """
                parts = $parts
                grams = {}
                for name, (amount, unit) in parts.items():
                    grams[name] = convert_units(amount=amount, source=unit, target="g")
                print(grams)
                """, parts=parts)},
    )


LOOP = """
readings = $readings
celsius = []
for reading in readings:
    celsius.append({call})
print(celsius)
"""

THREADS = """
from concurrent.futures import ThreadPoolExecutor
readings = $readings

def to_celsius(reading):
    return convert_units(value=reading, from_unit="F", to_unit="C")

with ThreadPoolExecutor(max_workers=4) as pool:
    celsius = list(pool.map(to_celsius, readings))
print(celsius)
"""


def weather(rng, number):
    readings = [rng.randint(-10, 105) for _ in range(rng.randint(5, 8))]
    exact = sum(Fraction(5 * (r - 32), 9) for r in readings) / len(readings)
    call = 'convert_units(reading, to_unit="C", from_unit="F")' if number == 0 else \
        'convert_units(value=reading, from_unit="F", to_unit="C")'
    thought, code = "I convert the readings one by one.", LOOP.format(call=call)
    if number == 1:
        thought, code = "The calls are independent, so I make them from a few threads.", THREADS
    return Problem(
        "A weather station measured " + ", ".join(map(str, readings)) + " degrees Fahrenheit. What "
        "is the mean in degrees Celsius, rounded to 2 decimals? Use the convert_units tool.",
        rounded(exact, 2),
        [
            step(thought, code, readings=readings),
            step("One value per reading, all in a sensible range. Now the mean.", """
                assert len(celsius) == len(readings)
                final_answer(round(sum(celsius) / len(celsius), 2))
                """),
        ],
        difficulty="medium",
        mistakes={"tool_error": step("I convert the readings.", """
                readings = $readings
                print([convert_units(value=reading, from_unit="F") for reading in readings])
                """, readings=readings)},
    )


UNIT_CONVERSION = [road_trip, recipe, weather]
