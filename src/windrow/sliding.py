"""A window that slides by itself: a policy, an algorithm, and values with times."""

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Any, Literal, Self

from windrow.aggregates import Aggregate, Partial, as_aggregate
from windrow.durable import Durable, Outside
from windrow.errors import (
    BadBytes,
    BadSpecification,
    BadValue,
    OutOfOrder,
    Refused,
    StoreConflict,
    StoreUnavailable,
)
from windrow.held import Held, InFingerTree, InQueue, InTree
from windrow.plan import Latency, choose
from windrow.slides import Bounds, Kept, Rows, Time, WindowSpec, as_window
from windrow.stores import Store
from windrow.support import require
from windrow.times import Clock, Duration, Length, clock_of, duration, is_missing
from windrow.windows import Amta, Fiba, MonoidTree


class Sliding:
    """Insert a value with its time; the window slides and the current answer comes back.

    >>> import windrow as wr
    >>> last = wr.Sliding(wr.time(10), wr.Max())
    >>> last.insert(7, at=100), last.insert(3, at=105), last.insert(4, at=110)
    (7, 7, 4)
    >>> last.oldest, last.youngest
    (105, 110)

    Times are integers, datetimes, dates, numpy.datetime64, or floats with ``unit=``, all of one
    kind. Going back in time is an error, unless ``lateness=`` allows for disorder: rows then wait
    until the youngest time seen is more than the lateness ahead of them, enter in order of time
    (in order of arrival where times are equal), and a row that comes too late even for that is an
    error. Answers are then as of the last row released; ``drain()`` releases the rest. With
    ``late="insert"`` rows do not wait: each enters at its place at once, and answers are over the
    rows that have come, as of the youngest time seen.

    ``insert`` answers over the rows so far: where several rows have the same time, the last of
    their answers is the one that has seen them all.

    ``algorithm="auto"`` takes the first that fits (see ``explain()``);
    ``latency="worst_case"`` asks for a bound on every single operation.

    ``store=`` with ``name=`` keeps the window in a store (``windrow.stores``), and only a little of
    it in this process. ``flush()`` writes all rows so far; it happens by itself every few thousand
    rows. Opened again under its name, also after a crash, the window goes on from its last flush:
    ``restored_through`` says how many rows that were, so that the others can be inserted again.
    """

    def __init__(
        self,
        window: WindowSpec | str,
        aggregate: Aggregate | type[Aggregate],
        algorithm: Any = "auto",
        latency: Latency = None,
        *,
        lateness: Length | None = None,
        late: Literal["wait", "insert"] = "wait",
        unit: str | None = None,
        store: Store | None = None,
        name: str | None = None,
    ) -> None:
        policy = as_window(window)
        self.aggregate = as_aggregate(aggregate)
        require("values", self.aggregate.kind, policy.kind)
        if isinstance(policy, Bounds) or (not isinstance(policy, Kept) and policy.after):
            raise Refused(
                f"Sliding answers when a row comes, and {policy.label} looks at later ones: "
                "use Rolling on a table"
            )
        self.policy: Rows | Time | Kept = policy
        stored = store is not None or name is not None
        searches = isinstance(policy, Kept)
        self._inserts_late = self._check_late(late, lateness, searches or stored)
        self.choice = choose(
            self.aggregate, algorithm, latency, searches, stored, self._inserts_late
        )
        self._lateness = None if lateness is None else duration(lateness, "lateness=")
        if self._lateness is not None and _amount(self._lateness) < 0:
            raise BadSpecification(f"lateness= must not be negative, not {lateness!r}")
        self._unit = unit
        self._clock: Clock | None = None
        self._now: int | None = None  # the time of the last row released, or advanced to
        self._seen: int | None = None  # the youngest time seen, with lateness
        self._drained: int | None = None  # nothing before this may come any more
        self._waiting: list[tuple[int, int, Partial]] = []  # a heap, with lateness
        self._arrivals = 0
        self._ahead: deque[tuple[int | None, Partial]] = deque()  # newer than the window's end
        self._most, self._spans = self._limits()
        self._lengths: list[int] = []  # of the spans, in ticks
        self._ending = policy.ending if isinstance(policy, Rows) else 0  # in rows, or in ticks
        self._delay = 0
        self._held = self._holder()
        self.window = self._held.window
        self.restored_through = 0
        self._durable: Durable | None = None
        self._closed = False
        if stored:
            self._open(store, name)

    def _check_late(self, late: Any, lateness: Any, in_order: bool) -> bool:
        if late not in ("wait", "insert"):
            raise BadSpecification(f'late= is "wait" or "insert", not {late!r}')
        if late == "wait":
            return False
        if lateness is None:
            raise BadSpecification('late="insert" needs lateness=: how much later a row may come')
        policy = self.policy
        shifted = isinstance(policy, Rows | Time) and policy.ending
        if in_order or shifted or (isinstance(policy, Time) and not policy.includes_end):
            raise Refused(
                'late="insert" is for windows of rows or time that end with the current row, in '
                "memory: policies, ending=, closed= without the row, and store= take rows in "
                'order. Use late="wait"'
            )
        return True

    def _limits(self) -> tuple[int | None, list[Time]]:
        """At most so many rows, and which stretches of time, rows must be within to stay."""
        policy = self.policy
        cuts = policy.cuts if isinstance(policy, Kept) else (policy,)
        rows = [cut.n for cut in cuts if isinstance(cut, Rows)]
        spans = [cut for cut in cuts if isinstance(cut, Time)]
        spans += [Time(c.within) for c in cuts if isinstance(c, Rows) and c.within is not None]
        return min(rows, default=None), spans

    def _holder(self) -> Held:
        algorithm = self.choice.algorithm
        if self._inserts_late:
            return InFingerTree(Fiba(self.aggregate))
        if not issubclass(algorithm, MonoidTree):
            return InQueue(algorithm(self.aggregate))
        policies = self.policy.policies if isinstance(self.policy, Kept) else ()
        return InTree(algorithm, self.aggregate, policies)

    # --- time -----------------------------------------------------------------------------------

    def _clock_for(self, at: Any) -> Clock:
        """The clock; for the first time, one that fits it, tried on the window's lengths."""
        if self._clock is not None:
            if is_missing(at):
                raise BadValue("the row has no time: give every row one, or leave the row out")
            return self._clock
        clock = clock_of(at, self._unit)
        what = "within=" if isinstance(self.policy, Rows) else "the window"
        self._lengths = [clock.length(span.length, what) for span in self._spans]
        if isinstance(self.policy, Time) and self.policy.ending:
            self._ending = clock.length(self.policy.ending, "ending=")
        if self._lateness is not None:
            self._delay = clock.length(self._lateness, "lateness=")
        return clock

    def _shown(self, ticks: int | None) -> Any:
        return None if ticks is None or self._clock is None else self._clock.from_ticks(ticks)

    # --- rows -----------------------------------------------------------------------------------

    def insert(self, value: Any, at: Any = None) -> Any:
        """Take a row, slide, and return the current answer.

        A value or time that is refused changes nothing. An answer that cannot be given (an integer
        sum that overflows) is an error too, but the row is in.
        """
        if at is None:
            if self.policy.needs_time or self._lateness is not None or self._clock:
                raise BadSpecification(
                    "insert() needs the row's time: insert(value, at=...). Only a window of rows "
                    "without within= and lateness= can do without, and then for all rows"
                )
            self._make_room()
            partial = self._held.lift(value)
            self._enter(None, partial)
            self._arrivals += 1
            return self.query()
        if self._clock is None and self._arrivals:
            raise BadSpecification("rows came without a time before: all with times or all without")
        clock = self._clock_for(at)
        ticks = clock.ticks(at)
        self._check_order(ticks)
        self._make_room()
        partial = self._held.lift(value)
        if self._inserts_late:
            self._enter_late(ticks, partial)
            self._arrivals += 1
        elif self._lateness is None:
            self._enter(ticks, partial)
            self._arrivals += 1
        else:  # the row itself is not before the frontier: others are let in, then it waits
            self._let_time_pass(ticks)
            self._arrivals += 1
            heappush(self._waiting, (ticks, self._arrivals, partial))
        self._clock = clock
        return self.query()

    def _check_order(self, ticks: int) -> None:
        if self._lateness is None:
            if self._now is not None and ticks < self._now:
                raise OutOfOrder(
                    f"a row at {self._shown(ticks)} came after one at {self._shown(self._now)}. "
                    "Sort the rows, or say lateness= to allow for bounded disorder"
                )
        elif self._seen is not None and ticks < self._seen - self._delay:
            raise OutOfOrder(
                f"a row at {self._shown(ticks)} came after one at {self._shown(self._seen)}: more "
                f"than the lateness before it, and later rows were already answered. "
                "Allow for more lateness, or leave the row out"
            )
        elif self._drained is not None and ticks < self._drained:
            raise OutOfOrder(
                f"a row at {self._shown(ticks)} came after drain(), which had released all rows up "
                f"to {self._shown(self._drained)}: leave the row out"
            )

    def _let_time_pass(self, ticks: int) -> None:
        """Let in what a new time releases; where that fails, it has not passed."""
        before, waiting = self._seen, len(self._waiting)
        self._seen = ticks if before is None else max(before, ticks)
        try:
            self._release(self._seen - self._delay)
        except BaseException:
            if len(self._waiting) == waiting or self._now is None:
                self._seen = before
            else:  # no further than to what was let in
                reached = self._now + 1 + self._delay
                self._seen = reached if before is None else max(before, reached)
            raise

    def _release(self, frontier: int | None) -> None:
        """Let rows before the frontier enter, or all; peers with equal time are never split."""
        while self._waiting and (frontier is None or self._waiting[0][0] < frontier):
            ticks, _, partial = self._waiting[0]
            try:
                self._enter(ticks, partial)
            except (StoreUnavailable, StoreConflict, BadBytes):
                raise
            except Exception as error:  # it would stand in the way of all others
                heappop(self._waiting)
                error.add_note(f"the row that waited since {self._shown(ticks)} is left out")
                raise
            heappop(self._waiting)

    def _enter(self, ticks: int | None, partial: Partial) -> None:
        before, self._now = self._now, ticks
        self._ahead.append((ticks, partial))
        try:
            self._slide()
        except BaseException:  # a combine that raises: the row is not in, what had left stays out
            if self._ahead and self._ahead[-1][1] is partial:
                self._ahead.pop()
            self._now = before
            raise

    def _enter_late(self, ticks: int, partial: Partial) -> None:
        """At its place; what is too old, or one row too many, leaves before."""
        held = self._held
        seen = ticks if self._seen is None else max(self._seen, ticks)
        keep_from = self._keep_from(seen)
        if keep_from is not None:
            held.evict(held.count_before(keep_from))
        if keep_from is None or ticks >= keep_from:
            oldest, _ = held.ends()
            if self._most is None or len(held) < self._most:
                held.push(ticks, partial)
            elif oldest is not None and ticks >= oldest:
                held.evict(1)
                held.push(ticks, partial)
        self._now = self._seen = seen

    def _keep_from(self, now: int) -> int | None:
        """The earliest time that is still in the window; "later than" is "from the next on"."""
        if not self._spans:
            return None
        return max(
            now - length + (not span.includes_start)
            for span, length in zip(self._spans, self._lengths, strict=True)
        )

    def _slide(self) -> None:
        """Evict what is too old, then let in what the window's end has reached."""
        held, ahead, policy = self._held, self._ahead, self.policy
        now = self._now or 0
        entering = len(ahead)
        if isinstance(policy, Rows):
            entering = max(0, entering - self._ending)
        elif isinstance(policy, Time):
            now -= self._ending
            entering = _count_before(ahead, now + policy.includes_end)
        keep_from = self._keep_from(now)
        leaving = 0
        if self._most is not None:
            leaving = min(len(held), max(0, len(held) + entering - self._most))
        if keep_from is not None:
            leaving = max(leaving, held.count_before(keep_from))
        held.evict(leaving)
        for _ in range(entering):
            ticks, partial = ahead[0]
            if keep_from is None or (ticks or 0) >= keep_from:
                held.push(ticks, partial)
            ahead.popleft()

    def advance(self, at: Any) -> Any:
        """Let time pass without a row, and return the answer as of ``at``."""
        if not self.policy.needs_time:
            raise BadSpecification("a window of rows does not slide with time: nothing to advance")
        self._require_open()
        clock = self._clock_for(at)
        ticks = clock.ticks(at)
        self._check_order(ticks)
        self._clock = clock
        if self._inserts_late:
            self._now = self._seen = ticks if self._seen is None else max(self._seen, ticks)
        elif self._lateness is None:
            self._now = ticks
        else:
            self._let_time_pass(ticks)
            assert self._seen is not None
            released = self._seen - self._delay - 1
            self._now = released if self._now is None else max(self._now, released)
        self._slide()
        return self.query()

    def drain(self) -> Any:
        """Release the rows that wait for lateness, and return the answer after the last of them."""
        self._require_open()
        self._release(None)
        self._drained = self._now if self._drained is None else max(self._drained, self._now or 0)
        return self.query()

    # --- in a store -----------------------------------------------------------------------------

    def _open(self, store: Any, name: Any) -> None:
        held = self._held
        assert isinstance(held, InTree)
        assert isinstance(held.window, Amta)
        policy = self.policy
        for rule in policy.policies if isinstance(policy, Kept) else ():
            rule.require_identification()
        kept = policy.identification if isinstance(policy, Kept) else repr(policy)
        specification = (
            f"{self.aggregate!r} ({self.aggregate.identification}) over {kept}, "
            f"lateness {self._lateness!r}, unit {self._unit!r}"
        )
        durable = Durable(store, name, held.window, specification)
        try:
            outside = durable.open()
        except BaseException:
            durable.close()
            raise
        self._durable = durable
        held.check_bytes = held.window.aggregate.partial_schema.checker()
        self._arrivals = self.restored_through = outside.arrivals
        if outside.example is not None:
            self._clock = self._clock_for(outside.example)
        self._now, self._seen, self._drained = outside.now, outside.seen, outside.drained
        self._waiting = list(outside.waiting)
        heapify(self._waiting)
        self._ahead = deque(outside.ahead)
        if outside.families:
            held.remember(outside.families)

    def _require_open(self) -> None:
        if self._closed:
            raise BadSpecification("this window was closed: open it again by its name")

    def __getstate__(self) -> dict[str, Any]:
        if self._durable is not None:
            raise Refused(
                "a window in a store cannot be copied or pickled: open it by its name instead"
            )
        return vars(self)

    def _make_room(self) -> None:
        """Write before a row is taken, so that one that cannot be written is not."""
        self._require_open()
        if self._durable is not None and self._durable.full:
            self.flush()

    def flush(self) -> None:
        """Write all rows so far to the store: what is written survives this process."""
        if self._durable is None:
            raise BadSpecification(
                "this window is in memory only (or closed): store= and name= keep it in a store"
            )
        held = self._held
        assert isinstance(held, InTree)
        self._durable.flush(
            Outside(
                self._arrivals,
                self._shown(self._now if self._now is not None else self._seen),
                self._now,
                self._seen,
                self._drained,
                held.families(),
                self._waiting,
                self._ahead,
            )
        )

    def close(self, *, flush: bool = True) -> None:
        """Flush, and let go of the store; the store is closed with its last window.

        ``flush=False`` lets go of it as a crash would: what was not flushed is forgotten. A window
        that another process has taken over is let go of, with the error.
        """
        if self._durable is None:
            return
        conflict: StoreConflict | None = None
        if flush:
            try:
                self.flush()
            except StoreConflict as error:
                conflict = error
        self._durable.close()
        self._durable, self._closed = None, True
        if conflict is not None:
            raise conflict

    def delete(self) -> None:
        """Remove the window and all its keys from the store."""
        if self._durable is None:
            raise BadSpecification("delete(): this window is not in a store (or closed)")
        self._durable.delete()
        self._durable.close()
        self._durable, self._closed = None, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(flush=kind is None)  # where a block raised, what was not flushed is not kept

    # --- answers --------------------------------------------------------------------------------

    def query(self) -> Any:
        """The current answer; an integer sum that overflows is an error that names the row."""
        try:
            return self._held.query()
        except OverflowError as error:
            at = "" if self._now is None else f" (at {self._shown(self._now)})"
            error.add_note(f"In the window of row {self._arrivals - 1}{at}; the row was taken.")
            raise

    def __len__(self) -> int:
        return len(self._held)

    def __bool__(self) -> bool:
        return True  # a window is a thing, also when it is empty

    @property
    def waiting(self) -> int:
        """Rows that wait for lateness, or are newer than the window's end."""
        return len(self._waiting) + len(self._ahead)

    @property
    def oldest(self) -> Any:
        """The time of the oldest row in the window; None where it is empty or rows have no time."""
        return self._shown(self._held.ends()[0])

    @property
    def youngest(self) -> Any:
        """The time of the youngest row in the window."""
        return self._shown(self._held.ends()[1])

    def explain(self) -> str:
        """Which algorithm, why, and what it costs."""
        text = f"{self.aggregate!r} over {self.policy.label}\n{self.choice}"
        if self.aggregate.kind == "holistic":
            text += "\n  holistic: a partial grows with the window, and so does each combine"
        if self.aggregate.approximate:
            text += f"\n  {self.aggregate.approximation}"
        return text

    def __repr__(self) -> str:
        return (
            f"<Sliding {self.aggregate!r} over {self.policy.label}, "
            f"{type(self.window).__name__}, {len(self)} rows>"
        )


def _count_before(rows: deque[tuple[int | None, Partial]], limit: int) -> int:
    """How many come before the first that is not before the limit."""
    found = 0
    for ticks, _ in rows:
        if (ticks or 0) >= limit:
            break
        found += 1
    return found


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length
