"""Windows as a person says them: the last n rows, the last hour, and when rows leave them."""

from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np

from windrow.errors import BadSpecification
from windrow.policies import Policy
from windrow.support import WindowKind
from windrow.times import EVER, Duration, Length, duration

Closed = Literal["right", "left", "both", "neither"]


def _shown(length: Duration | int) -> str:
    return length.label if isinstance(length, Duration) else str(length)


class Spec:
    """A window as a person says it."""


class _Joinable(Spec):
    """Windows that end at the current row can be joined: a row stays where all of them keep it."""

    def __and__(self, other: Any) -> "WindowSpec":
        return _joined(self, other)

    def __rand__(self, other: Any) -> "WindowSpec":
        return _joined(other, self)


@dataclass(frozen=True)
class Rows(_Joinable):
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
class Time(_Joinable):
    """A stretch of time around the current row; made by ``time()``."""

    length: Duration | int
    closed: Closed = "right"
    ending: Duration | int = 0
    after: Duration | int = 0
    needs_time: ClassVar[bool] = True

    @property
    def kind(self) -> WindowKind:
        """What rows leave by: their age, or nothing."""
        return "ever" if self.length == EVER else "time"

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

    @property
    def near(self) -> "Time":
        """Where a row must be for the window to hold any."""
        return self


@dataclass(frozen=True)
class Session(_Joinable):
    """The rows since the last pause; made by ``session()``."""

    gap: Duration | int
    closed: Literal["right", "left"] = "right"
    kind: ClassVar[WindowKind] = "session"
    needs_time: ClassVar[bool] = True
    ending: ClassVar[int] = 0
    after: ClassVar[int] = 0

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        return f"session_{_shown(self.gap)}" + ("_left" if self.closed == "left" else "")

    @property
    def includes_end(self) -> bool:
        """Whether the current row and its peers are in."""
        return self.closed == "right"

    @property
    def near(self) -> Time:
        """Where a row must be for the session to go on: a whole gap back, and no further."""
        return Time(self.gap, "both" if self.includes_end else "left")


@dataclass(frozen=True)
class Bounds(Spec):
    """Times from one column to another, both included, of the same key; made by ``bounds()``."""

    low: str
    high: str
    kind: ClassVar[WindowKind] = "bounds"
    needs_time: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        return f"{self.low}_to_{self.high}"


@dataclass(frozen=True)
class Kept(_Joinable):
    """What policies keep, of what windows of rows and of time hold; made by ``policy()`` and ``&``.

    After each row, ``cuts`` let go what is too old or too far back, then the ``policies`` say, each
    in turn, which of the oldest rows that are left must go.
    """

    policies: tuple[Policy, ...]
    cuts: tuple[Rows | Time | Session, ...] = ()
    kind: ClassVar[WindowKind] = "policy"

    @property
    def label(self) -> str:
        """The window's part in output columns."""
        return "_and_".join([*(p.label for p in self.policies), *(c.label for c in self.cuts)])

    @property
    def needs_time(self) -> bool:
        """Whether rows must have times."""
        return any(cut.needs_time for cut in self.cuts)

    def __bool__(self) -> bool:
        raise BadSpecification("join windows with &, not with and: at_most(...) & rows(100)")

    @property
    def identification(self) -> str:
        """What a window that was stored must have been kept by to go on."""
        return " & ".join([*(p.identification for p in self.policies), *map(repr, self.cuts)])


WindowSpec = Rows | Time | Session | Bounds | Kept


def _joined(a: Any, b: Any) -> "WindowSpec":
    a, b = as_window(a), as_window(b)
    for window in (a, b):
        whole = isinstance(window, Kept) or (
            isinstance(window, Rows | Time | Session)
            and not (window.ending or window.after)
            and (isinstance(window, Rows) or window.includes_end)
        )
        if not whole:
            raise BadSpecification(
                f"{window.label} cannot be joined with &: only windows that end at the current row "
                "and include it can"
            )
    if isinstance(a, Time) and isinstance(b, Rows):
        a, b = b, a
    if isinstance(a, Rows) and a.within is None and isinstance(b, Time) and b.closed == "right":
        return Rows(a.n, within=b.length)
    policies = [p for window in (a, b) if isinstance(window, Kept) for p in window.policies]
    cuts = [c for w in (a, b) for c in (w.cuts if isinstance(w, Kept) else (w,))]
    return Kept(tuple(policies), tuple(cuts))


def policy(function: Any, *, over: Any, name: str | None = None, debug: bool = False) -> Kept:
    """Rows leave when a function says so: ``function(total, oldest)``, of answers of ``over``.

    After each row, ``total`` is the answer over all rows in the window and ``oldest`` the answer
    over some of its oldest rows: where the function is true, these rows leave. The longest such run
    is found in O(log n) steps, so the function must be monotone: true for some oldest rows, it must
    be true for fewer of them; ``debug=True`` checks that at every row (and takes O(n) for it).

    ``over``: an aggregate, or a list of them; then ``total`` and ``oldest`` are tuples. Limits may
    travel in the rows: ``over=[Count(), Last("limit")]``. What is aggregated over the rows that
    stay is another matter and said elsewhere. ``name`` stands for the function in output columns
    and in stores.

    >>> import windrow as wr
    >>> recent = wr.policy(lambda total, old: total - old >= 4, over=wr.Max(), name="recent")
    >>> window = wr.Sliding(recent, wr.Count())
    >>> [window.insert(time) for time in (1, 2, 3, 4, 8)]
    [1, 2, 3, 4, 1]
    """
    return Kept((Policy.of_function(function, over, name, debug),))


def at_most(aggregate: Any, limit: Any, *, debug: bool = False) -> Kept:
    """The newest rows whose aggregate is at most the limit.

    Oldest rows leave while the answer over the window is above the limit; a row that is above it
    alone leaves an empty window. The aggregate must grow with the window: counts, maxima, sums of
    numbers that are not negative (a negative one is refused). ``limit`` is a value, or the name of
    a column: then the youngest row's limit counts.

    >>> import windrow as wr
    >>> light = wr.Sliding(wr.at_most(wr.Sum(), 10), wr.Max())
    >>> [light.insert(weight) for weight in (2, 2, 3, 3, 4)], len(light)
    ([2, 2, 3, 3, 4], 3)
    """
    return Kept((Policy.at_most(aggregate, limit, debug),))


def useful(aggregate: Any) -> Kept:
    """The rows that can still matter for an aggregate: from the current maximum on, for ``Max``.

    Rows before it can never be the answer again, whatever comes. Join it with another window to
    bound it: ``useful(Max("x")) & rows(1000)``. For Max, Min and LongestRun, and for aggregates of
    yours that have ``useless(total, oldest)``, a function of two partials that says whether the
    oldest rows cannot matter any more.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.useful(wr.Max()) & wr.rows(3), wr.Max())
    >>> [(window.insert(value), len(window)) for value in (5, 3, 4, 1, 2)]
    [(5, 1), (5, 2), (5, 3), (4, 2), (4, 3)]
    """
    return Kept((Policy.useful(aggregate),))


def rows(n: int, *, ending: int = 0, after: int = 0, within: Length | None = None) -> Rows:
    """The last ``n`` rows, this one included.

    ``ending=k``: the n rows that end k rows ago. ``after=k``: and the k rows that follow (in
    tables, where they are known). ``within="30d"``: of those n rows, only the ones with times in
    (t − 30 days, t], t being the current row's time, as ``time("30d")`` would cut them; integer
    times take an integer. Streams want it said: ``within="ever"`` keeps the last rows of every key
    for good.

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
    limit = _span(within, "rows(within=)")
    if _amount(limit) <= 0:
        raise BadSpecification(f"rows(): within must be positive, not {within!r}")
    return Rows(int(n), int(ending), within=limit)


def time(
    length: Length,
    *,
    closed: Closed = "right",
    ending: Length | None = None,
    after: Length | None = None,
) -> Time:
    """The rows with times in (t − length, t], t being the current row's time.

    ``closed="left"`` is [t − length, t), ``"both"`` and ``"neither"`` likewise: ``left`` and
    ``neither`` leave out the current row and all with its time. ``ending="10m"`` shifts the whole
    window back; ``after="5m"`` extends it to t + 5 minutes (in tables, where that is known).
    Integer times take integer lengths in the same unit. ``time("ever")`` is all rows up to t.

    >>> time("1 hour", ending="10m").label, time("ever", closed="left").label
    ('1h_ending_10m', 'ever_left')
    """
    if closed not in get_args(Closed):
        raise BadSpecification(
            f"time(): closed is one of {', '.join(get_args(Closed))}, not {closed!r}"
        )
    span = _span(length, "time()")
    if _amount(span) <= 0:
        raise BadSpecification(f"time(): the length must be positive, not {length!r}")
    shifts = []
    for name, given in (("ending", ending), ("after", after)):
        shift = duration(0 if given is None else given, f"time({name}=)")
        if _amount(shift) < 0:
            raise BadSpecification(f"time(): {name} must not be negative, not {given!r}")
        mixed = isinstance(span, Duration) != isinstance(shift, Duration)
        if given is not None and span != EVER and mixed:
            raise BadSpecification(
                f"time(): length {length!r} and {name} {given!r} must both have a unit, or neither"
            )
        shifts.append(shift if _amount(shift) else 0)
    if shifts[0] and shifts[1]:
        raise BadSpecification(
            "time(): a window ends before the row (ending) or after it, not both"
        )
    return Time(span, closed, shifts[0], shifts[1])


def session(gap: Length, *, closed: Literal["right", "left"] = "right") -> Session:
    """The rows since the last pause longer than ``gap``: the session that the row is part of.

    A row begins a session if no other row of its key comes before it, or the one before it is more
    than ``gap`` older; rows exactly ``gap`` apart are in one. The window holds the session so far,
    the row and its peers included; ``closed="left"`` leaves these out. Between rows (at ticks, at
    labels, when ``advance`` lets time pass) a session goes on for ``gap`` after its last row, and
    is then over: the window is empty. Integer times take an integer.

    >>> import windrow as wr
    >>> visit = wr.Sliding(wr.session(30), wr.Count())
    >>> [visit.insert(None, at=minute) for minute in (0, 20, 50, 81, 90)]
    [1, 2, 3, 1, 2]
    """
    if closed not in ("right", "left"):
        raise BadSpecification(f"session(): closed is right or left, not {closed!r}")
    if isinstance(gap, str) and gap.strip().lower() == "ever":
        raise BadSpecification('session(): one that no pause ends is time("ever")')
    pause = duration(gap, "session()")
    if _amount(pause) <= 0:
        raise BadSpecification(f"session(): the gap must be positive, not {gap!r}")
    return Session(pause, closed)


def bounds(low: str, high: str) -> Bounds:
    """The rows of the same key with times from column ``low`` to column ``high``, both included."""
    for column in (low, high):
        if not isinstance(column, str) or not column:
            raise BadSpecification(f"bounds() takes the names of two columns, not {column!r}")
    return Bounds(low, high)


def _span(length: Length, what: str) -> Duration | int:
    """A length of time, which may be all of it."""
    if isinstance(length, str) and length.strip().lower() == "ever":
        return EVER
    return duration(length, what)


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length


def as_window(candidate: Any) -> WindowSpec:
    """A window, also from its short form: ``"1h"`` is ``time("1h")``, and so is a timedelta."""
    if isinstance(candidate, Spec):
        return cast(WindowSpec, candidate)
    if isinstance(candidate, str | timedelta | np.timedelta64 | Duration):
        return time(candidate)
    raise BadSpecification(
        f'{candidate!r} is not a window: write rows(100), time("1h") or just "1h"; '
        "time(3600) where times are integers"
    )
