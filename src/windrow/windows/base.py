"""What every in-order window does: rows enter at the young end and leave at the old end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar, Final, Self

from windrow.aggregates import EMPTY, Aggregate, Family, Partial, as_aggregate, codec
from windrow.aggregates.codec import count_bytes
from windrow.aggregates.schema import frame, unframe
from windrow.errors import (
    BadBytes,
    BadSpecification,
    EmptyWindow,
    InvariantBroken,
    Refused,
    WindrowError,
)
from windrow.windows.compare import same

Runs = Sequence[list[Partial]]


class _Stale:
    """Marks an answer that must be computed again; stays itself when copied."""

    def __reduce__(self) -> str:
        return "STALE"


STALE: Final = _Stale()


@dataclass(frozen=True)
class Card:
    """An algorithm's figures: applications of ⊕ per operation, and partials kept for n rows."""

    title: str
    needs: str
    insert: str
    evict: str
    query: str
    partials: str


class Window(ABC):
    """One in-order window over one aggregate.

    ``insert`` a value, ``evict`` the oldest, ``query`` the aggregate of what is there: in any
    order, any number of times. A query of an empty window answers what the aggregate answers for
    no rows (null; Count answers 0). An insert or evict that raises changes nothing; a bulk eviction
    whose ⊕ raises half way has evicted what it had reached.
    """

    card: ClassVar[Card]
    __slots__ = ("_answer", "_family", "_lift", "_merge", "aggregate")

    def __init__(self, aggregate: Aggregate | type[Aggregate]) -> None:
        self.aggregate = as_aggregate(aggregate)
        reason = self.refuses(self.aggregate)
        if reason:
            raise Refused(f"{type(self).__name__}({self.aggregate!r}) is refused: {reason}")
        self._family = Family()
        self._lift = self.aggregate.lifter(self._family)
        self._merge = self.aggregate.merger()
        self._answer: Any = STALE
        self._reset()

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Why this algorithm would not be right for an aggregate, or None where it is."""
        return None

    # --- the protocol ---------------------------------------------------------------------------

    def insert(self, value: Any) -> None:
        """Add a value at the young end."""
        self.push(self._lift(value))

    def lift(self, value: Any) -> Partial:
        """A value's partial, checked against the values that came before; nothing is inserted."""
        return self._lift(value)

    @abstractmethod
    def push(self, partial: Partial) -> None:
        """Add one row's partial at the young end: ``insert`` without ``lift``."""

    @abstractmethod
    def evict(self) -> None:
        """Remove the oldest row."""

    def query(self) -> Any:
        """The aggregate of the rows in the window, kept until the next change."""
        if self._answer is STALE:
            self._answer = self.aggregate.answer(self.total())
        answer = self._answer
        return answer.copy() if type(answer) is dict else answer

    @abstractmethod
    def total(self) -> Partial:
        """The partial of the whole window: ``query`` without ``lower``."""

    @abstractmethod
    def __len__(self) -> int: ...

    def __bool__(self) -> bool:
        return True  # a window is a thing, also when it is empty

    def bulk_evict(self, n: int) -> None:
        """Remove the ``n`` oldest rows."""
        self._check_bulk(n)
        if n == len(self):
            self._reset()
            self._answer = STALE
            return
        for _ in range(n):
            self.evict()

    def _check_bulk(self, n: int) -> None:
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
            raise BadSpecification(f"bulk_evict takes a number of rows from 0 on, not {n!r}")
        if n > len(self):
            raise EmptyWindow(f"bulk_evict({n}): the window holds {len(self)} rows")

    def clear(self) -> None:
        """Remove every row; values of another kind may then come."""
        self._family.forget()
        self._reset()
        self._answer = STALE

    @abstractmethod
    def _reset(self) -> None:
        """An empty structure."""

    # --- for tests and the curious --------------------------------------------------------------

    @abstractmethod
    def stored_partials(self) -> int:
        """How many partials are kept between operations."""

    @abstractmethod
    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Raise ``InvariantBroken`` unless the paper's invariants hold.

        ``rows`` are the partials of the window's rows, oldest first: algorithms that overwrite
        them can check their contents only when told.
        """

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise InvariantBroken(f"{type(self).__name__}: {what}")

    def _require_length(self, rows: Sequence[Partial] | None) -> None:
        if rows is not None:
            self._require(len(rows) == len(self), f"holds {len(self)} rows, expected {len(rows)}")

    def _require_same(self, found: Partial, rows: Iterable[Partial], what: str) -> None:
        expected = reduce(self._merge, rows, EMPTY)
        self._require(
            same(self.aggregate, found, expected), f"{what} is {found!r}, expected {expected!r}"
        )

    def _require_suffixes(
        self, aggs: Sequence[Partial], rows: Sequence[Partial], what: str
    ) -> None:
        """Each of ``aggs`` is the aggregate from its row to the last one."""
        expected: Partial = EMPTY
        for i in range(len(rows) - 1, -1, -1):
            expected = self._merge(rows[i], expected)
            if i < len(aggs):
                self._require_same(aggs[i], [expected], f"{what}[{i}]")

    def _require_prefixes(
        self, aggs: Sequence[Partial], rows: Sequence[Partial], what: str
    ) -> None:
        """Each of ``aggs`` is the aggregate from the first row to its own."""
        expected: Partial = EMPTY
        for i, (agg, row) in enumerate(zip(aggs, rows, strict=True)):
            expected = self._merge(expected, row)
            self._require_same(agg, [expected], f"{what}[{i}]")

    def families(self) -> tuple[Any, ...]:
        """Values of the kinds that came, for ``remember``."""
        return self._family.examples()

    def forget(self) -> None:
        """Whatever kind of values came, others may come."""
        self._family.forget()

    def remember(self, families: tuple[Any, ...]) -> None:
        """Know again, after a reload, what kinds of values came."""
        self.aggregate.remember(self._family, families)

    # --- bytes ----------------------------------------------------------------------------------

    @abstractmethod
    def _state(self) -> tuple[list[int], Runs]:
        """Everything needed to go on, as integers and runs of partials."""

    @abstractmethod
    def _restore(self, numbers: list[int], runs: Runs) -> None:
        """Take over what ``_state`` gave."""

    def __reduce__(self) -> tuple[Any, ...]:
        numbers, runs = self._state()
        return _rebuilt, (type(self), self.aggregate, numbers, runs, self._family.examples())

    @classmethod
    def _fingerprint(cls, aggregate: Aggregate) -> bytes:
        return aggregate.partial_schema.fingerprint(f"{cls.__name__} {aggregate.identification}")

    def to_bytes(self) -> bytes:
        """The window with all its rows: versioned, checksummed, no pickle."""
        numbers, runs = self._state()
        out = [count_bytes(len(numbers)), *map(count_bytes, numbers), count_bytes(len(runs))]
        out += [self.aggregate.partial_schema.write(run) for run in runs]
        out.append(codec.encode(self._family.examples()))
        return frame(b"w", self._fingerprint(self.aggregate), b"".join(out))

    @classmethod
    def from_bytes(cls, data: bytes, aggregate: Aggregate | type[Aggregate]) -> Self:
        """The window that ``to_bytes`` wrote, given the same aggregate."""
        window = cls(aggregate)
        aggregate = window.aggregate
        what = f"{cls.__name__}({aggregate!r})"
        reader = unframe(b"w", cls._fingerprint(aggregate), data, what)
        numbers = [reader.count() for _ in range(reader.count())]
        runs = [aggregate.partial_schema.read(reader) for _ in range(reader.count())]
        examples = codec.decode(reader)
        if reader.remaining():
            raise BadBytes(f"{what}: {reader.remaining()} bytes too many")
        try:
            window._restore(numbers, runs)
            window.check_invariants()
            aggregate.remember(window._family, examples)
        except (ValueError, IndexError, TypeError, ArithmeticError, WindrowError) as error:
            raise BadBytes(f"{what}: the bytes do not describe a window: {error}") from error
        return window

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self.aggregate!r}) of {len(self)} rows>"

    def _empty(self) -> EmptyWindow:
        return EmptyWindow(f"evict: this {type(self).__name__} window is empty")


def _rebuilt(
    kind: type[Window], aggregate: Aggregate, numbers: list[int], runs: Runs, examples: Any
) -> Window:
    """A window from its state, for copies and pickles."""
    window = kind(aggregate)
    window._restore(numbers, runs)
    aggregate.remember(window._family, examples)
    return window
