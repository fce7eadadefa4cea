"""The values that everything else here is made of: a problem and the steps that solve it."""

from dataclasses import dataclass, field
from fractions import Fraction
from string import Template
from textwrap import dedent


# A word for each problem of one template: where the task's numbers stand in a file, its text must
# still differ from the others'.
PLACES = ["Bergen", "Ghent", "Łódź", "Porto", "Turku"]


class Redraw(Exception):
    """The numbers drawn make a poor problem (a rounding tie); draw others."""


@dataclass(frozen=True)
class Step:
    """What the model thinks, and the code that it then writes."""

    thought: str
    code: str


@dataclass
class Problem:
    """A task with its solution as steps that run one after the other in one interpreter.

    mistakes: by kind, a step that fails and stands before steps[0].
    slip:     a last step that runs but answers wrongly.
    endless:  steps that look at ever more and never answer.
    """

    text: str
    target: float | int
    steps: list[Step]
    difficulty: str = "easy"
    files: dict[str, str] = field(default_factory=dict)
    mistakes: dict[str, Step] = field(default_factory=dict)
    slip: Step | None = None
    endless: list[Step] = field(default_factory=list)


def step(thought: str, code: str, **values) -> Step:
    """A step from templates: $name stands for a value, as Python writes it."""
    fill = {name: str(value) for name, value in values.items()}
    return Step(
        Template(" ".join(thought.split())).substitute(fill),
        Template(dedent(code).strip("\n")).substitute(fill).rstrip(),
    )


def rounded(exact: Fraction | float, places: int) -> float | int:
    """`exact` rounded. Raises Redraw near a tie, where binary and decimal rounding may differ."""
    scaled = Fraction(exact) * 10**places
    if abs(scaled % 1 - Fraction(1, 2)) < Fraction(1, 1000):
        raise Redraw
    nearest = round(scaled)
    return nearest if places == 0 else float(Fraction(nearest, 10**places))


def csv_text(header: str, rows: list[tuple]) -> str:
    """A CSV file's text; fields that hold a comma are quoted."""
    def cell(x) -> str:
        return f'"{x}"' if "," in str(x) else str(x)

    return "\n".join([header, *(",".join(cell(x) for x in row) for row in rows)]) + "\n"
