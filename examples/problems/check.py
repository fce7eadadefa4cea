"""Plays every conversation in a plain Python subprocess and compares each step's end and the final
answer with what is intended. No sandbox: the code comes from this folder alone."""

import ast
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SNIPPET_SECONDS = 1

# The other side: one interpreter per conversation, snippets on stdin, ends on stdout as JSON.
PLAYER = r'''
import ast, contextlib, io, json, signal, sys

class FinalAnswer(BaseException):
    pass

class ToolError(Exception):
    pass

def final_answer(answer):
    raise FinalAnswer(answer)

LENGTHS = {"km": 1000.0, "mi": 1609.344}
MASSES = {"g": 1.0, "kg": 1000.0, "lb": 453.59237, "oz": 28.349523125}

def convert_units(*positional, **named):
    call = dict(zip(("value", "from_unit", "to_unit"), positional))
    call.update(named)
    if set(call) != {"value", "from_unit", "to_unit"}:
        raise ToolError(f"arguments are {sorted(call)}")
    value, source, target = call["value"], call["from_unit"], call["to_unit"]
    if (source, target) == ("F", "C"):
        return (value - 32) * 5 / 9
    for table in (LENGTHS, MASSES):
        if source in table and target in table:
            return value * table[source] / table[target]
    raise ToolError(f"cannot convert {source} to {target}")

def overdue(*_):
    raise TimeoutError("snippet takes too long")

signal.signal(signal.SIGALRM, overdue)
scope = {"__name__": "__main__", "final_answer": final_answer, "convert_units": convert_units}
job = json.load(sys.stdin)
ends = []
for code in job["snippets"]:
    logs = io.StringIO()
    end = {"end": "ok", "answer": None}
    signal.alarm(job["seconds"])
    try:
        with contextlib.redirect_stdout(logs):
            exec(compile(code, "snippet", "exec"), scope)
    except FinalAnswer as done:
        end["answer"] = done.args[0]
    except Exception as problem:
        end["end"] = type(problem).__name__
        end["detail"] = str(problem)
    signal.alarm(0)
    end["logs"] = logs.getvalue()
    ends.append(end)
json.dump(ends, sys.stdout)
'''


def extract(reply: str) -> str:
    """The code of a reply, by the agent's rules: tags, else a python fence, else all of it."""
    text = re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL)
    blocks = []
    while "<code>" in text:
        text = text.split("<code>", 1)[1]
        pieces = text.split("</code>")
        for count in range(1, len(pieces) + 1):  # the first closing tag that leaves valid Python
            code = unfenced("</code>".join(pieces[:count]).strip())
            if parses(code):
                break
        else:
            count, code = 1, unfenced(pieces[0].strip())
        blocks.append(code)
        text = "</code>".join(pieces[count:])
    if blocks:
        return "\n\n".join(blocks)
    fence = re.search(r"```python\n(.*?)\n```", text, flags=re.DOTALL)
    if fence:
        return fence[1]
    return text.strip() if parses(text.strip()) else ""


def unfenced(code: str) -> str:
    inner = re.fullmatch(r"```python\n(.*)\n```", code, flags=re.DOTALL)
    return inner[1] if inner else code


def parses(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def play(snippets: list[str], files: dict[str, str]) -> list[dict]:
    with tempfile.TemporaryDirectory() as work:
        for name, content in files.items():
            Path(work, name).write_text(content, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", PLAYER], cwd=work, text=True, capture_output=True,
            input=json.dumps({"snippets": snippets, "seconds": SNIPPET_SECONDS}),
            timeout=60, check=True)
    return json.loads(done.stdout)


def complaints(conversation) -> list[str]:
    """What is not as intended in one conversation; empty: all is."""
    c, found = conversation, []
    for number, reply in enumerate(c.replies, start=1):
        if extract(reply.text) != reply.code:
            found.append(f"reply {number}: the extraction rules give other code")
    runnable = [r for r in c.replies if r.ends is not None and r.code]
    ends = play([r.code for r in runnable], c.problem.files)
    for reply, end in zip(runnable, ends):
        if end["end"] != reply.ends:
            seen = f"{end['end']} ({end.get('detail')})"
            found.append(f"ended with {seen}, not {reply.ends}: {reply.code}")
    answers = [e["answer"] for e in ends if e["answer"] is not None]
    if c.role == "endless":
        return found + ["answers"] * bool(answers)
    if len(answers) != 1 or ends[-1]["answer"] is None:
        return found + [f"{len(answers)} answers"]
    right = math.isclose(answers[0], c.problem.target, rel_tol=1e-9, abs_tol=1e-9)
    if right == (c.role == "wrong"):
        found.append(f"answer {answers[0]}, target {c.problem.target}")
    return found

