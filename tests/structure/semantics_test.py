"""docs/semantics.md names tests that exist, and misses none of its numbers.

Run with the source folder as the only argument.
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| (\d+) \| [^|]+ \| (.+) \|$")
NAME = re.compile(r'(?:TEST|CONTRACT)_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
ROWS = 45


def names_in(file):
    """The tests' sentences; a long one stands in several literals."""
    for found in NAME.finditer(file.read_text(encoding="utf-8")):
        yield re.sub(r'"\s*"', "", found[1].strip())[1:-1]


def check(root):
    wrong, numbers = [], []
    for line in (root / "docs/semantics.md").read_text(encoding="utf-8").splitlines():
        row = ROW.match(line)
        if not row:
            continue
        numbers.append(int(row[1]))
        for part in re.split(r"; (?=`)", row[2]):
            path, _, listed = part.removeprefix("`").partition("`: ")
            file = root / f"tests/{path}_test.cpp"
            left = listed
            for name in sorted(names_in(file) if file.is_file() else (), key=len, reverse=True):
                left = left.replace(name, "")
            if not file.is_file() or left.strip("; "):
                wrong.append(f"row {row[1]}: {path} has no test '{left.strip('; ')}'")
    if numbers != list(range(1, ROWS + 1)):
        wrong.append(f"its rows must be 1 to {ROWS}, but are {numbers}")
    return wrong


if __name__ == "__main__":
    mistakes = check(pathlib.Path(sys.argv[1]))
    print("\n".join(f"docs/semantics.md: {m}" for m in mistakes))
    sys.exit(bool(mistakes))
