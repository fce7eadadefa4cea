"""Ways in which a model's code goes wrong at first. Each gives a step that really fails, or None
where the problem at hand has no place for it."""

import ast
import builtins
import re

from problem import Problem, Step

# How the failed snippet ends, by kind of mistake; None: it is never executed by the check.
ENDS = {
    "name_error": "NameError",
    "missing_import": "NameError",
    "wrong_key": "KeyError",
    "wrong_file": "FileNotFoundError",
    "syntax_error": "SyntaxError",
    "no_code": "no code",
    "assertion": "AssertionError",
    "zero_division": "ZeroDivisionError",
    "type_error": "TypeError",
    "value_error": "ValueError",
    "tool_error": "ToolError",
    "timeout": None,
    "memory": None,
    "exit": None,
}

REPAIRS = {
    "name_error": "I misspelt a variable. The values are right, so I use the right name.",
    "missing_import": "The module was not imported. I add the import.",
    "wrong_key": "There is no such key; I guessed it. The right names are in the task.",
    "wrong_file": "The file lies in the work directory itself, so I open it by its plain name.",
    "syntax_error": "A typing mistake: the line is not valid Python. I correct it.",
    "no_code": "I should have written code. Here it is.",
    "assertion": "The check fails, so my bounds are off. I handle the ends of the range with care.",
    "zero_division": "The divisor can be zero there. I have to do it in another way.",
    "type_error": "I mixed up the types; I convert the values before I calculate with them.",
    "value_error": "That text is not a plain integer. I parse it properly.",
    "tool_error": "The tool refuses the call. I read its parameters and call it as described.",
    "timeout": "That loop never ends, since nothing in it changes. I write it with a proper end.",
    "memory": "That is far more than fits into memory. I need a way that does not hold everything.",
    "exit": "That ended the interpreter and all my variables. I start again and skip such a line.",
}

NEAR_MISSES = {
    "quantity": "qty", "unit_price": "price", "region": "area", "category": "group",
    "amount": "value", "product_id": "product", "price_cents": "cents", "pieces": "count",
    "day": "date", "warehouses": "warehouse", "items": "goods", "stock": "in_stock",
    "city": "town", "type": "kind", "user": "user_id", "cents": "amount", "bytes": "size",
    "name": "filename", "files": "documents", "folders": "children",
}


def _always_run(tree: ast.Module):
    """The names read by statements that surely run: top-level ones, outside functions and loops."""
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)):
            inner = [n for n in ast.walk(statement)
                     if isinstance(n, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp,
                                       ast.DictComp, ast.JoinedStr))]
            hidden = {id(x) for n in inner for x in ast.walk(n)}
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) \
                        and id(node) not in hidden:
                    yield node


def _misspell(code: str) -> str | None:
    known = set(dir(builtins)) | set(re.findall(r"\w+", code))
    for node in reversed(list(_always_run(ast.parse(code)))):
        wrong = node.id[:-1]
        if len(wrong) < 3 or wrong in known or node.id in ("final_answer", "convert_units") \
                or node.id in dir(builtins):
            continue
        lines = code.split("\n")
        line, at = lines[node.lineno - 1], node.col_offset
        if line.isascii():  # col_offset counts bytes
            lines[node.lineno - 1] = line[:at] + wrong + line[at + len(node.id):]
            return "\n".join(lines)
    return None


def _without_imports(code: str) -> str | None:
    lines = code.split("\n")
    kept = [line for line in lines if not re.match(r"(import|from) \w", line)]
    return "\n".join(kept) if len(kept) < len(lines) else None


def _wrong_key(code: str) -> str | None:
    for match in re.finditer(r'\["(\w+)"\]', code):
        if match[1] in NEAR_MISSES:
            return code[:match.start(1)] + NEAR_MISSES[match[1]] + code[match.end(1):]
    return None


def _wrong_file(code: str) -> str | None:
    match = re.search(r'"(\w+\.(csv|jsonl|json|txt|log))"', code)
    return code[:match.start(1)] + "data/" + code[match.start(1):] if match else None


def _typo(code: str) -> str | None:
    lines = code.split("\n")
    for i, line in enumerate(lines):
        if re.match(r"(for|if|def|while|with) .*:$", line):
            lines[i] = line[:-1]
            return "\n".join(lines)
    return code[:-1] if code.endswith(")") else None


GENERIC = {
    "name_error": _misspell,
    "missing_import": _without_imports,
    "wrong_key": _wrong_key,
    "wrong_file": _wrong_file,
    "syntax_error": _typo,
}


def make_mistake(kind: str, problem: Problem) -> tuple[int, Step] | None:
    """A failing step of this kind, and the index of the step that it stands before."""
    if kind in problem.mistakes:
        return 0, problem.mistakes[kind]
    if kind == "no_code":
        return 0, Step(problem.steps[0].thought + " The final answer then follows from that.", "")
    if kind not in GENERIC:
        return None
    # The last step that has room for it: a mistake late in a run is the better test of kept state.
    for index in reversed(range(len(problem.steps))):
        broken = GENERIC[kind](problem.steps[index].code)
        if broken is not None:
            return index, Step(problem.steps[index].thought, broken)
    return None
