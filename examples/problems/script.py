"""Turns problems into what the model says: who fails at first and how, who answers wrongly, who
never answers, and in which of the accepted formats each reply is written."""

import random
from dataclasses import dataclass, field

from mistakes import ENDS, REPAIRS, make_mistake
from problem import Problem, Step

ENDLESS, WRONG, REPLIES_WITHOUT_END = 2, 6, 20

FAILING = {
    "timeout": 2, "memory": 1, "exit": 1, "tool_error": 3, "zero_division": 4, "value_error": 3,
    "type_error": 4, "assertion": 5, "wrong_file": 4, "wrong_key": 7, "missing_import": 7,
    "name_error": 8, "syntax_error": 6, "no_code": 5,
}

FORMATS = {"fence": 5, "fence_in_tags": 3, "bare": 3, "think": 3, "unclosed": 3, "two_blocks": 3,
           "tag_in_string": 2}

GIVE_UP = "I could not finish the search within the steps that I had, so I have no result to give."

COUNTING = """
look = globals().get("look", 0) + 1
piece = [n for n in range(2, 50 * look) if all(n % d for d in range(2, n))]
print("look", look, "finds", len(piece), "primes")
"""


@dataclass
class Reply:
    text: str
    code: str    # what a right extraction yields; empty: no code
    ends: str | None  # "ok", an exception's name, "no code"; None: not to be executed


@dataclass
class Conversation:
    id: str
    family: str
    problem: Problem
    role: str = "plain"  # plain, failing, wrong, endless, or format
    kind: str = ""       # of the mistake or format
    replies: list[Reply] = field(default_factory=list)
    by_rule: bool = False  # endless by a rule, not by its own replies


def written(step: Step, style: str = "tags") -> str:
    """The text of a reply that holds this step, in one of the accepted formats."""
    thought, code = f"Thought: {step.thought}", step.code
    if style == "fence":
        return f"{thought}\n```python\n{code}\n```"
    if style == "fence_in_tags":
        return f"{thought}\n<code>\n```python\n{code}\n```\n</code>"
    if style == "bare":
        return f"# {step.thought}\n{code}"
    if style == "think":
        return f"<think>\nPerhaps <code>print(1 / 0)</code>? No.\n</think>\n{written(step)}"
    if style == "unclosed":
        return f"{thought}\n<code>\n{code}\n"
    if style == "two_blocks":
        return f"<code>\nstarted = True\n</code>\n{thought}\n<code>\n{code}\n</code>"
    return f"{thought}\n<code>\n{code}\n</code>"


def good(step: Step, style: str = "tags") -> Reply:
    if style == "tag_in_string":
        step = Step(step.thought, 'note = "a </code> within a string is text"\n' + step.code)
    text, code = written(step, style), step.code
    if style == "two_blocks":
        code = "started = True\n\n" + code
    if style == "bare":
        code = text
    return Reply(text, code, "ok")


def fill_in(c: Conversation) -> None:
    """Writes the replies of a conversation whose role is settled."""
    steps = c.problem.steps
    if c.role == "endless":
        c.replies = [] if c.by_rule else [good(s) for s in c.problem.endless[:REPLIES_WITHOUT_END]]
        return
    if c.role == "wrong":
        steps = [*steps[:-1], c.problem.slip]
    style = c.kind if c.role == "format" else "tags"
    c.replies = [good(steps[0], style), *(good(s) for s in steps[1:])]
    if c.role == "failing":
        at, broken = make_mistake(c.kind, c.problem)
        text = written(broken) if broken.code else f"Thought: {broken.thought}"
        repaired = Step(REPAIRS[c.kind], steps[at].code)
        c.replies[at:at + 1] = [Reply(text, broken.code, ENDS[c.kind]), good(repaired)]


def cast(conversations: list[Conversation], seed: str) -> None:
    """Gives each conversation its role, spread evenly over the families, then its replies."""
    order = random.Random(seed).sample(conversations, len(conversations))
    used = dict.fromkeys((c.family for c in conversations), 0)

    def take(count, role, kind, fits):
        for _ in range(count):
            free = [c for c in order if c.role == "plain" and fits(c.problem)]
            if not free:
                raise SystemExit(f"no problem is left for {role} {kind}")
            c = min(free, key=lambda x: used[x.family])
            c.role, c.kind = role, kind
            used[c.family] += 1

    for kind, count in FAILING.items():
        take(count, "failing", kind, lambda p, k=kind: make_mistake(k, p) is not None)
    take(ENDLESS, "endless", "", lambda p: bool(p.endless))
    take(WRONG, "wrong", "", lambda p: p.slip is not None)
    for kind, count in FORMATS.items():
        take(count, "format", kind, lambda p: True)
    endless = [c for c in conversations if c.role == "endless"]
    endless[-1].by_rule = True
    for c in conversations:
        fill_in(c)


def rules(conversations: list[Conversation]) -> list[dict]:
    """What the model says when a conversation has no reply of its own."""
    result = []
    for c in conversations:
        if c.role != "endless":
            continue
        result.append({"if_task_contains": c.problem.text, "from_turn": REPLIES_WITHOUT_END,
                       "reply": GIVE_UP})
        if c.by_rule:
            look = Step("I look at a larger piece each time, to see how the primes thin out.",
                        COUNTING.strip())
            result.append({"if_task_contains": c.problem.text, "reply": written(look)})
    return result
