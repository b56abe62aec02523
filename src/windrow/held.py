"""How a sliding window holds its rows: what leaves, what enters, and the times at both ends."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from windrow.aggregates import EMPTY, Aggregate, Partial, Schema, Several
from windrow.errors import BadValue, NotMonotone
from windrow.policies import Policy
from windrow.windows import Amta, Fiba, MonoidTree, RunningTotal, Window


class Held(Protocol):
    """Rows in order of time, with an answer."""

    @property
    def window(self) -> Window:
        """The algorithm at work."""

    def lift(self, value: Any) -> Partial:
        """A value's partial; nothing is inserted."""

    def push(self, ticks: int | None, partial: Partial) -> None:
        """A row at the young end; what the policies say leaves."""

    def count_before(self, ticks: int) -> int:
        """How many rows have earlier times."""

    def evict(self, n: int) -> None:
        """Remove the oldest rows."""

    def ends(self) -> tuple[int | None, int | None]:
        """The times of the oldest and of the youngest row."""

    def query(self) -> Any:
        """The answer."""

    def __len__(self) -> int: ...


class InQueue:
    """Any window, with the times of its rows beside it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.lift: Callable[[Any], Partial] = window.lift
        self.query: Callable[[], Any] = window.query
        self._times: deque[int | None] = deque()

    def push(self, ticks: int | None, partial: Partial) -> None:
        """A row at the young end."""
        self.window.push(partial)
        self._times.append(ticks)

    def count_before(self, ticks: int) -> int:
        """Row by row: each is counted once, and then leaves."""
        found = 0
        for time in self._times:
            if (time or 0) >= ticks:
                break
            found += 1
        return found

    def evict(self, n: int) -> None:
        """Remove the oldest rows."""
        try:
            self.window.bulk_evict(n)
        finally:  # also where it stopped half way
            while len(self._times) > len(self.window):
                self._times.popleft()

    def ends(self) -> tuple[int | None, int | None]:
        """The times of the oldest and of the youngest row."""
        return (self._times[0], self._times[-1]) if self._times else (None, None)

    def __len__(self) -> int:
        return len(self._times)


class InTotal:
    """A running total, which all rows leave or none, with the times of its first and last row."""

    def __init__(self, window: RunningTotal) -> None:
        self.window: Window = window
        self.lift: Callable[[Any], Partial] = window.lift
        self.query: Callable[[], Any] = window.query
        self._ends: tuple[int | None, int | None] = (None, None)

    def push(self, ticks: int | None, partial: Partial) -> None:
        """A row at the young end."""
        self.window.push(partial)
        self._ends = (ticks if len(self.window) == 1 else self._ends[0], ticks)

    def count_before(self, ticks: int) -> int:
        """None that may leave by itself."""
        return 0

    def evict(self, n: int) -> None:
        """None, or all."""
        self.window.bulk_evict(n)

    def ends(self) -> tuple[int | None, int | None]:
        """The times of the oldest and of the youngest row."""
        return self._ends if len(self.window) else (None, None)

    def __len__(self) -> int:
        return len(self.window)


class InFingerTree:
    """A finger B-tree by time: rows may come at any time."""

    def __init__(self, window: Fiba) -> None:
        self.window: Fiba = window
        self.lift: Callable[[Any], Partial] = window.lift
        self.query: Callable[[], Any] = window.query
        self.count_before: Callable[[int], int] = window.count_before
        self.evict: Callable[[int], None] = window.bulk_evict

    def push(self, ticks: int | None, partial: Partial) -> None:
        """A row at its place."""
        self.window.push(partial, ticks)

    def ends(self) -> tuple[int | None, int | None]:
        """The times of the oldest and of the youngest row."""
        return self.window.oldest, self.window.youngest

    def __len__(self) -> int:
        return len(self.window)


class Ticks(Aggregate):
    """The youngest time, as a dimension of a tree: rows come in order of time."""

    inputs = ()
    reproducible = True
    schema = Schema.single("int64", "ticks")

    @staticmethod
    def lift() -> int:
        """Set by whoever knows the time."""
        return 0

    @staticmethod
    def combine(_: int, b: int) -> int:
        """The younger."""
        return b

    def merger(self) -> Callable[[Partial, Partial], Partial]:
        """Every row has one."""
        return self.combine


class InTree:
    """A monoid tree: times and what policies look at are further dimensions of the same one."""

    def __init__(
        self,
        algorithm: type[MonoidTree],
        aggregate: Aggregate,
        policies: tuple[Policy, ...],
    ) -> None:
        self.aggregate = aggregate
        self.policies = policies
        parts = [aggregate]
        self._places: list[tuple[int, ...]] = []  # of each policy's aggregates among the parts
        for policy in policies:
            self._places.append(tuple(_place(parts, about) for about in policy.over))
        dimensions = [part.alias(f"p{i}") for i, part in enumerate(parts)]
        self.window: MonoidTree = algorithm(Several(*dimensions, Ticks()))
        self._lift = self.window.lift
        self._taken = False  # a value, ever
        self.check_bytes: Callable[[Partial], None] | None = None
        """Refuses what has no byte form, where that is asked for."""

    def lift(self, value: Any) -> Partial:
        """Every dimension's partial of a value."""
        partial = self._lift(value)
        try:
            for policy, places in zip(self.policies, self._places, strict=True):
                policy.check(self._of(partial, places))
            if self.check_bytes is not None:
                self.check_bytes(partial)
        except BadValue:
            if not self._taken:  # a row that is refused decides nothing
                self.window.forget()
            raise
        self._taken = True
        return partial

    def _of(self, partial: Partial, places: tuple[int, ...]) -> tuple[Partial, ...]:
        return tuple([partial[place] for place in places])

    def push(self, ticks: int | None, partial: Partial) -> None:
        """A row at the young end; then each policy in turn."""
        window = self.window
        if ticks is not None:
            partial = (*partial[:-1], ticks)
        if not self.policies:
            window.push(partial)
            return
        assert isinstance(window, Amta)
        point = window.save_point()
        window.push(partial)
        try:
            for policy, places in zip(self.policies, self._places, strict=True):
                self._enforce(policy, places)
        except BaseException:
            window.take_back(point)
            raise

    def _enforce(self, policy: Policy, places: tuple[int, ...]) -> None:
        window, of = self.window, self._of
        if not len(window):  # the policy before let all rows go
            return
        rows = window.rows() if policy.debug else []
        total = of(window.total(), places)
        if policy.form == "at_most":
            gone = window.keep_longest(lambda partial: policy.fits(of(partial, places)))
        else:
            gone = window.evict_while(lambda _, oldest: policy.leaves(total, of(oldest, places)))
        if policy.debug:
            self._require_monotone(policy, places, total, rows, gone)

    def _require_monotone(
        self,
        policy: Policy,
        places: tuple[int, ...],
        total: tuple[Partial, ...],
        rows: list[Partial],
        gone: int,
    ) -> None:
        """Ask the rule about every run of oldest rows, and of youngest ones."""
        merge = self.window.aggregate.merger()
        said = []
        if policy.form == "at_most":
            partial = rows[-1]
            kept = [partial]
            for row in reversed(rows[:-1]):
                partial = merge(row, partial)
                kept.append(partial)
            said = [not policy.fits(self._of(partial, places)) for partial in reversed(kept)]
        else:
            partial = rows[0]
            for i, row in enumerate(rows):
                partial = merge(partial, row) if i else row
                said.append(policy.leaves(total, self._of(partial, places)))
        if said != [True] * gone + [False] * (len(rows) - gone):
            shown = "".join("x" if leave else "." for leave in said[:60])
            raise NotMonotone(
                f"policy {policy.label!r} is not monotone over these {len(rows)} rows, oldest "
                f"first (x: it and those before must leave): {shown}. True for some oldest rows, "
                "it must be true for fewer of them"
            )

    def count_before(self, ticks: int) -> int:
        """By a search."""
        oldest, _ = self.ends()
        if oldest is None or oldest >= ticks:
            return 0
        return self.window.count_while(lambda partial: partial[-1] < ticks)

    def evict(self, n: int) -> None:
        """Remove the oldest rows."""
        if n == 1:
            self.window.evict()
        elif n:
            self.window.bulk_evict(n)

    def ends(self) -> tuple[int | None, int | None]:
        """The times of the oldest and of the youngest row."""
        if not len(self.window):
            return None, None
        oldest, youngest = self.window.ends()
        return oldest[-1], youngest[-1]

    def query(self) -> Any:
        """The answer of the first dimension."""
        total = self.window.total()
        return self.aggregate.answer(total if total is EMPTY else total[0])

    def families(self) -> tuple[Any, ...]:
        """Values of the kinds that came, to know them again."""
        return self.window.families()

    def remember(self, families: tuple[Any, ...]) -> None:
        """Know again what kinds of values came."""
        self.window.remember(families)
        self._taken = True

    def __len__(self) -> int:
        return len(self.window)


def _place(parts: list[Aggregate], wanted: Aggregate) -> int:
    """Where an aggregate is among the dimensions; added where it is not."""
    for i, part in enumerate(parts):
        same = part.identification == wanted.identification and part.columns == wanted.columns
        if same and type(part) is type(wanted):
            return i
    parts.append(wanted)
    return len(parts) - 1
