"""Sorted runs of values: NaN last, equal values in the order of their rows.

A run is a tuple. Two runs are merged by one sort, which sees that they are runs already; a run of
one value is put in, or taken out, by bisection.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

Run = tuple[Any, ...]


def before_nan(run: Run) -> int:
    """How many values of a run are not NaN."""
    size = len(run)
    while size and run[size - 1] != run[size - 1]:
        size -= 1
    return size


def merged(a: Run, b: Run) -> Run:
    """Both runs as one; of equal values those of ``a`` come first."""
    if len(b) == 1:
        place = len(a) if b[0] != b[0] else bisect_right(a, b[0], 0, before_nan(a))
        return a[:place] + b + a[place:]
    if len(a) == 1:
        solid = before_nan(b)
        place = solid if a[0] != a[0] else bisect_left(b, a[0], 0, solid)
        return b[:place] + a + b[place:]
    i, j = before_nan(a), before_nan(b)
    return (*sorted(a[:i] + b[:j]), *a[i:], *b[j:])


def without(total: Run, oldest: Run) -> Run:
    """What ``total`` was merged from besides ``oldest``, its first part."""
    if len(oldest) == 1:
        solid = before_nan(total)
        value = oldest[0]
        place = solid if value != value else bisect_left(total, value, 0, solid)
        return total[:place] + total[place + 1 :]
    rest, taken = [], 0
    for value in total:
        if taken < len(oldest) and _same(value, oldest[taken]):
            taken += 1
        else:
            rest.append(value)
    return tuple(rest)


def union(a: Run, b: Run) -> Run:
    """The distinct values of two runs of distinct values; of equal ones that of ``a``."""
    if len(b) == 1:
        value, solid = b[0], before_nan(a)
        place = solid if value != value else bisect_left(a, value, 0, solid)
        known = place < len(a) and _same(a[place], value)
        return a if known else a[:place] + b + a[place:]
    i, j = before_nan(a), before_nan(b)
    whole = sorted(a[:i] + b[:j])
    return (*whole[:1], *[y for x, y in pairwise(whole) if x != y], *(a[i:] or b[j:]))


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))
