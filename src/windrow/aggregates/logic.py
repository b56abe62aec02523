"""Booleans: whether all rows, or any row, of the window are true."""

from typing import Any as Anything

import numpy as np

from windrow.aggregates.extremes import Max, Min
from windrow.errors import BadValue


def truth(value: Anything) -> bool:
    """A boolean; nothing else is taken for one."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise BadValue(
        f"{value!r} is a {type(value).__name__}, not a boolean: compare it with something first"
    )


class All(Min):
    """Whether all values are true: of booleans, the smallest.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.All())
    >>> window.insert(True); window.insert(False)
    >>> window.query()
    False
    """

    inputs = ("boolean",)
    lift = staticmethod(truth)


class Any(Max):
    """Whether any value is true: of booleans, the largest."""

    inputs = ("boolean",)
    lift = staticmethod(truth)
