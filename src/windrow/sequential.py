"""Sequential aggregates over windows: how many values their counter has, and what is refused."""

from typing import Any

from windrow.aggregates import Aggregate
from windrow.aggregates.approximate import Approximate
from windrow.errors import BadSpecification, Refused
from windrow.slides import Rows, Time, WindowSpec
from windrow.support import require
from windrow.times import Duration


def is_sequential(aggregate: Aggregate) -> bool:
    """Whether its states cannot be merged."""
    return aggregate.kind == "sequential"


def values_of(aggregate: Approximate, label: str, window: WindowSpec) -> int:
    """How many values, or ticks, a window has for a counter; refuses what a counter cannot do."""
    require("columns", aggregate.kind, window.kind)
    assert isinstance(window, Rows | Time)
    plain = not (window.ending or window.after)
    if not plain or (isinstance(window, Time) and window.closed != "right"):
        raise Refused(
            f"window {label!r}: {aggregate!r} goes row by row, so its windows end with the row "
            "itself: without ending=, after= and closed="
        )
    if isinstance(window, Rows):
        if window.within is not None:
            raise Refused(
                f"window {label!r}: {aggregate!r} lets its oldest row go when one comes, and "
                f"cannot look at the time as well: rows({window.n}) without within="
            )
        return window.n
    return _ticks(aggregate, label, window)


def _ticks(aggregate: Approximate, label: str, window: Time) -> int:
    what = f"window {label!r}"
    length, tick = window.length, aggregate.tick
    if tick is None:
        if isinstance(length, Duration):
            raise BadSpecification(
                f"{what}: {aggregate!r} counts time in ticks: say how long one is, and the largest "
                'that one can come to: tick="1s", maximum=..., say'
            )
        tick = 1
    if isinstance(tick, Duration) != isinstance(length, Duration):
        raise BadSpecification(
            f"{what}: {aggregate!r} has a tick in another unit: both with one, or both integers"
        )
    whole = length.nanoseconds if isinstance(length, Duration) else length
    step = tick.nanoseconds if isinstance(tick, Duration) else tick
    count, rest = divmod(whole, step)
    if rest or not count:
        raise BadSpecification(f"{what} is not a whole number of the ticks of {aggregate!r}")
    return count


def check(aggregate: Aggregate, label: str, window: WindowSpec) -> None:
    """Refuse a pair that no engine runs, before there is a table."""
    if not isinstance(aggregate, Approximate):
        raise Refused(
            f"{aggregate!r} is sequential: its states cannot be merged, and of these Rolling runs "
            "ApproxCount and ApproxSum. Give yours a combine, and another kind"
        )
    counter = aggregate.counter(values_of(aggregate, label, window), isinstance(window, Time))
    if not counter.layout.fits_machine_words:
        raise BadSpecification(
            f"window {label!r}: {counter!r} has fields of more than 56 bits: give a smaller window "
            "or maximum"
        )


def metadata(aggregate: Aggregate, label: str, window: WindowSpec) -> dict[str, Any] | None:
    """What an output column's field says of its answers."""
    if not isinstance(aggregate, Approximate):
        return None
    values = values_of(aggregate, label, window)
    bound = aggregate.error_bound(values, isinstance(window, Time))
    return {"windrow.error_bound": bound, "windrow.epsilon": str(aggregate.epsilon)}
