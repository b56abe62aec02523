"""A window that slides by itself: a policy, an algorithm, and values with times."""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from windrow.aggregates import Aggregate, Partial, as_aggregate
from windrow.errors import BadSpecification, BadValue, OutOfOrder, Refused, WindrowError
from windrow.plan import Latency, choose
from windrow.slides import Bounds, Rows, Time, WindowSpec, as_window
from windrow.support import require
from windrow.times import Clock, Duration, clock_of, duration, is_missing


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
        self._times: deque[int | None] = deque()  # of the rows in the window
        self._length = self._ending = self._within = self._delay = 0
        if isinstance(self.policy, Rows):
            self._length, self._ending = self.policy.n, self.policy.ending

    # --- time -----------------------------------------------------------------------------------

    def _clock_for(self, at: Any) -> Clock:
        """The clock; for the first time, one that fits it, tried on the window's lengths."""
        if self._clock is not None:
            if is_missing(at):
                raise BadValue("the row has no time: give every row one, or leave the row out")
            return self._clock
        clock = clock_of(at, self._unit)
        if isinstance(self.policy, Time):
            self._length = clock.length(self.policy.length, "the window")
            self._ending = clock.length(self.policy.ending, "ending=") if self.policy.ending else 0
        elif self.policy.within is not None:
            self._within = clock.length(self.policy.within, "within=")
        if self._lateness is not None:
            self._delay = clock.length(self._lateness, "lateness=")
        return clock

    @staticmethod
    def _ticks(clock: Clock, at: Any) -> int:
        try:
            return clock.to_ticks(at)
        except WindrowError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadValue(
                f"{at!r} ({type(at).__name__}) is not a time like the ones before, which were "
                f"{clock.kind}"
            ) from error

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
            partial = self.window.lift(value)
            self._arrivals += 1
            self._enter(None, partial)
            return self.query()
        if self._clock is None and self._arrivals:
            raise BadSpecification("rows came without a time before: all with times or all without")
        clock = self._clock_for(at)
        ticks = self._ticks(clock, at)
        self._check_order(ticks)
        partial = self.window.lift(value)
        self._clock = clock
        self._arrivals += 1
        if self._lateness is None:
            self._enter(ticks, partial)
        else:
            heappush(self._waiting, (ticks, self._arrivals, partial))
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
        elif self._drained is not None and ticks < self._drained:
            raise OutOfOrder(
                f"a row at {self._shown(ticks)} came after drain(), which had released all rows up "
                f"to {self._shown(self._drained)}: leave the row out"
            )

    def _release(self, frontier: int | None) -> None:
        """Let rows before the frontier enter, or all; peers with equal time are never split."""
        while self._waiting and (frontier is None or self._waiting[0][0] < frontier):
            ticks, _, partial = self._waiting[0]
            self._enter(ticks, partial)
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

    def _slide(self) -> None:
        """Evict what is too old, then let in what the window's end has reached."""
        times, ahead = self._times, self._ahead
        now = self._now or 0
        # Integer times: "at most start" is "before start + 1".
        if isinstance(self.policy, Rows):
            entering = max(0, len(ahead) - self._ending)
            leaving = min(len(times), max(0, len(times) + entering - self._length))
            keep_from = now - self._within + 1 if self.policy.needs_time else None
        else:
            end = now - self._ending
            start = end - self._length
            keep_from = start if self.policy.includes_start else start + 1
            enter_before = end + 1 if self.policy.includes_end else end
            entering = _count_before((ticks for ticks, _ in ahead), enter_before)
            leaving = 0
        if keep_from is not None:
            leaving = max(leaving, _count_before(times, keep_from))
        self._evict(leaving)
        for _ in range(entering):
            if keep_from is None or (ahead[0][0] or 0) >= keep_from:
                self._push_next()
            else:
                ahead.popleft()

    def _evict(self, n: int) -> None:
        try:
            self.window.bulk_evict(n)
        finally:  # also where it stopped half way
            while len(self._times) > len(self.window):
                self._times.popleft()

    def _push_next(self) -> None:
        ticks, partial = self._ahead[0]
        self.window.push(partial)
        self._times.append(ticks)
        self._ahead.popleft()

    def advance(self, at: Any) -> Any:
        """Let time pass without a row, and return the answer as of ``at``."""
        if not self.policy.needs_time:
            raise BadSpecification("a window of rows does not slide with time: nothing to advance")
        clock = self._clock_for(at)
        ticks = self._ticks(clock, at)
        self._check_order(ticks)
        self._clock = clock
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
        self._release(None)
        self._drained = self._now if self._drained is None else max(self._drained, self._now or 0)
        return self.query()

    # --- answers --------------------------------------------------------------------------------

    def query(self) -> Any:
        """The current answer; an integer sum that overflows is an error that names the row."""
        try:
            return self.window.query()
        except OverflowError as error:
            at = "" if self._now is None else f" (at {self._shown(self._now)})"
            error.add_note(f"In the window of row {self._arrivals - 1}{at}; the row was taken.")
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
        text = f"{self.aggregate!r} over {self.policy.label}\n{self.choice}"
        if self.aggregate.kind == "holistic":
            text += "\n  holistic: a partial grows with the window, and so does each combine"
        return text

    def __repr__(self) -> str:
        return (
            f"<Sliding {self.aggregate!r} over {self.policy.label}, "
            f"{type(self.window).__name__}, {len(self)} rows>"
        )


def _count_before(times: Iterable[int | None], limit: int) -> int:
    """How many come before the first that is not before the limit."""
    found = 0
    for ticks in times:
        if (ticks or 0) >= limit:
            break
        found += 1
    return found


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length
