"""A number for every key that is the same in every process: where a key's counter is kept."""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.column import numbers_of, plain_column, valid_of
from windrow.columns.jit import njit
from windrow.columns.ranges import Array

_NULL = np.uint64(0x6E756C6C)


@njit(cache=True, nogil=True, inline="always")
def mixed(h):
    """All bits of a number, well mixed (splitmix64)."""
    h = np.uint64(h) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True)
def _mix_numbers(numbers, out):
    for i in range(len(numbers)):
        out[i] = mixed(np.uint64(numbers[i]))


@njit(cache=True, nogil=True)
def _mix_bytes(data, offsets, out):
    """FNV-1a over the bytes of each text, then mixed."""
    for i in range(len(offsets) - 1):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        out[i] = mixed(h)


@njit(cache=True, nogil=True)
def _joined(out, own):
    for i in range(len(out)):
        out[i] = mixed(out[i] * np.uint64(31) + own[i])


def key_hashes(keys: list[pa.Array], size: int) -> Array:
    """One for each row, of all its key columns."""
    out = np.zeros(size, np.uint64)
    for array in keys:
        _joined(out, _hashes(plain_column(array)))
    return out


def _hashes(array: pa.Array) -> Array:
    kind = array.type
    out = np.empty(len(array), np.uint64)
    if pa.types.is_floating(kind):
        plain = pc.if_else(pc.is_nan(array), math.nan, pc.add(array, 0.0)).cast(pa.float64())
        _mix_numbers(numbers_of(plain).view(np.int64), out)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        _mix_numbers(numbers_of(array).astype(np.int64), out)
    elif pa.types.is_temporal(kind) and kind.bit_width in (32, 64):
        _mix_numbers(
            numbers_of(array.view(pa.int32() if kind.bit_width == 32 else pa.int64())), out
        )
    else:
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        texts = array.cast(pa.large_binary() if binary else pa.large_string())
        _, places, data = texts.buffers()
        offsets = np.frombuffer(places, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        empty = np.empty(0, np.uint8)
        _mix_bytes(empty if data is None else np.frombuffer(data, np.uint8), offsets, out)
    valid = valid_of(array)
    if valid is not None:
        out[~valid] = _NULL
    return out
