"""Values that plain comparison orders, whatever they hold: floats with NaN become integers."""

from functools import partial

import numpy as np

from windrow.columns.column import Column, has_nan
from windrow.columns.jit import njit
from windrow.columns.ranges import Array, shared_out

ORDERED_NAN = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def turned(bits, out):  # type: ignore[no-untyped-def]
    """Bits of floats as integers in the same order, and back; every NaN is the largest."""
    for i in range(len(bits)):
        b = bits[i]
        out[i] = b if b >= 0 else b ^ 0x7FFFFFFFFFFFFFFF


def ordered(column: Column, threads: int) -> tuple[Array, bool]:
    """Values that ``>`` orders; True where they are turned floats."""
    values = column.values
    if column.is_float and any(shared_out(len(values), threads, partial(has_nan, values))):
        canonical = np.where(np.isnan(values), np.nan, values) + 0.0
        out = np.empty(len(values), np.int64)
        turned(canonical.view(np.int64), out)
        out[np.isnan(values)] = ORDERED_NAN
        return out, True
    return values, False
