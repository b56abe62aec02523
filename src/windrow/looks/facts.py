"""What a report knows of a table, in few numbers whatever the table's size: counts and examples."""

from dataclasses import dataclass, field
from typing import Any

from windrow.looks.axis import Axis
from windrow.looks.points import Line
from windrow.looks.spread import Spread

MOST_KEYS = 12
STRETCHES = 120
"""Of the time that rows cover, for rows over time."""
_LONGEST_LABEL = 80


@dataclass(frozen=True)
class Example:
    """A row to look at: its key, its time, and where it stands, as far as these are known."""

    key: str | None = None
    time: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        parts = [f"key {self.key}"] if self.key is not None else []
        parts += [self.time] if self.time is not None else []
        parts += [f"row {self.row:,}"] if self.row is not None else []
        return ", ".join(parts)


@dataclass
class ColumnFacts:
    """One column of the input."""

    name: str
    role: str
    """``key``, ``time``, ``tie`` or ``value``."""
    nulls: int = 0
    nans: int = 0
    infinities: int = 0
    constant: Any = None
    """The one value, as text, where there is but one."""
    examples: dict[str, Example] = field(default_factory=dict)
    """By ``nulls``, ``nans``, ``infinities``."""


@dataclass
class OrderFacts:
    """How rows follow each other, key by key."""

    rows: int = 0
    equal: int = 0
    """Rows with the key and the time of another before them."""
    disordered: int | None = None
    """Rows that come after a later one of their key; None where rows have no order."""
    pauses: dict[str, int] = field(default_factory=dict)
    """By window: rows more than its length after the one before."""
    longest: str | None = None
    """The longest pause, in words."""
    examples: dict[str, Example] = field(default_factory=dict)
    share_of_keys: float = 1.0


@dataclass
class DataFacts:
    """The rows that went in."""

    rows: int
    axis: Axis | None = None
    first: Any = None
    last: Any = None
    columns: list[ColumnFacts] = field(default_factory=list)
    order: OrderFacts | None = None
    stretches: list[int] = field(default_factory=list)
    """How many rows fall into each of equal stretches of the time covered."""


@dataclass(frozen=True)
class Key:
    """A key that is drawn."""

    label: str
    values: tuple[Any, ...]
    rows: int
    first: Any
    last: Any


@dataclass
class AnswerFacts:
    """The rows that came out, with their answers."""

    rows: int
    keys: int = 0
    keys_exact: bool = True
    chosen: list[Key] = field(default_factory=list)
    axis: Axis | None = None
    lines: dict[tuple[int, str], Line] = field(default_factory=dict)
    """By place of the key in ``chosen``, and name of the answer."""
    spreads: dict[str, Spread] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """What is not drawn, and why."""


def label_of(values: tuple[Any, ...]) -> str:
    """A key in a few words."""
    text = " · ".join("null" if value is None else str(value) for value in values) or "all rows"
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


@dataclass(frozen=True)
class Limits:
    """How much is kept for a report."""

    keys: int = MOST_KEYS
    points: int = 120_000
    columns: int = 480
    """Columns of pixels, at most."""
    sample: int = 200_000
    """Rows, for spreads."""
    cells: int = 12_000_000
    """Of a Spark table, up to which it is looked at in the driver."""
    followed: int = 20_000_000
    """Rows of a larger one that are followed key by key."""

    def share(self, keys: int, outputs: int) -> tuple[int, int, int]:
        """How many keys, answers and columns of pixels are drawn of these."""
        least = 100
        most = max(1, self.points // (4 * least))  # lines
        keys = max(1, min(keys, self.keys))
        while keys > 3 and keys * outputs > most:
            keys -= 1
        outputs = max(1, min(outputs, most // keys)) if outputs else 0
        columns = self.points // (4 * max(1, keys * outputs))
        return keys, outputs, max(least, min(self.columns, columns))
