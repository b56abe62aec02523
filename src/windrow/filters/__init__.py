"""Filters: which keys pass a threshold over their window, without visiting every key."""

from typing import Any

from windrow.aggregates import Aggregate, Count, Max, Min, Sum, as_aggregate
from windrow.errors import Refused
from windrow.filters.base import Filter, Found
from windrow.filters.ci_count import CiCount
from windrow.filters.ci_extreme import CiMax, CiMin
from windrow.filters.ci_sum import CiSum

_BY_AGGREGATE: dict[type[Aggregate], type[Filter]] = {
    Count: CiCount,
    Sum: CiSum,
    Max: CiMax,
    Min: CiMin,
}


def filter_for(aggregate: Aggregate | type[Aggregate], longest: Any, **options: Any) -> Filter:
    """The filter for an aggregate; other aggregates are refused with the way out.

    >>> import windrow as wr
    >>> wr.filters.filter_for(wr.Sum(), longest=3600)
    CiSum(longest=3600, per_size=8)
    """
    kind = type(as_aggregate(aggregate))
    if kind not in _BY_AGGREGATE:
        raise Refused(
            f"there is no filter for {kind.__name__}: only Count, Sum of values that are not "
            "negative, Max and Min have an index that finds keys by threshold. Use wr.Hub, which "
            "keeps one shared window for each key, and compare its answers"
        )
    return _BY_AGGREGATE[kind](longest, **options)


__all__ = ["CiCount", "CiMax", "CiMin", "CiSum", "Filter", "Found", "filter_for"]
