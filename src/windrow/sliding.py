"""A window that slides by itself: a policy, an algorithm, and values with times."""

from collections import deque
from heapq import heappop, heappush
from typing import Any

from windrow.aggregates import Aggregate, Partial, as_aggregate
from windrow.errors import BadSpecification, BadValue, OutOfOrder, Refused, WindrowError
from windrow.plan import Latency, choose
from windrow.slides import Bounds, Rows, Time, WindowSpec, as_window
from windrow.support import require
from windrow.times import Clock, Duration, clock_of, duration


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
    error. Answers are then as of the last row released; ``drain()`` releases the rest.

    ``insert`` answers over the rows so far: where several rows have the same time, the last of
    their answers is the one that has seen them all.

    ``algorithm="auto"`` takes the first that fits (see ``explain()``);
    ``latency="worst_case"`` asks for a bound on every single operation.
    """

    def __init__(
        self,
        window: WindowSpec | str,
        aggregate: Aggregate | type[Aggregate],
        algorithm: Any = "auto",
        latency: Latency = None,
        *,
        lateness: Any = None,
        unit: str | None = None,
    ) -> None:
        policy = as_window(window)
        self.aggregate = as_aggregate(aggregate)
        require("values", self.aggregate.kind, policy.kind)
        if isinstance(policy, Bounds) or policy.after:
            raise Refused(
                f"Sliding answers when a row comes, and {policy.label} looks at later ones: "
                "use Rolling on a table"
            )
        self.policy: Rows | Time = policy
        self.choice = choose(self.aggregate, algorithm, latency)
        self.window = self.choice.algorithm(self.aggregate)
        self._lift = self.aggregate.lifter()
        self._lateness = None if lateness is None else duration(lateness, "lateness=")
        if self._lateness is not None and _amount(self._lateness) < 0:
            raise BadSpecification(f"lateness= must not be negative, not {lateness!r}")
        self._unit = unit
        self._clock: Clock | None = None
        self._now: int | None = None  # the time of the last row released, or advanced to
        self._seen: int | None = None  # the youngest time seen, with lateness
        self._waiting: list[tuple[int, int, Partial]] = []  # a heap, with lateness
        self._arrivals = 0
        self._ahead: deque[tuple[int | None, Partial]] = deque()  # newer than the window's end
        self._times: deque[int | None] = deque()  # of the rows in the window
        self._length = self._ending = self._delay = 0
        if isinstance(self.policy, Rows):
            self._length, self._ending = self.policy.n, self.policy.ending

    # --- time -----------------------------------------------------------------------------------

    def _ticks(self, at: Any) -> int:
        if self._clock is None:
            clock = clock_of(at, self._unit)
            if isinstance(self.policy, Time):
                self._length = clock.length(self.policy.length, "the window")
                self._ending = (
                    clock.length(self.policy.ending, "ending=") if self.policy.ending else 0
                )
            if self._lateness is not None:
                self._delay = clock.length(self._lateness, "lateness=")
            self._clock = clock
        try:
            return self._clock.to_ticks(at)
        except WindrowError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise BadValue(
                f"{at!r} ({type(at).__name__}) is not a time like the ones before, which were "
                f"{self._clock.kind}"
            ) from error

    def _shown(self, ticks: int | None) -> Any:
        return None if ticks is None or self._clock is None else self._clock.from_ticks(ticks)

    # --- rows -----------------------------------------------------------------------------------

    def insert(self, value: Any, at: Any = None) -> Any:
        """Take a row, slide, and return the current answer."""
        if at is None:
            if isinstance(self.policy, Time) or self._lateness is not None or self._clock:
                raise BadSpecification(
                    "insert() needs the row's time: insert(value, at=...). Only a window of rows "
                    "without lateness= can do without, and then for all rows"
                )
            self._enter(None, self._lift(value))
            return self.query()
        if self._clock is None and (self._times or self._ahead):
            raise BadSpecification("rows came without a time before: all with times or all without")
        ticks = self._ticks(at)
        self._check_order(ticks)
        partial = self._lift(value)
        if self._lateness is None:
            self._enter(ticks, partial)
        else:
            heappush(self._waiting, (ticks, self._arrivals, partial))
            self._arrivals += 1
            self._seen = ticks if self._seen is None else max(self._seen, ticks)
            self._release(self._seen - self._delay)
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

    def _release(self, frontier: int) -> None:
        """Let rows before the frontier enter; peers with equal time are never split."""
        while self._waiting and self._waiting[0][0] < frontier:
            ticks, _, partial = heappop(self._waiting)
            self._enter(ticks, partial)

    def _enter(self, ticks: int | None, partial: Partial) -> None:
        self._ahead.append((ticks, partial))
        self._now = ticks
        self._slide()

    def _slide(self) -> None:
        """Evict what is too old, then let in what the window's end has reached."""
        leaving = 0
        if isinstance(self.policy, Rows):
            entering = max(0, len(self._ahead) - self._ending)
            leaving = max(0, len(self._times) + entering - self._length)
            leaving = min(leaving, len(self._times))
        else:
            end = (self._now or 0) - self._ending
            start = end - self._length
            # Integer times: "at most start" is "before start + 1".
            keep_from = start if self.policy.includes_start else start + 1
            enter_before = end + 1 if self.policy.includes_end else end
            while leaving < len(self._times) and self._time(leaving) < keep_from:
                leaving += 1
        self.window.bulk_evict(leaving)
        for _ in range(leaving):
            self._times.popleft()
        ahead = self._ahead
        if isinstance(self.policy, Rows):
            for _ in range(entering):
                self._push(*ahead.popleft())
            return
        while ahead and (ahead[0][0] or 0) < enter_before:
            ticks, partial = ahead.popleft()
            if (ticks or 0) >= keep_from:
                self._push(ticks, partial)

    def _time(self, i: int) -> int:
        return self._times[i] or 0

    def _push(self, ticks: int | None, partial: Partial) -> None:
        self.window.push(partial)
        self._times.append(ticks)

    def advance(self, at: Any) -> Any:
        """Let time pass without a row, and return the answer as of ``at``."""
        if isinstance(self.policy, Rows):
            raise BadSpecification("a window of rows does not slide with time: nothing to advance")
        ticks = self._ticks(at)
        self._check_order(ticks)
        if self._lateness is None:
            self._now = ticks
        else:
            self._seen = ticks if self._seen is None else max(self._seen, ticks)
            self._release(self._seen - self._delay)
            released = self._seen - self._delay - 1
            self._now = released if self._now is None else max(self._now, released)
        self._slide()
        return self.query()

    def drain(self) -> Any:
        """Release the rows that wait for lateness, and return the answer after the last of them."""
        while self._waiting:
            ticks, _, partial = heappop(self._waiting)
            self._enter(ticks, partial)
        if self._seen is not None:
            self._seen += self._delay  # what was drained is answered: nothing may come before it
        return self.query()

    # --- answers --------------------------------------------------------------------------------

    def query(self) -> Any:
        """The current answer; an integer sum that overflows is an error that names the row."""
        try:
            return self.window.query()
        except OverflowError as error:
            where = "" if self._now is None else f" ends with the row at {self._shown(self._now)}"
            error.add_note(f"The window of {len(self)} rows{where}; no row was lost.")
            raise

    def __len__(self) -> int:
        return len(self._times)

    def __bool__(self) -> bool:
        return True  # a window is a thing, also when it is empty

    @property
    def waiting(self) -> int:
        """Rows that wait for lateness, or are newer than the window's end."""
        return len(self._waiting) + len(self._ahead)

    @property
    def oldest(self) -> Any:
        """The time of the oldest row in the window; None where it is empty or rows have no time."""
        return self._shown(self._times[0]) if self._times else None

    @property
    def youngest(self) -> Any:
        """The time of the youngest row in the window."""
        return self._shown(self._times[-1]) if self._times else None

    def explain(self) -> str:
        """Which algorithm, why, and what it costs."""
        return f"{self.aggregate!r} over {self.policy.label}\n{self.choice}"

    def __repr__(self) -> str:
        return (
            f"<Sliding {self.aggregate!r} over {self.policy.label}, "
            f"{type(self.window).__name__}, {len(self)} rows>"
        )


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length
