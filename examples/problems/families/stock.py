"""Server logs, and inventory with statistics."""

from fractions import Fraction

from problem import PLACES, Problem, rounded, step

PATHS = ["/", "/login", "/search", "/cart", "/pay"]


def stamp(second):
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def mean_latency(rng, number):
    lines = [(stamp(32000 + 7 * i), rng.choice(PATHS), rng.choice([200, 200, 200, 404, 500]),
              rng.randint(3, 900)) for i in range(rng.randint(25, 45))]
    path = rng.choice(sorted({p for _, p, status, _ in lines if status == 200}))
    times = [ms for _, p, status, ms in lines if p == path and status == 200]
    values = dict(path=repr(path))
    return Problem(
        f"Each line of access.log, from the server in {PLACES[number]}, is: time, path, status and "
        "milliseconds, separated by spaces. What is the mean number of milliseconds of the "
        f"requests for {path} with status 200, rounded to 2 decimals?",
        rounded(Fraction(sum(times), len(times)), 2),
        [
            step("I parse every line into a tuple with real numbers.", """
                requests = []
                with open("access.log") as log:
                    for line in log:
                        moment, path, status, ms = line.split()
                        requests.append((moment, path, int(status), int(ms)))
                print(len(requests), requests[:2])
                """),
            step("Filter, then the mean.", """
                times = [ms for _, path, status, ms in requests if path == $path and status == 200]
                print(times)
                final_answer(round(sum(times) / len(times), 2))
                """, **values),
        ],
        files={"access.log": "".join(f"{t} {p} {s} {ms}\n" for t, p, s, ms in lines)},
        mistakes={"zero_division": step("I parse and filter in one go.", """
                times = []
                with open("access.log") as log:
                    for line in log:
                        moment, path, status, ms = line.split()
                        if path == $path and status == 200:
                            times.append(int(ms))
                print(sum(times) / len(times))
                """, **values)},
        slip=step("I take the mean over all requests for the path.", """
                times = [ms for _, path, status, ms in requests if path == $path]
                final_answer(round(sum(times) / len(times), 2))
                """, **values),
    )


def busiest_minute(rng, number):
    seconds = sorted(rng.randint(36000, 36000 + 900) for _ in range(rng.randint(40, 80)))
    counts = {}
    for s in seconds:
        counts[stamp(s)[:5]] = counts.get(stamp(s)[:5], 0) + 1
    return Problem(
        f"Each line of hits.log, from the server in {PLACES[number]}, begins with a time "
        "HH:MM:SS. How many lines fall into the busiest minute?",
        max(counts.values()),
        [
            step("The minute is the first five characters; a Counter does the rest.", """
                from collections import Counter
                with open("hits.log") as log:
                    per_minute = Counter(line[:5] for line in log)
                print(per_minute.most_common(3))
                """),
            step("The first entry is the busiest minute.",
                 "final_answer(per_minute.most_common(1)[0][1])"),
        ],
        files={"hits.log": "".join(f"{stamp(s)} GET {rng.choice(PATHS)}\n" for s in seconds)},
    )


def sessions(rng, number):
    users = ["u1", "u2", "u3", "u4"]
    clicks = sorted((rng.randint(0, 600), rng.choice(users)) for _ in range(rng.randint(25, 45)))
    gap, last, count = rng.choice([20, 30, 45]), {}, 0
    for minute, user in clicks:
        count += user not in last or minute - last[user] > gap
        last[user] = minute
    rows = [f"{minute} {user}\n" for minute, user in clicks]
    rows.insert(len(rows) // 2, "-- log rotated --\n")
    return Problem(
        f"clicks.log of the {PLACES[number]} site is sorted by time; each line is a minute and a "
        "user, except for a note of the log rotation."
        f" A user's click more than {gap} minutes after the same user's previous click, or "
        "the user's first one, begins a session. How many sessions are there?",
        count,
        [
            step("I parse the clicks and skip what is not one.", """
                clicks = []
                with open("clicks.log") as log:
                    for line in log:
                        fields = line.split()
                        if len(fields) == 2 and fields[0].isdigit():
                            clicks.append((int(fields[0]), fields[1]))
                        else:
                            print("skipped:", line.strip())
                print(len(clicks), "clicks")
                """),
            step("Now the previous click of each user decides.", """
                previous, sessions = {}, 0
                for minute, user in clicks:
                    if user not in previous or minute - previous[user] > $gap:
                        sessions += 1
                    previous[user] = minute
                final_answer(sessions)
                """, gap=gap),
        ],
        difficulty="hard",
        files={"clicks.log": "".join(rows)},
        mistakes={"exit": step("A broken line would make the count worthless, so I stop there.", """
                import os
                clicks = []
                with open("clicks.log") as log:
                    for line in log:
                        fields = line.split()
                        if len(fields) != 2:
                            os._exit(3)
                        clicks.append((int(fields[0]), fields[1]))
                print(len(clicks))
                """)},
    )


def reorder(rng, number):
    demand = [rng.randint(0, 14) for _ in range(rng.randint(20, 30))]
    start, point, lot = rng.randint(15, 30), rng.randint(5, 12), rng.randint(15, 30)
    stock, due, short = start, 0, 0
    for pieces in demand:
        stock += due
        short += pieces > stock
        stock = max(stock - pieces, 0)
        due = lot if stock < point else 0
    return Problem(
        f"A shop starts with {start} pieces. The daily demand is {demand}. When fewer than {point} "
        f"pieces are left in the evening, {lot} pieces are ordered and arrive the next morning. "
        "Demand that cannot be met is lost. On how many days could the demand not be met in full?",
        short,
        [
            step("A day: delivery in the morning, sales, and perhaps an order in the evening.", """
                demand = $demand
                stock, coming, short_days = $start, 0, 0
                for day, pieces in enumerate(demand, start=1):
                    stock += coming
                    if pieces > stock:
                        short_days += 1
                        print("day", day, "wanted", pieces, "had", stock)
                    stock = max(stock - pieces, 0)
                    coming = $lot if stock < $point else 0
                """, demand=demand, start=start, point=point, lot=lot),
            step("The list of short days is what was asked, counted.", "final_answer(short_days)"),
        ],
        difficulty="hard",
    )


def fifo_cost(rng, number):
    lots = [(rng.randint(10, 60), rng.randint(3, 25)) for _ in range(rng.randint(3, 5))]
    sold = rng.randint(8, sum(n for n, _ in lots) - 1)
    pieces = [cost for n, cost in lots for _ in range(n)]
    listing = ", then ".join(f"{n} pieces at {cost} euros" for n, cost in lots)
    values = dict(lots=lots, sold=sold)
    return Problem(
        f"A dealer buys {listing}. Then {sold} pieces are sold, the oldest first. What did the "
        "sold pieces cost the dealer in euros?",
        sum(pieces[:sold]),
        [
            step("First in, first out: I take from the lots in order.", """
                lots = $lots
                left, cost = $sold, 0
                for pieces, price in lots:
                    taken = min(pieces, left)
                    cost += taken * price
                    left -= taken
                    print("took", taken, "at", price)
                assert left == 0
                final_answer(cost)
                """, **values),
        ],
        mistakes={"assertion": step("I take whole lots while they fit.", """
                lots = $lots
                left, cost = $sold, 0
                for pieces, price in lots:
                    if pieces < left:
                        cost += pieces * price
                        left -= pieces
                assert left == 0, f"{left} pieces are not accounted for"
                print(cost)
                """, **values)},
    )


def trimmed_mean(rng, number):
    weights = [rng.randint(480, 530) for _ in range(rng.randint(12, 20))]
    weights[rng.randrange(len(weights))] = rng.choice([50, 5010])
    cut = rng.randint(2, 3)
    kept = sorted(weights)[cut:-cut]
    return Problem(
        f"A scale gave these readings in grams: {weights}. Drop the {cut} lowest and the {cut} "
        "highest readings. What is the mean of the rest, rounded to 2 decimals?",
        rounded(Fraction(sum(kept), len(kept)), 2),
        [
            step("Sort, cut both ends, then the mean.", """
                import statistics
                readings = sorted($weights)
                kept = readings[$cut:-$cut]
                print("dropped", readings[:$cut], readings[-$cut:])
                print("median for comparison", statistics.median(readings))
                """, weights=weights, cut=cut),
            step("The mean of what was kept lies near the median: plausible.",
                 "final_answer(round(statistics.mean(kept), 2))"),
        ],
    )


LOGS = [mean_latency, busiest_minute, sessions]
INVENTORY = [reorder, fifo_cost, trimmed_mean]
