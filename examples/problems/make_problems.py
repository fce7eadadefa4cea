#!/usr/bin/env python3
"""Writes problems.jsonl (240 word problems), problems.mock.json (what the mock/ model says to each)
and problems.expected.json (how an evaluation must then end). Same seed, same bytes.

  make_problems.py            write the three files next to this script
  make_problems.py --check    also play every conversation, and compare the files on disk
"""

import argparse
import json
import math
import os
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import complaints  # noqa: E402
from families import FAMILIES  # noqa: E402
from problem import Redraw  # noqa: E402
from script import REPLIES_WITHOUT_END, Conversation, cast, rules  # noqa: E402

SEED = "troupe problems 1"
PER_FAMILY = 15
LATENCY = {"median_ms": 40, "sigma": 0.5, "cap_ms": 2000}


def draw(template, rng, number, taken: set[str]):
    """A problem whose text is new: the mock model tells problems apart by their text."""
    for _ in range(100):
        try:
            problem = template(rng, number)
        except Redraw:
            continue
        if problem.text not in taken:
            taken.add(problem.text)
            return problem
    raise SystemExit(f"{template.__name__}: a hundred draws gave nothing new; vary its text more")


def make_conversations() -> list[Conversation]:
    result, taken = [], set()
    for family, templates in FAMILIES.items():
        for i in range(PER_FAMILY):
            rng = random.Random(f"{SEED}/{family}/{i}")
            problem = draw(templates[i % len(templates)], rng, i // len(templates), taken)
            result.append(Conversation(f"{family}-{i + 1:02d}", family, problem))
    cast(result, SEED)
    return result


def sample(c: Conversation) -> dict:
    line = {"id": c.id, "input": c.problem.text, "target": c.problem.target,
            "metadata": {"family": c.family, "difficulty": c.problem.difficulty}}
    if c.problem.files:
        line["files"] = c.problem.files
    return line


def mock_script(conversations: list[Conversation]) -> dict:
    return {
        "latency": LATENCY,
        "conversations": [{"task": c.problem.text, "replies": [r.text for r in c.replies]}
                          for c in conversations if c.replies],
        "rules": rules(conversations),
    }


def expectations(conversations: list[Conversation]) -> dict:
    ids = {role: [c.id for c in conversations if c.role == role]
           for role in ("failing", "format", "wrong", "endless")}
    total = len(conversations)
    replies = [r for c in conversations for r in c.replies]
    by_rule = sum(c.by_rule for c in conversations) * REPLIES_WITHOUT_END
    correct = total - len(ids["wrong"]) - len(ids["endless"])
    accuracy = correct / total
    return {
        "scorer": "numeric",
        "max_steps": REPLIES_WITHOUT_END,
        "samples": total,
        "correct": correct,
        "accuracy": round(accuracy, 6),
        "standard_error": round(math.sqrt(accuracy * (1 - accuracy) / (total - 1)), 6),
        "ends": {"success": total - len(ids["endless"]), "max_steps": len(ids["endless"])},
        "failing_first": dict(Counter(c.kind for c in conversations if c.role == "failing")),
        "formats": dict(Counter(c.kind for c in conversations if c.role == "format")),
        "replies": len(replies),
        "turns": len(replies) + by_rule + len(ids["endless"]),  # the forced answers are turns too
        "snippets": sum(bool(r.code) for r in replies) + by_rule,
        "snippet_failures": sum(bool(r.code) and r.ends != "ok" for r in replies),
        "ids": {"failing_first": {c.id: c.kind for c in conversations if c.role == "failing"},
                "formats": {c.id: c.kind for c in conversations if c.role == "format"},
                "wrong": ids["wrong"], "unanswered": ids["endless"]},
    }


def documents(conversations: list[Conversation]) -> dict[str, str]:
    def pretty(x):
        return json.dumps(x, ensure_ascii=False, indent=1) + "\n"

    lines = [json.dumps(sample(c), ensure_ascii=False) + "\n" for c in conversations]
    return {"problems.jsonl": "".join(lines),
            "problems.mock.json": pretty(mock_script(conversations)),
            "problems.expected.json": pretty(expectations(conversations))}


def check(conversations: list[Conversation], folder: Path) -> int:
    bad = 0
    for name, text in documents(conversations).items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{name}: differs from what this script writes; run it without --check")
            bad += 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each thread waits for a subprocess
        found = list(pool.map(complaints, conversations))
    for c, complaint_list in zip(conversations, found):
        for complaint in complaint_list:
            print(f"{c.id} ({c.role} {c.kind}): {complaint}")
            bad += 1
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="play every conversation; write nothing")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent,
                        help="folder to write to (default: this script's)")
    options = parser.parse_args()
    conversations = make_conversations()
    if options.check:
        bad = check(conversations, options.out)
        print(f"{bad} complaints" if bad else "every conversation ends as intended")
    else:
        for name, text in documents(conversations).items():
            (options.out / name).write_text(text, encoding="utf-8")
        bad = 0
    e = expectations(conversations)
    print(f"{e['samples']} problems in {len(FAMILIES)} families, {e['replies']} replies, "
          f"{sum(e['failing_first'].values())} fail at first; expected with scorer numeric: "
          f"{e['correct']} correct, accuracy {e['accuracy']:.4f} +- {e['standard_error']:.4f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
