"""CSV and JSON tables that stand as files in the work directory."""

import json
from collections import defaultdict
from fractions import Fraction

from problem import PLACES, Problem, csv_text, rounded, step

REGIONS = ["north", "south", "east", "west"]
PRODUCTS = ["Zoë's soap", "bolts, M6", "café beans", "cable 2 m", "paper A4", "paint, white"]


def region_revenue(rng, number):
    rows = [(1000 + i, rng.choice(REGIONS), rng.randint(1, 20),
             f"{rng.randint(150, 4999) / 100:.2f}") for i in range(rng.randint(18, 40))]
    region = rng.choice(sorted({r[1] for r in rows}))
    exact = sum(q * Fraction(p) for _, r, q, p in rows if r == region)
    return Problem(
        f"The file orders.csv of the {PLACES[number]} office has the columns order_id, region, "
        "quantity and unit_price (euros). What is the total revenue (quantity x unit_price) of "
        f"the region {region}, rounded to 2 decimals?",
        rounded(exact, 2),
        [
            step("I read the table first and look at one row.", """
                import csv
                with open("orders.csv", newline="") as source:
                    rows = list(csv.DictReader(source))
                print(len(rows), "rows, e.g.", rows[0])
                """),
            step("All fields are text, so numbers need converting.", """
                revenue = 0.0
                for row in rows:
                    if row["region"] == $region:
                        revenue += int(row["quantity"]) * float(row["unit_price"])
                final_answer(round(revenue, 2))
                """, region=repr(region)),
        ],
        files={"orders.csv": csv_text("order_id,region,quantity,unit_price", rows)},
        mistakes={"value_error": step("I read the table and turn the numbers into integers.", """
                import csv
                with open("orders.csv", newline="") as source:
                    rows = list(csv.DictReader(source))
                print(sum(int(row["quantity"]) * int(row["unit_price"]) for row in rows))
                """)},
    )


def best_category(rng, number):
    kinds = ["garden", "kitchen", "office", "sport", "toys"]
    rows = [(f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}", rng.choice(kinds),
             rng.randint(5, 400)) for _ in range(rng.randint(25, 50))]
    sums = defaultdict(int)
    for _, kind, amount in rows:
        sums[kind] += amount
    return Problem(
        f"The file sales.csv of the {PLACES[number]} shop has the columns day, category and "
        "amount (whole euros). What is the total amount of the category with the highest total?",
        max(sums.values()),
        [
            step("I group the amounts by category.", """
                import csv
                from collections import defaultdict
                totals = defaultdict(int)
                with open("sales.csv", newline="") as source:
                    for row in csv.DictReader(source):
                        totals[row["category"]] += int(row["amount"])
                for category, total in sorted(totals.items(), key=lambda pair: -pair[1]):
                    print(category, total)
                """),
            step("The first line of the list is the best category.",
                 "final_answer(max(totals.values()))"),
        ],
        files={"sales.csv": csv_text("day,category,amount", rows)},
        mistakes={"type_error": step("I group the amounts by category.", """
                import csv
                totals = {}
                with open("sales.csv", newline="") as source:
                    for row in csv.DictReader(source):
                        totals[row["category"]] = totals.get(row["category"], 0) + row["amount"]
                print(totals)
                """)},
    )


def join_two_tables(rng, number):
    products = [(f"P{i + 1}", name, rng.randint(100, 2500)) for i, name in enumerate(PRODUCTS)]
    sales = [(rng.randint(1, 28), rng.choice(products)[0], rng.randint(1, 9))
             for _ in range(rng.randint(20, 35))]
    price = {p: cents for p, _, cents in products}
    last = rng.randint(9, 20)
    return Problem(
        "products.csv has the columns product_id, name and price_cents; sales.csv, which comes "
        f"from the {PLACES[number]} store, has day, product_id and pieces. What is the total "
        f"value in cents of all sales up to and including day {last}?",
        sum(price[p] * n for day, p, n in sales if day <= last),
        [
            step("Product names may hold commas, so I use the csv module for both files.", """
                import csv

                def read_table(name):
                    with open(name, newline="", encoding="utf-8") as source:
                        return list(csv.DictReader(source))

                prices = {row["product_id"]: int(row["price_cents"])
                          for row in read_table("products.csv")}
                sales = read_table("sales.csv")
                print(prices)
                print(len(sales), "sales")
                """),
            step("Join by product and filter by day.", """
                value = 0
                for sale in sales:
                    if int(sale["day"]) <= $last:
                        value += prices[sale["product_id"]] * int(sale["pieces"])
                final_answer(value)
                """, last=last),
        ],
        difficulty="medium",
        files={"products.csv": csv_text("product_id,name,price_cents", products),
               "sales.csv": csv_text("day,product_id,pieces", sales)},
        slip=step("Join by product and filter by day.",
                  """
                value = 0
                for sale in sales:
                    if sale["day"] <= "$last":
                        value += prices[sale["product_id"]] * int(sale["pieces"])
                final_answer(value)
                """, last=last),
        mistakes={"value_error": step("I split the lines at commas.", """
                prices = {}
                with open("products.csv", encoding="utf-8") as source:
                    next(source)
                    for line in source:
                        product, name, cents = line.split(",")
                        prices[product] = int(cents)
                print(prices)
                """)},
    )


def low_stock(rng, number):
    goods = ["bolt", "nut", "washer", "hinge", "screw", "bracket"]
    data = {"warehouses": [
        {"city": city, "items": [{"name": g, "stock": rng.randint(0, 90)}
                                 for g in rng.sample(goods, rng.randint(3, 6))]}
        for city in rng.sample(PLACES, 4)]}
    level = rng.randint(25, 60)
    return Problem(
        f"stock.json of company {number + 1} holds an object with a list 'warehouses'; each has a "
        f"'city' and 'items' with 'name' and 'stock'. Items with a stock below {level} are filled "
        f"up to {level}. How many pieces must be ordered over all warehouses?",
        sum(max(level - i["stock"], 0) for w in data["warehouses"] for i in w["items"]),
        [
            step("I load the file and look at its shape.", """
                import json
                with open("stock.json", encoding="utf-8") as source:
                    data = json.load(source)
                for warehouse in data["warehouses"]:
                    print(warehouse["city"], len(warehouse["items"]), "items")
                """),
            step("Now the gaps up to the level.", """
                order = 0
                for warehouse in data["warehouses"]:
                    for item in warehouse["items"]:
                        order += max($level - item["stock"], 0)
                final_answer(order)
                """, level=level),
        ],
        files={"stock.json": json.dumps(data, ensure_ascii=False, indent=1) + "\n"},
    )


def active_users(rng, number):
    users = ["ada", "bo", "cy", "dee", "eli", "fay", "gus"]
    events = [{"user": rng.choice(users), "type": rng.choice(["view", "view", "buy"]),
               "cents": rng.randint(100, 9000)} for _ in range(rng.randint(25, 45))]
    for e in events:
        if e["type"] == "view":
            del e["cents"]
    spent = defaultdict(int)
    for e in events:
        spent[e["user"]] += e.get("cents", 0)
    limit = sorted(spent.values())[len(spent) // 2]
    return Problem(
        f"events.jsonl, site {PLACES[number]}, has one JSON object per line with 'user' and "
        "'type'; events of type 'buy' also have 'cents'. How many users have spent at least "
        f"{limit} cents in total?",
        sum(s >= limit for s in spent.values()),
        [
            step("One object per line; only purchases count.", """
                import json
                spent = {}
                with open("events.jsonl") as lines:
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "buy":
                            user = event["user"]
                            spent[user] = spent.get(user, 0) + event["cents"]
                print(spent)
                """),
            step("Count those at or above the limit.", """
                final_answer(sum(1 for cents in spent.values() if cents >= $limit))
                """, limit=limit),
        ],
        difficulty="medium",
        files={"events.jsonl": "".join(json.dumps(e) + "\n" for e in events)},
    )


def tree(rng, depth):
    node = {"name": f"d{rng.randint(100, 999)}", "files": [], "folders": []}
    for _ in range(rng.randint(1, 4)):
        node["files"].append({"name": f"f{rng.randint(10, 99)}.{rng.choice(['log', 'txt', 'png'])}",
                              "bytes": rng.randint(1, 5000)})
    if depth:
        node["folders"] = [tree(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    return node


def folder_bytes(rng, number):
    root = tree(rng, 3)

    def total(node):
        own = sum(f["bytes"] for f in node["files"] if f["name"].endswith(".log"))
        return own + sum(total(child) for child in node["folders"])

    return Problem(
        f"tree.json describes a folder of the server in {PLACES[number]}: an object with 'name', "
        "'files' (each with 'name' and 'bytes') and 'folders' (of the same shape). How many bytes "
        "do all .log files have together?",
        total(root),
        [
            step("The shape is recursive, so is my function.", """
                import json
                with open("tree.json") as source:
                    root = json.load(source)

                def log_bytes(folder):
                    own = sum(entry["bytes"] for entry in folder["files"]
                              if entry["name"].endswith(".log"))
                    return own + sum(log_bytes(child) for child in folder["folders"])

                print(root["name"], len(root["folders"]), "folders at the top")
                final_answer(log_bytes(root))
                """),
        ],
        difficulty="medium",
        files={"tree.json": json.dumps(root) + "\n"},
    )


CSV_TABLES = [region_revenue, best_category, join_two_tables]
JSON_TABLES = [low_stock, active_users, folder_bytes]
