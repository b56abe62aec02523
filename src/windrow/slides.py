"""Windows as a person says them: the last n rows, the last hour, and when rows leave them."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, get_args

from windrow.errors import BadSpecification
from windrow.support import WindowKind
from windrow.times import Duration, duration

Closed = Literal["right", "left", "both", "neither"]


def _shown(length: Duration | int) -> str:
    return length.label if isinstance(length, Duration) else str(length)


@dataclass(frozen=True)
class Rows:
    """The last ``n`` rows, ending ``ending`` rows before the current one; made by ``rows()``."""

    n: int
    ending: int = 0
    after: int = 0
    within: Duration | int | None = None
    kind: ClassVar[WindowKind] = "rows"

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        shown = [f"{self.n}rows"]
        shown += [f"ending_{self.ending}"] if self.ending else []
        shown += [f"after_{self.after}"] if self.after else []
        shown += [f"within_{_shown(self.within)}"] if self.within is not None else []
        return "_".join(shown)

    @property
    def needs_time(self) -> bool:
        """Whether rows must have times."""
        return self.within is not None


@dataclass(frozen=True)
class Time:
    """A stretch of time around the current row; made by ``time()``."""

    length: Duration | int
    closed: Closed = "right"
    ending: Duration | int = 0
    after: Duration | int = 0
    kind: ClassVar[WindowKind] = "time"
    needs_time: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        shown = [_shown(self.length)]
        shown += [f"ending_{_shown(self.ending)}"] if self.ending else []
        shown += [f"after_{_shown(self.after)}"] if self.after else []
        shown += [self.closed] if self.closed != "right" else []
        return "_".join(shown)

    @property
    def includes_start(self) -> bool:
        """Whether a row exactly ``length`` old is still in."""
        return self.closed in ("left", "both")

    @property
    def includes_end(self) -> bool:
        """Whether the current row and its peers are in."""
        return self.closed in ("right", "both")


@dataclass(frozen=True)
class Bounds:
    """Times from one column to another, both included, of the same key; made by ``bounds()``."""

    low: str
    high: str
    kind: ClassVar[WindowKind] = "bounds"
    needs_time: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        return f"{self.low}_to_{self.high}"


WindowSpec = Rows | Time | Bounds


def rows(n: int, *, ending: int = 0, after: int = 0, within: Any = None) -> Rows:
    """The last ``n`` rows, this one included.

    ``ending=k``: the n rows that end k rows ago. ``after=k``: and the k rows that follow (in
    tables, where they are known). ``within="30d"``: of those n rows, only the ones with times in
    (t − 30 days, t], t being the current row's time, as ``time("30d")`` would cut them; integer
    times take an integer.

    >>> rows(100).label, rows(100, ending=5).label, rows(100, within="30d").label
    ('100rows', '100rows_ending_5', '100rows_within_30d')
    """
    for name, value, least in (("n", n, 1), ("ending", ending, 0), ("after", after, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise BadSpecification(
                f"rows(): {name} is a whole number from {least} on, not {value!r}"
                + ('; for a length of time write time("1h")' if isinstance(value, str) else "")
            )
    if ending and after:
        raise BadSpecification(
            "rows(): a window ends before the row (ending) or after it, not both"
        )
    if within is None:
        return Rows(int(n), int(ending), int(after))
    if after:
        raise BadSpecification(
            "rows(): a window reaches back for a limited time (within) or looks ahead (after), "
            "not both"
        )
    limit = duration(within, "rows(within=)")
    if _amount(limit) <= 0:
        raise BadSpecification(f"rows(): within must be positive, not {within!r}")
    return Rows(int(n), int(ending), within=limit)


def time(length: Any, *, closed: Closed = "right", ending: Any = None, after: Any = None) -> Time:
    """The rows with times in (t − length, t], t being the current row's time.

    ``closed="left"`` is [t − length, t), ``"both"`` and ``"neither"`` likewise: ``left`` and
    ``neither`` leave out the current row and all with its time. ``ending="10m"`` shifts the whole
    window back; ``after="5m"`` extends it to t + 5 minutes (in tables, where that is known).
    Integer times take integer lengths in the same unit.

    >>> time("1 hour", ending="10m").label
    '1h_ending_10m'
    """
    if closed not in get_args(Closed):
        raise BadSpecification(
            f"time(): closed is one of {', '.join(get_args(Closed))}, not {closed!r}"
        )
    span = duration(length, "time()")
    if _amount(span) <= 0:
        raise BadSpecification(f"time(): the length must be positive, not {length!r}")
    shifts = []
    for name, given in (("ending", ending), ("after", after)):
        shift = duration(0 if given is None else given, f"time({name}=)")
        if _amount(shift) < 0:
            raise BadSpecification(f"time(): {name} must not be negative, not {given!r}")
        if given is not None and isinstance(span, Duration) != isinstance(shift, Duration):
            raise BadSpecification(
                f"time(): length {length!r} and {name} {given!r} must both have a unit, or neither"
            )
        shifts.append(shift if _amount(shift) else 0)
    if shifts[0] and shifts[1]:
        raise BadSpecification(
            "time(): a window ends before the row (ending) or after it, not both"
        )
    return Time(span, closed, shifts[0], shifts[1])


def bounds(low: str, high: str) -> Bounds:
    """The rows of the same key with times from column ``low`` to column ``high``, both included."""
    for column in (low, high):
        if not isinstance(column, str) or not column:
            raise BadSpecification(f"bounds() takes the names of two columns, not {column!r}")
    return Bounds(low, high)


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length


def as_window(candidate: Any) -> WindowSpec:
    """A window, also from its short form: ``"1h"`` is ``time("1h")``."""
    if isinstance(candidate, Rows | Time | Bounds):
        return candidate
    if isinstance(candidate, str):
        return time(candidate)
    raise BadSpecification(
        f'{candidate!r} is not a window: write rows(100), time("1h"), or just "1h"'
    )
