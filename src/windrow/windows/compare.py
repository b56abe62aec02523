"""When two partials count as the same."""

import math
from typing import Any

from windrow.aggregates import EMPTY, Aggregate, Partial

RELATIVE_TOLERANCE = 1e-9


def same(aggregate: Aggregate, a: Partial, b: Partial) -> bool:
    """Equal to the bit, or up to regrouping where the aggregate promises no more than that."""
    if equal(a, b):
        return True
    if aggregate.reproducible or a is EMPTY or b is EMPTY:
        return False
    return close(a, b) if aggregate.agrees is None else aggregate.agrees(a, b)


def equal(a: Any, b: Any) -> bool:
    """Equal values of equal types, where NaN equals NaN and 0.0 does not equal -0.0."""
    if a is b:
        return True
    if a is EMPTY or b is EMPTY or type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return bool(a == b)


def close(a: Any, b: Any) -> bool:
    """Equal, with floats equal up to a small relative error."""
    if isinstance(a, float) and isinstance(b, float):
        return equal(a, b) or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    return equal(a, b)
