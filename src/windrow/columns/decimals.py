"""Decimals as whole units of their last digit, and such units as decimals and as floats."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.exact import ratio

Array = np.ndarray[Any, Any]
LARGEST_SCALE = 22
"""The largest power of 10 that a float holds."""


def units_of(decimals: pa.Array, valid: Array | None) -> Array | None:
    """Units, 0 where missing; None where 64 bits do not hold them."""
    if not pa.types.is_decimal128(decimals.type) or decimals.type.scale < 0:
        return None
    if not len(decimals):
        return np.empty(0, np.int64)
    parts = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)
    low, high = parts[decimals.offset : decimals.offset + len(decimals)].T
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    return low if (high == low >> 63).all() else None


def decimals_of(high: Array, low: Array, mask: Array | None, kind: pa.DataType) -> pa.Array:
    """Decimals from units of two words of 64 bits each."""
    missing = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    data = pa.py_buffer(np.stack([low, high], axis=1))
    return pa.Array.from_buffers(kind, len(low), [missing, data])


def floats_of(decimals: pa.Array) -> Array:
    """The nearest floats of decimals that are all there."""
    units = units_of(decimals, None)
    if units is None or decimals.type.scale > LARGEST_SCALE:
        return np.array([float(number) for number in decimals.to_pylist()], np.float64)
    power = 10**decimals.type.scale
    found, certain = divided(units, float(power))
    for place in np.flatnonzero(~certain):
        found[place] = ratio(int(units[place]), power)
    return found


def divided(whole: Array, by: float) -> tuple[Array, Array]:
    """Integers divided by a float, and where that certainly is the nearest float.

    x = near + rest exactly; near − q·by is exact, being product's error and a difference of close
    numbers. What is left over moves q by less than its last bit, and only then anything is rounded.
    """
    near = whole.astype(np.float64)
    if not len(near) or np.abs(near).max() <= 2.0**53:
        return near / by, np.ones(len(near), np.bool_)
    small = np.abs(near) < 2.0**62
    rest = (whole - np.where(small, near, 0.0).astype(np.int64)).astype(np.float64)
    quotient = near / by
    product, error = _product(quotient, by)
    left = near - product
    over = ((left - error) + rest) / by
    doubt = (np.abs(left) + np.abs(error) + np.abs(rest)) / by * 2.0**-48
    found = quotient + over
    return found, small & (quotient + (over - doubt) == quotient + (over + doubt))


def _product(a: Array, b: float) -> tuple[Array, Array]:
    """a·b as a float, and what that is off by (Veltkamp, Dekker)."""
    product = a * b
    parts = []
    for x in (a, np.float64(b)):
        large = x * 134217729.0
        high = large - (large - x)
        parts.append((high, x - high))
    (a1, a2), (b1, b2) = parts
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
