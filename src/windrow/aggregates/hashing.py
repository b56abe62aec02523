"""One hash for every process and machine; Python's own differs between processes."""

from decimal import Decimal
from hashlib import blake2b
from typing import Any

from windrow.aggregates import codec
from windrow.aggregates.values import canonical


def hash64(value: Any) -> int:
    """64 bits that are equal for equal values, also for numbers of different types.

    >>> hash64(1) == hash64(1.0) == hash64(True) != hash64("1")
    True
    """
    value = canonical(value)
    if isinstance(value, (float, Decimal)):
        if value == value and abs(value) != float("inf"):
            above, below = value.as_integer_ratio()
            value = above if below == 1 else (above, below, None)  # no row is such a tuple
    elif isinstance(value, bool):
        value = int(value)
    return int.from_bytes(blake2b(codec.encode(value), digest_size=8).digest(), "little")
