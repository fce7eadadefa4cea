"""Calendar arithmetic and schedules."""

from datetime import date, timedelta

from problem import PLACES, Problem, step

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def some_day(rng, first=1990, last=2030):
    return date(rng.randint(first, last), 1, 1) + timedelta(days=rng.randint(0, 364))


def clock(minutes):
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def days_between(rng, number):
    start = some_day(rng)
    end = start + timedelta(days=rng.randint(40, 2500))
    values = dict(start=repr(start.isoformat()), end=repr(end.isoformat()))
    return Problem(
        f"A project ran from {start.isoformat()} to {end.isoformat()}, both days included. How "
        "many days did it last?",
        (end - start).days + 1,
        [
            step("Dates subtract to a number of days; both ends count, so one more.", """
                from datetime import date
                start = date.fromisoformat($start)
                end = date.fromisoformat($end)
                days = (end - start).days + 1
                print(start.strftime("%A"), end.strftime("%A"), days)
                """, **values),
            step("The weekdays fit the remainder of the count by seven.", """
                assert (start.weekday() + days - 1) % 7 == end.weekday()
                final_answer(days)
                """),
        ],
        slip=step("The difference of the two dates is the answer.",
                  "final_answer((end - start).days)"),
        mistakes={"type_error": step("I subtract the two dates.", """
                start = $start
                end = $end
                print(end - start)
                """, **values)},
    )


def count_weekdays(rng, number):
    start = some_day(rng)
    end = start + timedelta(days=rng.randint(60, 900))
    weekday = rng.randint(0, 6)
    days = [start + timedelta(days=i) for i in range((end - start).days + 1)]
    values = dict(start=f"date({start.year}, {start.month}, {start.day})",
                  end=f"date({end.year}, {end.month}, {end.day})", weekday=weekday)
    return Problem(
        f"How many {WEEKDAYS[weekday]}s are there from {start.isoformat()} to {end.isoformat()}, "
        "both days included?",
        sum(d.weekday() == weekday for d in days),
        [
            step("I go through all days and count those with weekday() == $weekday "
                 "(Monday is 0).", """
                from datetime import date, timedelta
                start, end = $start, $end
                days = [start + timedelta(days=i) for i in range((end - start).days + 1)]
                assert days[0] == start and days[-1] == end
                hits = [d for d in days if d.weekday() == $weekday]
                print(len(days), "days, first hit", hits[0], "last hit", hits[-1])
                """, **values),
            step("First and last hit lie inside the range.", "final_answer(len(hits))"),
        ],
        mistakes={"assertion": step("I list the days and count the right ones.", """
                from datetime import date, timedelta
                start, end = $start, $end
                days = [start + timedelta(days=i) for i in range((end - start).days)]
                assert days[-1] == end, f"the list ends at {days[-1]}"
                print(sum(d.weekday() == $weekday for d in days))
                """, **values)},
    )


def business_day(rng, number):
    start, count = some_day(rng), rng.randint(15, 160)
    holidays = sorted({start + timedelta(days=rng.randint(2, 150)) for _ in range(4)})
    day, left = start, count
    while left:
        day += timedelta(days=1)
        left -= day.weekday() < 5 and day not in holidays
    names = ", ".join(h.isoformat() for h in holidays)
    return Problem(
        f"An invoice of {start.isoformat()} is due {count} business days later. Saturdays, Sundays "
        f"and the holidays {names} are no business days. Give the due date as a number YYYYMMDD.",
        int(day.strftime("%Y%m%d")),
        [
            step("I step day by day and count only business days.", """
                from datetime import date, timedelta
                holidays = {date.fromisoformat(text) for text in $holidays}
                day = date.fromisoformat($start)
                left = $count
                while left > 0:
                    day += timedelta(days=1)
                    if day.weekday() < 5 and day not in holidays:
                        left -= 1
                print(day, day.strftime("%A"))
                """, holidays=[h.isoformat() for h in holidays], start=repr(start.isoformat()),
                 count=count),
            step("A working day, as it must be. Now as a number.",
                 'final_answer(int(day.strftime("%Y%m%d")))'),
        ],
        difficulty="medium",
    )


def meetings(rng, count):
    result = []
    for _ in range(count):
        begin = rng.randint(32, 64) * 15
        result.append((clock(begin), clock(begin + rng.randint(2, 9) * 15)))
    return result


def minutes(text):
    return int(text[:2]) * 60 + int(text[3:])


def rooms_needed(rng, number):
    plan = meetings(rng, rng.randint(8, 14))
    points = [minutes(b) for b, _ in plan]
    most = max(sum(minutes(b) <= p < minutes(e) for b, e in plan) for p in points)
    listing = ", ".join(f"{b}-{e}" for b, e in plan)
    return Problem(
        f"These meetings are planned for one day: {listing}. A meeting that ends frees its room "
        "for one that begins at that minute. How many rooms are needed at least?",
        most,
        [
            step("I turn the times into begin and end events and sweep over them.", """
                plan = $plan
                events = []
                for begin, end in plan:
                    events.append((begin, 1))
                    events.append((end, -1))
                events.sort()
                print(events[:6])
                """, plan=plan),
            step("At equal times -1 sorts before +1, so an ending meeting frees its room "
                 "first.", """
                rooms = most = 0
                for moment, change in events:
                    rooms += change
                    most = max(most, rooms)
                final_answer(most)
                """),
        ],
        difficulty="medium",
    )


def busy_minutes(rng, number):
    plan = meetings(rng, rng.randint(6, 11))
    busy = {m for b, e in plan for m in range(minutes(b), minutes(e))}
    rows = "\n".join(f"{b} {e}" for b, e in plan) + "\n"
    return Problem(
        f"The file calendar.txt of the {PLACES[number]} office holds one meeting per line as "
        "begin and end (HH:MM HH:MM); meetings may overlap. During how many minutes of the day is "
        "at least one meeting going on?",
        len(busy),
        [
            step("I read the meetings and sort them by begin.", """
                def to_minutes(text):
                    hours, rest = text.split(":")
                    return int(hours) * 60 + int(rest)

                spans = []
                with open("calendar.txt") as lines:
                    for line in lines:
                        begin, end = line.split()
                        spans.append((to_minutes(begin), to_minutes(end)))
                spans.sort()
                print(spans)
                """),
            step("Now I merge overlapping spans and add their lengths.", """
                total, reach = 0, 0
                for begin, end in spans:
                    if end > reach:
                        total += end - max(begin, reach)
                        reach = end
                final_answer(total)
                """),
        ],
        difficulty="medium",
        files={"calendar.txt": rows},
        slip=step("I add up the lengths of the meetings.",
                  "final_answer(sum(end - begin for begin, end in spans))"),
        mistakes={"value_error": step("I read the meetings as pairs of numbers.", """
                spans = []
                with open("calendar.txt") as lines:
                    for line in lines:
                        begin, end = line.split()
                        spans.append((int(begin), int(end)))
                print(spans)
                """)},
    )


def night_train(rng, number):
    leave, ride = rng.randint(17 * 60, 23 * 60 + 59), rng.randint(190, 700)
    wait = rng.randint(12, 75)
    second = rng.randint(45, 300)
    arrive = (leave + ride + wait + second) % 1440
    connect, there = clock((leave + ride + wait) % 1440), clock(arrive)
    values = dict(leave=repr(clock(leave)), arrive=repr(clock((leave + ride) % 1440)),
                  connect=repr(connect), there=repr(there))
    return Problem(
        f"A night train leaves at {clock(leave)} and arrives at {clock((leave + ride) % 1440)}; "
        f"the connection leaves at {connect} and arrives at {there}. Every ride and the wait take "
        "less than 24 hours. How many minutes does the whole trip take?",
        ride + wait + second,
        [
            step("Times of day wrap at midnight, so each leg is a difference modulo 1440 "
                 "minutes.", """
                def to_minutes(text):
                    hours, rest = text.split(":")
                    return int(hours) * 60 + int(rest)

                stops = [$leave, $arrive, $connect, $there]
                legs = []
                for earlier, later in zip(stops, stops[1:]):
                    legs.append((to_minutes(later) - to_minutes(earlier)) % 1440)
                print("ride, wait, ride:", legs)
                """, **values),
            step("Three positive legs; the trip is their sum.", "final_answer(sum(legs))"),
        ],
        mistakes={"type_error": step("The legs are the differences of neighbouring times.", """
                stops = [$leave, $arrive, $connect, $there]
                legs = [later - earlier for earlier, later in zip(stops, stops[1:])]
                print(legs)
                """, **values)},
    )


CALENDAR = [days_between, count_weekdays, business_day]
SCHEDULES = [rooms_needed, busy_minutes, night_train]
