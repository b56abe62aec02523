"""Windows as a person says them: the last n rows, the last hour, and when rows leave them."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, get_args

from windrow.errors import BadSpecification
from windrow.support import WindowKind
from windrow.times import Duration, duration

Closed = Literal["right", "left", "both", "neither"]


@dataclass(frozen=True)
class Rows:
    """The last ``n`` rows, ending ``ending`` rows before the current one; made by ``rows()``."""

    n: int
    ending: int = 0
    kind: ClassVar[WindowKind] = "rows"

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        return f"{self.n}rows" + (f"_ending_{self.ending}" if self.ending else "")


@dataclass(frozen=True)
class Time:
    """A stretch of time before the current row; made by ``time()``."""

    length: Duration | int
    closed: Closed = "right"
    ending: Duration | int = 0
    kind: ClassVar[WindowKind] = "time"

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        shown = [self.length.label if isinstance(self.length, Duration) else str(self.length)]
        if self.ending:
            end = self.ending.label if isinstance(self.ending, Duration) else str(self.ending)
            shown.append(f"ending_{end}")
        if self.closed != "right":
            shown.append(self.closed)
        return "_".join(shown)

    @property
    def includes_start(self) -> bool:
        """Whether a row exactly ``length`` old is still in."""
        return self.closed in ("left", "both")

    @property
    def includes_end(self) -> bool:
        """Whether the current row and its peers are in."""
        return self.closed in ("right", "both")


WindowSpec = Rows | Time


def rows(n: int, *, ending: int = 0) -> Rows:
    """The last ``n`` rows, this one included; with ``ending=k``, the n rows that end k rows ago.

    >>> rows(100)
    Rows(n=100, ending=0)
    """
    for name, value, least in (("n", n, 1), ("ending", ending, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise BadSpecification(
                f"rows(): {name} is a whole number from {least} on, not {value!r}"
                + ('; for a length of time write time("1h")' if isinstance(value, str) else "")
            )
    return Rows(int(n), int(ending))


def time(length: Any, *, closed: Closed = "right", ending: Any = None) -> Time:
    """The rows with times in (t − length, t], t being the current row's time.

    ``closed="left"`` is [t − length, t), ``"both"`` and ``"neither"`` likewise: ``left`` and
    ``neither`` leave out the current row and all with its time. ``ending="10m"`` shifts the whole
    window back. Integer times take an integer length in the same unit.

    >>> time("1 hour", ending="10m").label
    '1h_ending_10m'
    """
    if closed not in get_args(Closed):
        raise BadSpecification(
            f"time(): closed is one of {', '.join(get_args(Closed))}, not {closed!r}"
        )
    span = duration(length, "time()")
    back = duration(0 if ending is None else ending, "time(ending=)")
    if (span.nanoseconds if isinstance(span, Duration) else span) <= 0:
        raise BadSpecification(f"time(): the length must be positive, not {length!r}")
    if (back.nanoseconds if isinstance(back, Duration) else back) < 0:
        raise BadSpecification(f"time(): ending must not be negative, not {ending!r}")
    if ending is not None and isinstance(span, Duration) != isinstance(back, Duration):
        raise BadSpecification(
            f"time(): length {length!r} and ending {ending!r} must both have a unit, or neither"
        )
    return Time(span, closed, back)


def as_window(candidate: Any) -> WindowSpec:
    """A window, also from its short form: ``"1h"`` is ``time("1h")``."""
    if isinstance(candidate, Rows | Time):
        return candidate
    if isinstance(candidate, str):
        return time(candidate)
    raise BadSpecification(
        f'{candidate!r} is not a window: write rows(100), time("1h"), or just "1h"'
    )
