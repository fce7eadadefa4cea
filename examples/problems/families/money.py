"""Discounts and compound interest."""

from fractions import Fraction

from problem import Problem, rounded, step

GOODS = ["coat", "lamp", "bicycle", "kettle", "tent", "guitar", "desk", "camera", "rucksack"]


def sequential_discounts(rng, number):
    item, price = rng.choice(GOODS), rng.randint(40, 900)
    first, second, tax = rng.randint(5, 40), rng.randint(5, 25), rng.choice([5, 7, 9, 19, 21])
    values = dict(price=price, first=first, second=second, tax=tax)
    exact = price * Fraction(100 - first, 100) * Fraction(100 - second, 100)
    exact *= Fraction(100 + tax, 100)
    return Problem(
        f"A {item} costs {price} euros. The shop takes {first} % off, then a further {second} % "
        f"off the reduced price, and then adds {tax} % sales tax. What is the final price in "
        "euros, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("The second discount applies to the price after the first one, so I multiply the "
                 "factors one after the other and look at each stage.", """
                price = $price
                after_first = price * (1 - $first / 100)
                after_second = after_first * (1 - $second / 100)
                with_tax = after_second * (1 + $tax / 100)
                print("after first:", after_first)
                print("after second:", after_second)
                print("with tax:", with_tax)
                """, **values),
            step("The stages go down, down, then up, as they should. I answer with the last one, "
                 "rounded to cents.", "final_answer(round(with_tax, 2))"),
        ],
        slip=step("The discounts are $first % and $second %, together that much off, plus tax.", """
                total_off = $first + $second
                final_answer(round(price * (1 - total_off / 100) * (1 + $tax / 100), 2))
                """, **values),
    )


def three_for_two(rng, number):
    names = rng.sample(["soap", "tea", "rice", "pasta", "honey", "coffee", "oats", "jam"], 4)
    basket = {n: (rng.randint(1, 11), rng.randint(120, 990) / 100) for n in names}
    listing = ", ".join(f"{q} x {n} at {p:.2f} euros" for n, (q, p) in basket.items())
    exact = sum((q - q // 3) * Fraction(round(p * 100), 100) for q, p in basket.values())
    return Problem(
        f"A shop sells every product as 'three for the price of two'. A customer buys {listing}. "
        "How much does the customer pay in euros, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("For each product every third piece is free: of q pieces, q - q // 3 are "
                 "paid.", """
                basket = $basket
                total = 0
                for name, (quantity, price) in basket.items():
                    paid = quantity - quantity // 3
                    print(name, quantity, "->", paid, "paid")
                    total += paid * price
                print("total", total)
                """, basket=basket),
            step("The paid counts look right. Rounding removes the binary noise.",
                 "final_answer(round(total, 2))"),
        ],
        mistakes={"type_error": step("I keep the prices as written and sum the products.", """
                basket = $basket
                total = 0
                for name, entry in basket.items():
                    total += entry * 2 / 3
                print(total)
                """, basket=basket)},
    )


def bulk_tiers(rng, number):
    pieces, price = rng.randint(25, 90), rng.randint(15, 60)
    low, high = rng.randint(5, 12), rng.randint(15, 30)
    first, second = min(pieces, 10), min(max(pieces - 10, 0), 20)
    third = pieces - first - second
    exact = Fraction(price * (100 * first + (100 - low) * second + (100 - high) * third), 100)
    values = dict(pieces=pieces, price=price, low=low, high=high)
    return Problem(
        f"A part costs {price} euros. The first 10 pieces of an order are at full price, pieces "
        f"11 to 30 at {low} % off, and all further pieces at {high} % off. What does an order of "
        f"{pieces} pieces cost in euros, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("I write the price of the k-th piece as a function and add up.", """
                def piece_price(k):
                    if k <= 10:
                        return $price
                    if k <= 30:
                        return $price * (1 - $low / 100)
                    return $price * (1 - $high / 100)

                cost = sum(piece_price(k) for k in range(1, $pieces + 1))
                final_answer(round(cost, 2))
                """, **values),
        ],
        mistakes={"assertion": step("I list the price of each piece and check the count.", """
                prices = []
                for k in range(1, $pieces):
                    factor = 1 if k <= 10 else 1 - $low / 100 if k <= 30 else 1 - $high / 100
                    prices.append($price * factor)
                assert len(prices) == $pieces, f"{len(prices)} prices for $pieces pieces"
                print(sum(prices))
                """, **values)},
    )


def monthly_compounding(rng, number):
    start, rate, years = rng.randint(5, 90) * 100, rng.randint(10, 80) / 10, rng.randint(2, 15)
    exact = start * (1 + Fraction(str(rate)) / 1200) ** (12 * years)
    values = dict(start=start, rate=rate, years=years)
    return Problem(
        f"{start} euros are put into an account with a nominal interest rate of {rate} % a year, "
        f"compounded monthly. How many euros are in the account after {years} years, rounded to 2 "
        "decimals?",
        rounded(exact, 2),
        [
            step("Monthly compounding: one twelfth of the rate, twelve times a year.", """
                monthly = $rate / 100 / 12
                months = 12 * $years
                balance = $start * (1 + monthly) ** months
                print(months, "months ->", balance)
                """, **values),
            step("That is plausible against simple interest. I give the rounded balance.",
                 "final_answer(round(balance, 2))"),
        ],
        slip=step("After $years years at $rate % the interest is rate times years.",
                  "final_answer(round($start * (1 + $rate / 100 * $years), 2))", **values),
    )


def years_to_grow(rng, number):
    start, rate = rng.randint(10, 60) * 100, rng.randint(20, 90) / 10
    goal = start * rng.randint(15, 40) // 10
    balance, years = Fraction(start), 0
    while balance < goal:
        balance, years = balance * (1 + Fraction(str(rate)) / 100), years + 1
    values = dict(start=start, rate=rate, goal=goal)
    return Problem(
        f"{start} euros earn {rate} % interest a year, added at the end of each year. After how "
        f"many whole years are there at least {goal} euros for the first time?",
        years,
        [
            step("A loop year by year is exact enough and easy to check.", """
                balance, years = $start, 0
                while balance < $goal:
                    balance *= 1 + $rate / 100
                    years += 1
                before = balance / (1 + $rate / 100)
                print(years, before, balance)
                """, **values),
            step("The year before was below the goal and this one reaches it.", """
                assert before < $goal <= balance
                final_answer(years)
                """, **values),
        ],
        difficulty="medium",
        mistakes={
            "assertion": step("The logarithm gives the number of years.", """
                import math
                years = int(math.log($goal / $start) / math.log(1 + $rate / 100))
                reached = $start * (1 + $rate / 100) ** years
                assert reached >= $goal, f"after {years} years there are only {reached:.2f}"
                print(years)
                """, **values),
            "timeout": step("I count the years until the goal is reached.", """
                balance, years = $start, 0
                while balance < $goal:
                    years += 1
                print(years)
                """, **values),
        },
    )


def loan_payments(rng, number):
    debt, rate = rng.randint(20, 120) * 100, rng.randint(24, 96) / 10
    payment = debt // rng.randint(12, 40) // 10 * 10
    left, count = Fraction(debt), 0
    while left > 0:
        left, count = left * (1 + Fraction(str(rate)) / 1200) - payment, count + 1
    values = dict(debt=debt, rate=rate, payment=payment)
    return Problem(
        f"A loan of {debt} euros is charged {rate} % a year, one twelfth of it at the end of each "
        f"month on what is still owed; then {payment} euros are paid back. The last payment may be "
        "smaller. How many payments are made in total?",
        count,
        [
            step("I simulate month by month: interest first, then the payment.", """
                owed, payments = $debt, 0
                monthly = $rate / 1200
                while owed > 0:
                    owed = owed * (1 + monthly) - $payment
                    payments += 1
                    if payments % 12 == 0:
                        print("year", payments // 12, "owed", round(max(owed, 0), 2))
                print("payments", payments)
                """, **values),
            step("The debt falls every year and ends below zero after the last payment.",
                 "final_answer(payments)"),
        ],
        difficulty="medium",
        mistakes={"type_error": step("I build the list of what is owed after each month.", """
                owed = [$debt]
                while owed[-1] > 0:
                    owed.append(owed * (1 + $rate / 1200) - $payment)
                print(len(owed) - 1)
                """, **values)},
    )


DISCOUNTS = [sequential_discounts, three_for_two, bulk_tiers]
COMPOUND_INTEREST = [monthly_compounding, years_to_grow, loan_payments]
