"""Counts and sums with a proven error, from a state of a few bytes for each key (sequential).

The state is a counter of ``windrow.approx``, fed with a key's rows in order; states cannot be
merged, so there is no ``combine``. Over ``rows(n)`` every row is one value of the counter. Over
``time(T)`` time is cut in ticks, multiples of ``tick`` from the epoch on, and all rows of a tick
together are one value: see ``windrow.approx.times``. A row's answer is the counter's after all
rows of its key up to its time, those of equal time included: among these the order makes no
difference.
"""

from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.approx.base import Counter
from windrow.approx.counting import Count as ApproximateCount
from windrow.approx.parameters import checked_epsilon, checked_maximum
from windrow.approx.summing import Sum as ApproximateSum
from windrow.errors import BadSpecification
from windrow.times import Duration, duration


class Approximate(Aggregate):
    """What both share: the largest value, the error, and how time is cut."""

    kind = "sequential"
    commutative = True  # where rows have no order, in windows of time; rows windows need one anyway
    reproducible = True
    empty = 0.0

    def __init__(
        self,
        *columns: str,
        maximum: Any,
        epsilon: Any,
        tick: Any,
        clamp: bool,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(*columns, **options)
        self.maximum = checked_maximum(maximum)
        self.epsilon = checked_epsilon(epsilon)
        self.tick = None if tick is None else _checked_tick(tick)
        self.clamp = bool(clamp)

    def counter(self, window: int, timed: bool) -> Counter:
        """A counter of so many values, or ticks."""
        raise NotImplementedError

    def error_bound(self, window: int, timed: bool) -> float:
        """No answer is further from the truth than this, the tick that is partly out included."""
        partly = float(self.maximum) if timed and self.tick not in (None, 1) else 0.0
        return self.counter(window, timed).error_bound + partly


def _checked_tick(tick: Any) -> Duration | int:
    length = duration(tick, "tick=")
    if (length.nanoseconds if isinstance(length, Duration) else length) < 1:
        raise BadSpecification(f"tick= is a length of time, not {tick!r}")
    return length


class ApproxCount(Approximate):
    """About how many rows: with a column, those where it is true, or not missing.

    The error is at most ``epsilon`` × n over ``rows(n)``. Over time it is ``epsilon`` × ticks ×
    ``maximum``, the most rows that a tick may have, and one tick's ``maximum`` more.

    >>> import windrow as wr, pyarrow as pa
    >>> clicks = wr.Rolling(windows=[wr.rows(4)], aggregates=[wr.ApproxCount("hit", epsilon=0.1)])
    >>> clicks(pa.table({"hit": [True, False, None, True]}))["hit_approx_count_4rows"].to_pylist()
    [1.0, 1.0, 1.0, 2.0]
    """

    def __init__(
        self,
        *columns: str,
        epsilon: Any,
        maximum: int = 1,
        tick: Any = None,
        clamp: bool = False,
        **options: Unpack[Options],
    ) -> None:
        self.columns = columns
        super().__init__(
            *columns, maximum=maximum, epsilon=epsilon, tick=tick, clamp=clamp, **options
        )

    @property
    def input_kinds(self) -> tuple[str, ...]:
        """None without a column: then every row counts."""
        return ("any",) if self.columns else ()

    def counter(self, window: int, timed: bool) -> Counter:
        """A counter of so many values, or ticks."""
        if not timed or self.maximum == 1:
            return ApproximateCount(window, self.epsilon)
        return ApproximateSum(window, self.maximum, self.epsilon)


class ApproxSum(Approximate):
    """About the sum of whole numbers from 0 to ``maximum``.

    The error is at most ``epsilon`` × n × ``maximum`` over ``rows(n)``. Over time ``maximum`` is
    the largest sum of a tick, and the error ``epsilon`` × ticks × ``maximum`` and one ``maximum``.

    >>> import windrow as wr, pyarrow as pa
    >>> sent = wr.ApproxSum("bytes", maximum=1500, epsilon=1/100)
    >>> traffic = wr.Rolling(windows=[wr.rows(100)], aggregates=[sent])
    >>> answers = traffic(pa.table({"bytes": [1200] * 1000}))
    >>> abs(answers["bytes_approx_sum_100rows"][-1].as_py() - 120_000) <= 1500
    True
    >>> answers.schema.field("bytes_approx_sum_100rows").metadata
    {b'windrow.error_bound': b'1499.5', b'windrow.epsilon': b'1/100'}
    """

    inputs = ("number",)

    def __init__(
        self,
        *columns: str,
        maximum: int,
        epsilon: Any,
        tick: Any = None,
        clamp: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            *columns, maximum=maximum, epsilon=epsilon, tick=tick, clamp=clamp, **options
        )

    def counter(self, window: int, timed: bool) -> Counter:
        """A counter of so many values, or ticks."""
        return ApproximateSum(window, self.maximum, self.epsilon)
