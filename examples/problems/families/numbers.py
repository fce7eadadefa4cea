"""Number theory, matrices, and probability by enumeration."""

import itertools
import math
from fractions import Fraction

from problem import Problem, rounded, step


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def prime_sum(rng, number):
    low = rng.randint(100, 4000)
    high = low + rng.randint(60, 500)
    values = dict(low=low, high=high)
    return Problem(
        f"What is the sum of all prime numbers from {low} to {high}, both included?",
        sum(n for n in range(low, high + 1) if is_prime(n)),
        [
            step("Trial division up to the square root is enough here.", """
                import math

                def is_prime(n):
                    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))

                found = [n for n in range($low, $high + 1) if is_prime(n)]
                print(len(found), "primes:", found[:3], "...", found[-3:])
                """, **values),
            step("The ends look prime. Sum them.", "final_answer(sum(found))"),
        ],
        difficulty="medium",
        mistakes={"timeout": step("I search upwards for primes and stop past the end.", """
                found = []
                candidate = $low
                while True:
                    pass
                print(sum(found))
                """, **values)},
        endless=[step("I look at a small piece first: the primes below $end, to be sure of the "
                      "method.", """
                piece = [n for n in range(2, $end) if all(n % d for d in range(2, n))]
                print(len(piece), "primes, the last is", piece[-1])
                """, end=20 + 7 * k) for k in range(24)],
    )


def bells(rng, number):
    gaps = rng.sample([4, 6, 9, 10, 12, 14, 15, 18, 20, 21, 25, 28], 3)
    start = rng.randint(0, 59)
    return Problem(
        f"Three bells ring together at minute {start}; after that they ring every {gaps[0]}, "
        f"{gaps[1]} and {gaps[2]} minutes. At which minute do all three ring together the next "
        "time (counted on from minute 0, beyond 60 if need be)?",
        start + math.lcm(*gaps),
        [
            step("They meet again after the least common multiple of the three gaps.", """
                import math
                gaps = $gaps
                together = math.lcm(*gaps)
                print("every", together, "minutes")
                assert all(together % gap == 0 for gap in gaps)
                final_answer($start + together)
                """, gaps=gaps, start=start),
        ],
    )


def digit_sum(rng, number):
    base, power = rng.randint(3, 29), rng.randint(40, 180)
    values = dict(base=base, power=power)
    return Problem(
        f"What is the sum of the decimal digits of {base} to the power of {power}?",
        sum(map(int, str(base**power))),
        [
            step("Python's integers are exact, so I can take the digits from the text.", """
                digits = str($base ** $power)
                print(len(digits), "digits")
                total = sum(int(digit) for digit in digits)
                """, **values),
            step("Check: a number and its digit sum agree modulo 9.", """
                assert total % 9 == pow($base, $power, 9)
                final_answer(total)
                """, **values),
        ],
        mistakes={"value_error": step("I print the power and add its digits.", """
                digits = str(float($base) ** $power)
                print(digits)
                print(sum(int(digit) for digit in digits))
                """, **values)},
    )


def determinant(rng, number):
    m = [[rng.randint(-9, 9) for _ in range(3)] for _ in range(3)]
    (a, b, c), (d, e, f), (g, h, i) = m
    return Problem(
        f"What is the determinant of the matrix {m}?",
        a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g),
        [
            step("Expansion along the first row, as a recursive function.", """
                matrix = $matrix

                def determinant(rows):
                    if len(rows) == 1:
                        return rows[0][0]
                    total = 0
                    for column, entry in enumerate(rows[0]):
                        minor = [row[:column] + row[column + 1:] for row in rows[1:]]
                        total += (-1) ** column * entry * determinant(minor)
                    return total

                value = determinant(matrix)
                print(value)
                """, matrix=m),
            step("A matrix and its transpose have the same determinant.", """
                transposed = [list(column) for column in zip(*matrix)]
                assert determinant(transposed) == value
                final_answer(value)
                """),
        ],
    )


def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]


def power_trace(rng, number):
    m = [[rng.randint(0, 4) for _ in range(3)] for _ in range(3)]
    power = rng.randint(3, 7)
    result = m
    for _ in range(power - 1):
        result = multiply(result, m)
    return Problem(
        f"Let A be the matrix {m}. What is the trace (the sum of the main diagonal) of A to the "
        f"power of {power}?",
        sum(result[i][i] for i in range(3)),
        [
            step("A plain multiplication, applied repeatedly.", """
                matrix = $matrix

                def multiply(left, right):
                    columns = list(zip(*right))
                    return [[sum(x * y for x, y in zip(row, column)) for column in columns]
                            for row in left]

                product = matrix
                for _ in range($power - 1):
                    product = multiply(product, matrix)
                print(product)
                """, matrix=m, power=power),
            step("Now the diagonal.",
                 "final_answer(sum(product[i][i] for i in range(len(product))))"),
        ],
        difficulty="medium",
    )


def cheapest_path(rng, number):
    size = rng.randint(4, 6)
    grid = [[rng.randint(1, 9) for _ in range(size)] for _ in range(size)]
    best = {}
    for r, c in itertools.product(range(size), repeat=2):
        before = [best[p] for p in ((r - 1, c), (r, c - 1)) if p in best]
        best[r, c] = grid[r][c] + min(before, default=0)
    return Problem(
        f"In the grid {grid} you walk from the top left to the bottom right cell, only to the "
        "right or down, and pay the number in each cell you stand on, first and last included. "
        "What is the least total you can pay?",
        best[size - 1, size - 1],
        [
            step("Dynamic programming: the best way to a cell comes from above or from the "
                 "left.", """
                grid = $grid
                size = len(grid)
                best = {}
                for row in range(size):
                    for column in range(size):
                        ways = [best[place] for place in ((row - 1, column), (row, column - 1))
                                if place in best]
                        best[row, column] = grid[row][column] + min(ways, default=0)
                print([best[size - 1, column] for column in range(size)])
                """, grid=grid),
            step("The corner holds the answer.", "final_answer(best[size - 1, size - 1])"),
        ],
        difficulty="hard",
    )


def dice(rng, number):
    count = rng.randint(2, 4)
    goal = rng.randint(count * 3, count * 5)
    rolls = list(itertools.product(range(1, 7), repeat=count))
    exact = Fraction(sum(sum(r) >= goal for r in rolls), len(rolls))
    values = dict(count=count, goal=goal)
    return Problem(
        f"{count} fair dice are rolled. What is the probability that their sum is at least "
        f"{goal}, as a decimal number rounded to 4 decimals?",
        rounded(exact, 4),
        [
            step("All outcomes are equally likely, so I enumerate them.", """
                import itertools
                rolls = list(itertools.product(range(1, 7), repeat=$count))
                good = [roll for roll in rolls if sum(roll) >= $goal]
                print(len(good), "of", len(rolls))
                """, **values),
            step("Good over possible.", "final_answer(round(len(good) / len(rolls), 4))"),
        ],
    )


def urn(rng, number):
    red, blue, drawn = rng.randint(3, 7), rng.randint(3, 7), rng.randint(3, 4)
    want = rng.randint(1, min(red, drawn))
    exact = Fraction(math.comb(red, want) * math.comb(blue, drawn - want),
                     math.comb(red + blue, drawn))
    values = dict(red=red, blue=blue, drawn=drawn, want=want)
    return Problem(
        f"An urn holds {red} red and {blue} blue balls. {drawn} are drawn at once. What is the "
        f"probability that exactly {want} of them are red, as a decimal number rounded to 4 "
        "decimals?",
        rounded(exact, 4),
        [
            step("I number the balls and enumerate all draws.", """
                import itertools
                balls = ["red"] * $red + ["blue"] * $blue
                draws = list(itertools.combinations(range(len(balls)), $drawn))
                hits = sum(1 for draw in draws
                           if sum(balls[ball] == "red" for ball in draw) == $want)
                print(hits, "of", len(draws))
                """, **values),
            step("Each draw is equally likely.", "final_answer(round(hits / len(draws), 4))"),
        ],
        difficulty="medium",
    )


def apart(rng, number):
    people = [6, 8, 9, 10, 12][number]
    first, second = rng.sample(["Ada", "Bob", "Cem", "Dora"], 2)
    gap = rng.randint(1, 2)
    places = list(itertools.permutations(range(people), 2))
    exact = Fraction(sum(abs(a - b) > gap for a, b in places), len(places))
    between = "not next to each other" if gap == 1 else "with at least two people between them"
    values = dict(people=people, gap=gap)
    return Problem(
        f"{people} people, {first} and {second} among them, stand in a row in random order. What "
        f"is the probability that {first} and {second} stand {between}, as a decimal number "
        "rounded to 4 decimals?",
        rounded(exact, 4),
        [
            step("Only the places of the two matter, so pairs of places are enough.", """
                import itertools
                places = list(itertools.permutations(range($people), 2))
                good = [pair for pair in places if abs(pair[0] - pair[1]) > $gap]
                print(len(good), "of", len(places))
                """, **values),
            step("Every pair of places is equally likely.",
                 "final_answer(round(len(good) / len(places), 4))"),
        ],
        difficulty="hard",
        mistakes={"memory": step("I reserve a table with every order of the row, then count.", """
                import itertools, math
                table = bytearray($people * math.factorial($people))
                for at, row in enumerate(itertools.permutations(range($people))):
                    table[$people * at:$people * (at + 1)] = bytes(row)
                print(len(table), "bytes")
                """, **values)} if people == 12 else {},
    )


NUMBER_THEORY = [prime_sum, bells, digit_sum]
MATRIX = [determinant, power_trace, cheapest_path]
PROBABILITY = [dice, urn, apart]
