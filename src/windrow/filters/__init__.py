"""Filters: which keys pass a threshold over their window, without visiting every key."""

from typing import Any

from windrow.aggregates import Aggregate, Count, Max, Min, Sum, as_aggregate
from windrow.filters.base import Filter, Found
from windrow.filters.ci_count import CiCount
from windrow.filters.ci_extreme import CiMax, CiMin
from windrow.filters.ci_sum import CiSum
from windrow.filters.per_key import PerKey

_BY_AGGREGATE: dict[type[Aggregate], type[Filter]] = {
    Count: CiCount,
    Sum: CiSum,
    Max: CiMax,
    Min: CiMin,
}


def filter_for(
    aggregate: Aggregate | type[Aggregate], longest: Any, historical: bool = False, **options: Any
) -> Filter | PerKey:
    """The filter for an aggregate, or one shared window for each key where there is none.

    >>> import windrow as wr
    >>> wr.filters.filter_for(wr.Sum(), longest=3600)
    CiSum(longest=3600, per_size=8)
    >>> wr.filters.filter_for(wr.Mean(), longest=3600)
    PerKey(Mean(), longest=3600)

    ``historical``: windows will be asked for that ended before now, which no filter knows.
    """
    made = as_aggregate(aggregate)
    kind = _BY_AGGREGATE.get(type(made))
    if kind is None or historical or made.nan != "value":
        return PerKey(made, longest, **options)
    return kind(longest, **options)


__all__ = ["CiCount", "CiMax", "CiMin", "CiSum", "Filter", "Found", "PerKey", "filter_for"]
