"""How a sliding window moves: which rows wait, which enter, which leave, and as of when.

Rows come with ticks and partials. One that ``lateness=`` may still see overtaken *waits*, in a
heap; one that is newer than the window's end (``ending=``, ``closed=``) is *ahead*, in a queue;
the others are held (``held``). What is too old leaves before a row enters, and a row whose entering
raises is not in; but its time has come, so that an earlier row cannot miss what has left.
"""

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Any

from windrow.aggregates import Partial
from windrow.durable import Outside
from windrow.errors import BadBytes, BadValue, OutOfOrder, StoreConflict, StoreUnavailable
from windrow.held import Held
from windrow.slides import Kept, Rows, Session, Time
from windrow.times import Clock, Duration, clock_of, is_missing


class Moving:
    """The rows of a sliding window on their way in and out, and its time."""

    def __init__(
        self,
        policy: Rows | Time | Session | Kept,
        held: Held,
        lateness: Duration | int | None,
        inserts_late: bool,
        unit: str | None,
    ) -> None:
        self._policy, self._held = policy, held
        self._lateness, self._inserts_late, self._unit = lateness, inserts_late, unit
        self.clock: Clock | None = None
        """Of the kind of the rows' times, once one was taken."""
        self.now: int | None = None
        """The time of the last row released, or advanced to."""
        self.arrivals = 0
        """Rows taken, ever."""
        self._seen: int | None = None  # the youngest time seen, with lateness
        self._drained: int | None = None  # nothing before this may come any more
        self._waiting: list[tuple[int, int, Partial]] = []  # a heap, with lateness
        self._ahead: deque[tuple[int | None, Partial]] = deque()  # newer than the window's end
        self._most, self._spans, self._sessions = _limits(policy)
        self._lengths: list[int] = []  # of the spans, in ticks
        self._gap = 0  # the shortest pause of a session, in ticks
        self._ending = policy.ending if isinstance(policy, Rows) else 0  # in rows, or in ticks
        self._delay = 0

    @property
    def waiting(self) -> int:
        """Rows that wait for lateness, or are newer than the window's end."""
        return len(self._waiting) + len(self._ahead)

    # --- time -----------------------------------------------------------------------------------

    def clock_for(self, at: Any) -> Clock:
        """The clock; for the first time, one that fits it, tried on the window's lengths."""
        if self.clock is not None:
            if is_missing(at):
                raise BadValue("the row has no time: give every row one, or leave the row out")
            return self.clock
        clock = clock_of(at, self._unit)
        what = "within=" if isinstance(self._policy, Rows) else "the window"
        self._lengths = [clock.length(span.length, what) for span in self._spans]
        gaps = [clock.length(session.gap, what) for session in self._sessions]
        self._gap = min(gaps, default=0)
        if isinstance(self._policy, Time) and self._policy.ending:
            self._ending = clock.length(self._policy.ending, "ending=")
        if self._lateness is not None:
            self._delay = clock.length(self._lateness, "lateness=")
        return clock

    def shown(self, ticks: int | None) -> Any:
        """A moment as the rows' times are."""
        return None if ticks is None or self.clock is None else self.clock.from_ticks(ticks)

    def check_order(self, ticks: int) -> None:
        """Refuse a time that comes too late."""
        if self._lateness is None:
            if self.now is not None and ticks < self.now:
                raise OutOfOrder(
                    f"a row at {self.shown(ticks)} came after one at {self.shown(self.now)}. "
                    "Sort the rows, or say lateness= to allow for bounded disorder"
                )
        elif self._seen is not None and ticks < self._seen - self._delay:
            raise OutOfOrder(
                f"a row at {self.shown(ticks)} came after one at {self.shown(self._seen)}: more "
                f"than the lateness before it, and later rows were already answered. "
                "Allow for more lateness, or leave the row out"
            )
        elif self._drained is not None and ticks < self._drained:
            raise OutOfOrder(
                f"a row at {self.shown(ticks)} came after drain(), which had released all rows up "
                f"to {self.shown(self._drained)}: leave the row out"
            )

    def advance(self, ticks: int) -> None:
        """Time has passed without a row."""
        if self._inserts_late:
            self.now = self._seen = ticks if self._seen is None else max(self._seen, ticks)
        elif self._lateness is None:
            self.now = ticks
        else:
            self._let_time_pass(ticks)
            assert self._seen is not None
            released = self._seen - self._delay - 1
            self.now = released if self.now is None else max(self.now, released)
        self._slide()

    def drain(self) -> None:
        """Release all rows that wait for lateness."""
        self._release(None)
        self._drained = self.now if self._drained is None else max(self._drained, self.now or 0)

    # --- rows -----------------------------------------------------------------------------------

    def take(self, ticks: int | None, partial: Partial) -> None:
        """A row whose order was checked; it has no time where no row has one."""
        if ticks is None or self._lateness is None:
            self._enter(ticks, partial)
            self.arrivals += 1
        elif self._inserts_late:
            self._enter_late(ticks, partial)
            self.arrivals += 1
        else:  # the row itself is not before the frontier: others are let in, then it waits
            self._let_time_pass(ticks)
            self.arrivals += 1
            heappush(self._waiting, (ticks, self.arrivals, partial))

    def _let_time_pass(self, ticks: int) -> None:
        """Let in what a new time releases; where that fails, it has not passed."""
        before, waiting = self._seen, len(self._waiting)
        self._seen = ticks if before is None else max(before, ticks)
        try:
            self._release(self._seen - self._delay)
        except BaseException:
            if len(self._waiting) == waiting or self.now is None:
                self._seen = before
            else:  # no further than to what was let in
                reached = self.now + 1 + self._delay
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
                error.add_note(f"the row that waited since {self.shown(ticks)} is left out")
                raise
            heappop(self._waiting)

    def _enter(self, ticks: int | None, partial: Partial) -> None:
        before, self.now = self.now, ticks
        self._ahead.append((ticks, partial))
        try:
            self._slide()
        except BaseException:  # a combine that raises: the row is not in, what had left stays out
            if self._ahead and self._ahead[-1][1] is partial:
                self._ahead.pop()
            if not (self._spans or self._sessions):
                self.now = before
            raise

    def _enter_late(self, ticks: int, partial: Partial) -> None:
        """At its place; what is too old, or one row too many, leaves before."""
        held = self._held
        self.now = self._seen = seen = ticks if self._seen is None else max(self._seen, ticks)
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
        held, ahead, policy = self._held, self._ahead, self._policy
        now = self.now or 0
        entering = len(ahead)
        if isinstance(policy, Rows):
            entering = max(0, entering - self._ending)
        elif isinstance(policy, Time | Session):
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
            self._end_session(ticks or 0)
            if keep_from is None or (ticks or 0) >= keep_from:
                held.push(ticks, partial)
            ahead.popleft()
        self._end_session(now)

    def _end_session(self, at: int) -> None:
        """All rows leave where the youngest is too long ago."""
        if self._sessions:
            youngest = self._held.ends()[1]
            if youngest is not None and youngest < at - self._gap:
                self._held.evict(len(self._held))

    # --- in a store -----------------------------------------------------------------------------

    def outside(self, families: tuple[Any, ...]) -> Outside:
        """What a store is told besides the rows that are held."""
        return Outside(
            self.arrivals,
            self.shown(self.now if self.now is not None else self._seen),
            self.now,
            self._seen,
            self._drained,
            families,
            self._waiting,
            self._ahead,
        )

    def restore(self, outside: Outside) -> None:
        """Go on from what a store was told."""
        self.arrivals = outside.arrivals
        if outside.example is not None:
            self.clock = self.clock_for(outside.example)
        self.now, self._seen, self._drained = outside.now, outside.seen, outside.drained
        self._waiting = list(outside.waiting)
        heapify(self._waiting)
        self._ahead = deque(outside.ahead)


def _limits(
    policy: Rows | Time | Session | Kept,
) -> tuple[int | None, list[Time], list[Session]]:
    """At most so many rows, which stretches of time, and sessions, rows must be in to stay."""
    cuts = policy.cuts if isinstance(policy, Kept) else (policy,)
    rows = [cut.n for cut in cuts if isinstance(cut, Rows)]
    spans = [cut for cut in cuts if isinstance(cut, Time)]
    spans += [Time(c.within) for c in cuts if isinstance(c, Rows) and c.within is not None]
    return min(rows, default=None), spans, [cut for cut in cuts if isinstance(cut, Session)]


def _count_before(rows: deque[tuple[int | None, Partial]], limit: int) -> int:
    """How many come before the first that is not before the limit."""
    found = 0
    for ticks, _ in rows:
        if (ticks or 0) >= limit:
            break
        found += 1
    return found
