"""Work rates and motion."""

from fractions import Fraction

from problem import Problem, rounded, step


def pipes(rng, number):
    fill_a, fill_b = rng.randint(20, 60), rng.randint(30, 90)
    drain = rng.randint(100, 240)
    exact = 1 / (Fraction(1, fill_a) + Fraction(1, fill_b) - Fraction(1, drain))
    values = dict(a=fill_a, b=fill_b, drain=drain)
    return Problem(
        f"One pipe fills a tank in {fill_a} minutes, a second one in {fill_b} minutes; an open "
        f"drain empties the full tank in {drain} minutes. With both pipes and the drain open, in "
        "how many minutes is the empty tank full, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("Rates add: tanks per minute of each pipe, minus that of the drain.", """
                from fractions import Fraction
                rate = Fraction(1, $a) + Fraction(1, $b) - Fraction(1, $drain)
                minutes = 1 / rate
                print(rate, "tanks per minute;", float(minutes), "minutes")
                """, **values),
            step("The result lies below the faster pipe's time plus the drain's loss: fine.",
                 "final_answer(round(float(minutes), 2))"),
        ],
        slip=step("Both pipes together, that is the tank's time.",
                  "final_answer(round(1 / (1 / $a + 1 / $b), 2))", **values),
    )


def crew_leaves(rng, number):
    crew, days = rng.randint(6, 20), rng.randint(12, 40)
    leave, after = rng.randint(1, crew - 3), rng.randint(3, days - 4)
    exact = after + Fraction(crew * days - crew * after, crew - leave)
    values = dict(crew=crew, days=days, leave=leave, after=after)
    return Problem(
        f"A crew of {crew} would finish a wall in {days} days. After {after} days {leave} of them "
        "leave; all work at the same pace. How many days does the wall take in total, rounded to 2 "
        "decimals?",
        rounded(exact, 2),
        [
            step("I count in person-days.", """
                work = $crew * $days
                done = $crew * $after
                rest = work - done
                print("person-days:", work, "done:", done, "rest:", rest)
                """, **values),
            step("The rest is shared by those who stay.", """
                total_days = $after + rest / ($crew - $leave)
                final_answer(round(total_days, 2))
                """, **values),
        ],
    )


def printers(rng, number):
    speeds = {name: rng.randint(8, 45) for name in "ABC"}
    broken = rng.choice("ABC")
    speeds[broken] = 0
    pages = rng.randint(300, 2500)
    exact = Fraction(pages, sum(speeds.values()))
    listing = ", ".join(f"{n} prints {s} pages a minute" for n, s in speeds.items() if s)
    return Problem(
        f"An office has three printers: {listing}, and {broken} is broken and prints nothing. How "
        f"many minutes do they need together for {pages} pages, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("The speeds add up; a broken printer adds zero.", """
                speeds = $speeds
                together = sum(speeds.values())
                minutes = $pages / together
                print(together, "pages a minute")
                final_answer(round(minutes, 2))
                """, speeds=speeds, pages=pages),
        ],
        mistakes={"zero_division": step("Minutes per page of each printer, then their harmonic "
                  "sum.", """
                speeds = $speeds
                per_page = {name: 1 / speed for name, speed in speeds.items()}
                print(per_page)
                print($pages / sum(1 / t for t in per_page.values()))
                """, speeds=speeds, pages=pages)},
    )


def trains_meet(rng, number):
    gap, one, two, lead = (rng.randint(150, 700), rng.randint(60, 140), rng.randint(60, 160),
                           rng.randint(5, 55))
    exact = lead + (gap - Fraction(one * lead, 60)) * 60 / (one + two)
    values = dict(gap=gap, one=one, two=two, lead=lead)
    return Problem(
        f"Two stations lie {gap} km apart. A train leaves the first at {one} km/h; {lead} minutes "
        f"later another leaves the second towards it at {two} km/h. How many minutes after the "
        "first train's departure do they meet, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("First the head start of train one, then the closing speed.", """
                head_start = $one * $lead / 60
                closing = $one + $two
                print("head start", head_start, "km, closing at", closing, "km/h")
                minutes = $lead + ($gap - head_start) / closing * 60
                """, **values),
            step("Check: the distances of both at that time must add up to the gap.", """
                first = $one * minutes / 60
                second = $two * (minutes - $lead) / 60
                assert abs(first + second - $gap) < 1e-6
                final_answer(round(minutes, 2))
                """, **values),
        ],
        difficulty="medium",
    )


def average_speed(rng, number):
    legs = [(rng.randint(20, 180), rng.randint(40, 120)) for _ in range(rng.randint(3, 5))]
    stop = rng.randint(10, 40)
    hours = sum(Fraction(d, v) for d, v in legs) + Fraction(stop, 60)
    exact = sum(d for d, _ in legs) / hours
    listing = ", then ".join(f"{d} km at {v} km/h" for d, v in legs)
    return Problem(
        f"A van drives {listing}, and rests {stop} minutes on the way. What is its average speed "
        "over the whole time, rest included, in km/h, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("Average speed is total distance over total time, not the mean of speeds.", """
                legs = $legs
                distance = sum(km for km, speed in legs)
                hours = sum(km / speed for km, speed in legs) + $stop / 60
                print(distance, "km in", hours, "h")
                """, legs=legs, stop=stop),
            step("Both totals look right.", "final_answer(round(distance / hours, 2))"),
        ],
        mistakes={"zero_division": step("I add up distance and time leg by leg, with a running "
                  "mean.", """
                legs = $legs
                distance, hours = 0, 0
                for km, speed in legs:
                    print("so far", distance / hours, "km/h")
                    distance += km
                    hours += km / speed
                """, legs=legs)},
        slip=step("The average of the speeds is what is asked.",
                  "final_answer(round(sum(speed for km, speed in legs) / len(legs), 2))"),
    )


def laps(rng, number):
    track, fast, slow = rng.choice([300, 400, 500]), rng.randint(50, 65), rng.randint(32, 46)
    length = rng.randint(20, 60)
    exact_laps = (fast - slow) * 6 * length // track
    values = dict(track=track, fast=fast * 6, slow=slow * 6, length=length)
    last_minute_matters = (fast - slow) * 6 * (length - 1) // track != exact_laps
    return Problem(
        f"Two runners start together on a {track} m track, one at {fast * 6} m per minute, the "
        f"other at {slow * 6} m per minute. How many times has the faster one overtaken the "
        f"slower one after {length} minutes (level at that very moment counts)?",
        exact_laps,
        [
            step("Each overtaking needs a lead of one more full lap.", """
                lead = ($fast - $slow) * $length
                overtaken = lead // $track
                print("lead in metres:", lead)
                final_answer(overtaken)
                """, **values),
        ],
        mistakes={"assertion": step("I walk through the minutes and count the laps of lead.", """
                overtaken = 0
                for minute in range($length):
                    overtaken = ($fast - $slow) * minute // $track
                lead = ($fast - $slow) * $length
                assert overtaken * $track <= lead < (overtaken + 1) * $track, (overtaken, lead)
                print(overtaken)
                """, **values)} if last_minute_matters else {},
    )


WORK_RATES = [pipes, crew_leaves, printers]
MOTION = [trains_meet, average_speed, laps]
