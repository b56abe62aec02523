"""What every shared window does: keep the newest rows of a stream, answer any window of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from typing import Any, ClassVar, Self

from windrow.aggregates import EMPTY, Aggregate, Family, Partial, as_aggregate, codec
from windrow.aggregates.codec import count_bytes
from windrow.aggregates.schema import frame, unframe
from windrow.aggregates.values import listed
from windrow.errors import (
    BadBytes,
    BadSpecification,
    BadValue,
    InvariantBroken,
    Refused,
    WindrowError,
)
from windrow.shared.line import Line, Reach, as_suffix_or_historical
from windrow.windows.compare import same


@dataclass(frozen=True)
class Card:
    """A structure's figures: applications of ⊕ and partials kept, for windows within N rows."""

    title: str
    needs: str
    update: str
    lookup: str
    partials: str


class Shared(ABC):
    """The newest rows of one stream; any window of them can be asked for, at any time.

    Rows are numbered from 0 as they come and keep their number. ``longest`` says how far back they
    may be asked for: a number of rows, a window, or several; without it every row is kept. With
    ``at=`` rows have times, which never go back, and windows of time can be asked for.
    """

    card: ClassVar[Card]

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        longest: Any = None,
        *,
        unit: str | None = None,
        line: Line | None = None,
    ) -> None:
        self.aggregate = as_aggregate(aggregate)
        reason = self.refuses(self.aggregate)
        if reason:
            raise Refused(f"{type(self).__name__}({self.aggregate!r}) is refused: {reason}")
        self.family = Family()
        """What kind of values came."""
        self.lift = self.aggregate.lifter(self.family)
        self._merge = self.aggregate.merger()
        self._reach = Reach.of(longest)
        self._reach_ticks: int | None = None
        self.line = Line(unit) if line is None else line
        self.begin(self.line.first)

    @classmethod
    def compiled(cls, *options: Any, **named: Any) -> Any:
        """The compiled twin for windrow's own aggregates of numbers; see ``columns.shared``.

        It takes and gives arrays; ``longest`` is a number of rows, and widths are numbers.
        """
        from windrow.columns import shared

        return getattr(shared, cls.__name__)(*options, **named)

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Why this structure would not be right for an aggregate, or None where it is."""
        return None

    # --- rows -----------------------------------------------------------------------------------

    def insert(self, value: Any, at: Any = None) -> None:
        """Add a row; a value or time that is refused changes nothing."""
        try:
            partial = self.lift(value)
            ticks = self.line.admit(at)
            if self._reach_ticks is None:
                self._reach_ticks = self._reach.ticks(self.line)
        except BaseException:
            if not self.line.end:  # a row that is refused decides nothing
                self.family.forget()
                self.line.undecide()
            raise
        self.push(partial, ticks)
        self.line.append(ticks)
        if not self._reach.everything:
            self.forget(self.line.trim(self._reach.rows, self._reach_ticks))

    def insert_many(self, values: Iterable[Any], at: Iterable[Any] | None = None) -> None:
        """Add rows in order, with their times."""
        rows = listed(values)
        moments = repeat(None, len(rows)) if at is None else listed(at)
        for value, moment in zip(rows, moments, strict=True):
            self.insert(value, moment)

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in vars(self).items() if k not in ("lift", "_merge")}
        return {**state, "family": self.families()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # functions again, over this copy's own family
        self.family = Family()
        self.lift, self._merge = self.aggregate.lifter(self.family), self.aggregate.merger()
        self.remember(state["family"])

    def take_family(self, other: "Shared") -> None:
        """Know what kind of values another structure took: it is the same stream."""
        self.family, self.lift = other.family, other.lift

    def families(self) -> tuple[Any, ...]:
        """Values of the kinds that came, for ``remember``."""
        return self.family.examples()

    def remember(self, families: tuple[Any, ...]) -> None:
        """Know again what kinds of values came."""
        self.aggregate.remember(self.family, families)

    @abstractmethod
    def begin(self, number: int) -> None:
        """An empty structure whose next row has this number."""

    @abstractmethod
    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """The next row's partial and time; the line hears of the row afterwards."""

    @abstractmethod
    def forget(self, limit: int) -> None:
        """Rows with smaller numbers are not asked for any more."""

    @abstractmethod
    def row(self, number: int) -> Partial:
        """One row's own partial."""

    # --- answers --------------------------------------------------------------------------------

    @property
    def active(self) -> range:
        """The numbers of the rows that can be asked for."""
        return range(self.line.first, self.line.end)

    def __len__(self) -> int:
        return self.line.end - self.line.first

    def __bool__(self) -> bool:
        return True  # a structure is a thing, also when it is empty

    @abstractmethod
    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``, both included and there."""

    def lookup(self, left: int, right: int) -> Any:
        """The aggregate of rows ``left`` to ``right``, both included."""
        self._require_active(left, right)
        return self.answer_of(self.aggregate, left, right + 1)

    def _require_active(self, left: int, right: int) -> None:
        if not self.line.first <= left <= right < self.line.end:
            raise BadSpecification(
                f"rows {left} to {right} are not within those that can be asked for, "
                f"{self.line.first} to {self.line.end - 1}"
                if len(self)
                else f"rows {left} to {right}: there are no rows"
            )

    def lookup_many(self, lefts: Iterable[int], rights: Iterable[int]) -> list[Any]:
        """The aggregate of each run of rows."""
        return [self.lookup(left, right) for left, right in zip(lefts, rights, strict=True)]

    def answer(
        self, values: Iterable[Any], lefts: Iterable[int], rights: Iterable[int], *, at: Any = None
    ) -> list[Any]:
        """Add rows, and answer each range as if it was asked as soon as its last row was there.

        So rows and lookups that come mixed are one call. The rows come, whatever the answers.
        """
        return self._answered(values, lefts, rights, at, self.lookup)

    def _answered(
        self,
        values: Iterable[Any],
        lefts: Iterable[int],
        rights: Iterable[int],
        at: Iterable[Any] | None,
        ask: Callable[[int, int], Any],
    ) -> list[Any]:
        ranges = list(zip(lefts, rights, strict=True))
        waiting = sorted(range(len(ranges)), key=lambda i: ranges[i][1], reverse=True)
        rows, moments = listed(values), None if at is None else listed(at)
        if moments is not None and len(moments) != len(rows):
            raise BadSpecification(f"{len(rows)} rows, but {len(moments)} times")
        beyond = self.line.end + len(rows)
        if waiting and ranges[waiting[0]][1] >= beyond:
            left, right = ranges[waiting[0]]
            raise BadSpecification(f"rows {left} to {right}: with the new rows there are {beyond}")
        found: list[Any] = [None] * len(ranges)
        failure: WindrowError | None = None
        for number in range(-1, len(rows)):
            if number >= 0:
                self.insert(rows[number], None if moments is None else moments[number])
            while waiting and ranges[waiting[-1]][1] < self.line.end:
                i = waiting.pop()
                try:
                    found[i] = ask(*ranges[i])
                except WindrowError as error:
                    failure = failure or error
        if failure is not None:
            raise failure
        return found

    def query(self, window: Any, now: Any = None) -> Any:
        """The aggregate of a window as of the newest row, or of a later moment ``now``."""
        if not self.line.end:
            return self.aggregate.empty
        return self.answer_of(self.aggregate, *self.span(window, now))

    def span(self, window: Any, now: Any = None) -> tuple[int, int]:
        """The rows of a window: the first, and the first behind them."""
        found = as_suffix_or_historical(window)
        extent, moment = self.line.extent(found), self.line.now(now)
        if self.line.misses(extent, moment):
            raise Refused(
                f"window {found.label!r} reaches back to rows that were let go: they are kept as "
                "far back as longest= says"
            )
        return self.line.span(extent, moment)

    def answer_of(self, aggregate: Aggregate, left: int, end: int) -> Any:
        """The answer of an aggregate with these partials, for rows ``left`` to before ``end``."""
        return aggregate.answer(self.run(left, end))

    def run(self, left: int, end: int) -> Partial:
        """The partial of the rows from ``left`` to before ``end``, of none if there are none."""
        return self.total(left, end - 1) if left < end else EMPTY

    # --- for tests and the curious --------------------------------------------------------------

    @abstractmethod
    def stored_partials(self) -> int:
        """How many partials are kept."""

    @abstractmethod
    def check_invariants(self) -> None:
        """Raise ``InvariantBroken`` unless everything that is kept is what it should be."""

    def _require(self, found: Partial, numbers: Sequence[int], what: str) -> None:
        expected = reduce(self._merge, map(self.row, numbers), EMPTY)
        if not same(self.aggregate, found, expected):
            raise InvariantBroken(
                f"{type(self).__name__}: {what} is {found!r}, expected {expected!r}"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self.aggregate!r}) of {len(self)} rows>"

    # --- bytes ----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The rows that can be asked for, with their times: versioned, checksummed, no pickle.

        The structure is built from them again, so any shared window of the aggregate can go on.
        """
        line = self.line
        out = [
            count_bytes(line.first),
            codec.encode((line.example, tuple(line.times()), self.families())),
            self.aggregate.partial_schema.write([self.row(number) for number in self.active]),
        ]
        return frame(b"s", self._fingerprint(), b"".join(out))

    def _fingerprint(self) -> bytes:
        owner = f"Shared {self.aggregate.identification}"
        return self.aggregate.partial_schema.fingerprint(owner)

    @classmethod
    def from_bytes(cls, data: bytes, *options: Any, **named: Any) -> Self:
        """What ``to_bytes`` wrote, given the aggregate and whatever else it is made with."""
        made = cls(*options, **named)
        what = f"{cls.__name__}({made.aggregate!r})"
        reader = unframe(b"s", made._fingerprint(), data, what)
        try:
            first = reader.count()
            example, times, examples = codec.decode(reader)
            rows = made.aggregate.partial_schema.read(reader)
            made._restore(first, example, times, rows)
            made.remember(examples)
        except BadBytes:
            raise
        except (ValueError, IndexError, TypeError, ArithmeticError, WindrowError) as error:
            raise BadBytes(f"{what}: the bytes do not describe rows: {error}") from error
        if reader.remaining():
            raise BadBytes(f"{what}: {reader.remaining()} bytes too many")
        return made

    def _restore(
        self, first: int, example: Any, times: Sequence[int], rows: Sequence[Partial]
    ) -> None:
        self.line.restore(first, example, times, len(rows))
        self.begin(first)
        for number, partial in enumerate(rows):
            self.push(partial, times[number] if times else None)


def check_exact(aggregate: Aggregate, partial: Partial) -> None:
    """Raise for a rounded float in a partial that will be subtracted."""
    values = partial if isinstance(partial, tuple) else (partial,)
    for value in values:
        if isinstance(value, tuple):
            check_exact(aggregate, value)
        elif isinstance(value, float):
            raise BadValue(
                f"{aggregate!r} made the partial {partial!r} with a rounded float in it, which "
                "cannot be subtracted exactly: use BInt or LInt, or build it from windrow.Sum"
            )
