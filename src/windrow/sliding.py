"""A window that slides by itself: a policy, an algorithm, and values with times."""

from datetime import timedelta
from typing import Any, Literal, Self

import numpy as np

from windrow.aggregates import Aggregate, as_aggregate
from windrow.durable import Durable
from windrow.errors import BadSpecification, Refused, StoreConflict
from windrow.held import Held, InFingerTree, InQueue, InTotal, InTree
from windrow.moving import Moving
from windrow.plan import Latency, choose
from windrow.slides import Bounds, Kept, Rows, Session, Time, WindowSpec, as_window
from windrow.stores import Store
from windrow.support import require
from windrow.times import Duration, Length, duration
from windrow.windows import Amta, Fiba, MonoidTree, RunningTotal
from windrow.words import Lines


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
        window: WindowSpec | str | timedelta | np.timedelta64,
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
        self.policy: Rows | Time | Session | Kept = policy
        stored = store is not None or name is not None
        searches = isinstance(policy, Kept)
        self._inserts_late = self._check_late(late, lateness, searches or stored)
        whole = _WHOLE.get(policy.kind)
        self.choice = choose(
            self.aggregate, algorithm, latency, searches, stored, self._inserts_late, whole
        )
        self._lateness = None if lateness is None else duration(lateness, "lateness=")
        if self._lateness is not None and _amount(self._lateness) < 0:
            raise BadSpecification(f"lateness= must not be negative, not {lateness!r}")
        self._unit = unit
        self._held = self._holder()
        self.window = self._held.window
        self._moving = Moving(policy, self._held, self._lateness, self._inserts_late, unit)
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
        without = isinstance(policy, Time) and not policy.includes_end
        if in_order or shifted or without or isinstance(policy, Session):
            raise Refused(
                'late="insert" is for windows of rows or time that end with the current row, in '
                "memory: policies, sessions, ending=, closed= without the row, and store= take "
                'rows in order. Use late="wait"'
            )
        return True

    def _holder(self) -> Held:
        algorithm = self.choice.algorithm
        if self._inserts_late:
            return InFingerTree(Fiba(self.aggregate))
        if algorithm is RunningTotal:
            return InTotal(RunningTotal(self.aggregate))
        if not issubclass(algorithm, MonoidTree):
            return InQueue(algorithm(self.aggregate))
        policies = self.policy.policies if isinstance(self.policy, Kept) else ()
        return InTree(algorithm, self.aggregate, policies)

    # --- rows -----------------------------------------------------------------------------------

    def insert(self, value: Any, at: Any = None) -> Any:
        """Take a row, slide, and return the current answer.

        A value or time that is refused changes nothing. Where a combine raises the row is not in,
        but its time has come: what was too old by then has left, and earlier rows are as late as if
        it were in. An answer that cannot be given (an integer sum that overflows) is an error too,
        but the row is in.
        """
        moving = self._moving
        if at is None:
            if self.policy.needs_time or self._lateness is not None or moving.clock:
                raise BadSpecification(
                    "insert() needs the row's time: insert(value, at=...). Only a window of rows "
                    "without within= and lateness= can do without, and then for all rows"
                )
            self._make_room()
            moving.take(None, self._held.lift(value))
            return self.query()
        if moving.clock is None and moving.arrivals:
            raise BadSpecification("rows came without a time before: all with times or all without")
        clock = moving.clock_for(at)
        ticks = clock.ticks(at)
        moving.check_order(ticks)
        self._make_room()
        moving.take(ticks, self._held.lift(value))
        moving.clock = clock
        return self.query()

    def advance(self, at: Any) -> Any:
        """Let time pass without a row, and return the answer as of ``at``."""
        if not self.policy.needs_time:
            raise BadSpecification("a window of rows does not slide with time: nothing to advance")
        self._require_open()
        moving = self._moving
        clock = moving.clock_for(at)
        ticks = clock.ticks(at)
        moving.check_order(ticks)
        moving.clock = clock
        moving.advance(ticks)
        return self.query()

    def drain(self) -> Any:
        """Release the rows that wait for lateness, and return the answer after the last of them."""
        self._require_open()
        self._moving.drain()
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
        self.restored_through = outside.arrivals
        self._moving.restore(outside)
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
        self._durable.flush(self._moving.outside(held.families()))

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
        self._let_go()
        if conflict is not None:
            raise conflict

    def _let_go(self) -> None:
        durable, self._durable, self._closed = self._durable, None, True
        if durable is not None:
            durable.close()

    def delete(self) -> None:
        """Remove the window and all its keys from the store."""
        if self._durable is None:
            raise BadSpecification("delete(): this window is not in a store (or closed)")
        self._durable.delete()
        self._let_go()

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
            moving = self._moving
            at = "" if moving.now is None else f" (at {moving.shown(moving.now)})"
            error.add_note(f"In the window of row {moving.arrivals - 1}{at}; the row was taken.")
            raise

    def __len__(self) -> int:
        return len(self._held)

    def __bool__(self) -> bool:
        return True  # a window is a thing, also when it is empty

    @property
    def waiting(self) -> int:
        """Rows that wait for lateness, or are newer than the window's end."""
        return self._moving.waiting

    @property
    def oldest(self) -> Any:
        """The time of the oldest row in the window; None where it is empty or rows have no time."""
        return self._moving.shown(self._held.ends()[0])

    @property
    def youngest(self) -> Any:
        """The time of the youngest row in the window."""
        return self._moving.shown(self._held.ends()[1])

    def explain(self) -> str:
        """Which algorithm, why, and what it costs."""
        text = f"{self.aggregate!r} over {self.policy.label}\n{self.choice}"
        if self.aggregate.kind == "holistic":
            text += "\n  holistic: a partial grows with the window, and so does each combine"
        if self.aggregate.approximate:
            text += f"\n  {self.aggregate.approximation}"
        return Lines(text)

    def __repr__(self) -> str:
        return (
            f"<Sliding {self.aggregate!r} over {self.policy.label}, "
            f"{type(self.window).__name__}, {len(self)} rows>"
        )


_WHOLE = {
    "ever": "no row ever leaves",
    "session": "after a pause all rows leave at once, and none before",
}
"""Windows that rows leave all at once, or never."""


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length
