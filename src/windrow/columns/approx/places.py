"""Which row of a bank a key has: integers, and texts whose bytes lie one behind the other."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
import pyarrow as pa

from windrow.columns.approx.bank import enter, find
from windrow.columns.approx.hashes import mixed
from windrow.columns.column import plain_column
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.errors import BadValue


@njit(cache=True, nogil=True)
def find_integers(index, keys, asked, found):
    """The rows of keys, −1 for those that have none."""
    for j in range(len(asked)):
        found[j] = find(index, keys, asked[j])


@njit(cache=True, nogil=True)
def place_integers(index, keys, used, asked, found, done):
    """The rows of keys, new ones for those that have none; until the free rows end."""
    while done < len(asked):
        row = find(index, keys, asked[done])
        if row < 0:
            if used == len(keys):
                break
            row = used
            keys[row] = asked[done]
            enter(index, asked[done], row)
            used += 1
        found[done] = row
        done += 1
    return done, used


@njit(cache=True, nogil=True, inline="always")
def text_place(data, first, last, length):
    """Where in an index of ``length`` places a text is looked for first (FNV-1a, mixed)."""
    h = np.uint64(0xCBF29CE484222325)
    for j in range(first, last):
        h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
    return ((mixed(h) >> np.uint64(32)) * np.uint64(length)) >> np.uint64(32)


@njit(cache=True, nogil=True, inline="always")
def equal(pool, start, end, data, first, last):
    """Whether two texts have the same bytes."""
    if end - start != last - first:
        return False
    for j in range(end - start):
        if pool[start + j] != data[first + j]:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def find_text(index, pool, ends, data, first, last):
    """The text's row or −1, and the place where the search ended."""
    length = np.uint64(len(index))
    at = text_place(data, first, last, length)
    while True:
        row = index[at]
        if row < 0 or equal(pool, ends[row], ends[row + 1], data, first, last):
            return row, at
        at += np.uint64(1)
        if at == length:
            at = np.uint64(0)


@njit(cache=True, nogil=True)
def find_texts(index, pool, ends, data, offsets, found):
    """The rows of texts, −1 for those that have none."""
    for j in range(len(offsets) - 1):
        found[j] = find_text(index, pool, ends, data, offsets[j], offsets[j + 1])[0]


@njit(cache=True, nogil=True)
def place_texts(index, pool, ends, used, data, offsets, found, done):
    """The rows of texts, new ones for those that have none; until free rows or bytes end."""
    while done < len(offsets) - 1:
        first, last = offsets[done], offsets[done + 1]
        row, at = find_text(index, pool, ends, data, first, last)
        if row < 0:
            start = ends[used]
            if used == len(ends) - 1 or start + last - first > len(pool):
                break
            row = used
            pool[start : start + last - first] = data[first:last]
            ends[used + 1] = start + last - first
            index[at] = row
            used += 1
        found[done] = row
        done += 1
    return done, used


@njit(cache=True, nogil=True)
def index_texts(index, pool, ends, used):
    """Enter all rows in an index that is all −1."""
    for row in range(used):
        _, at = find_text(index, pool, ends, pool, ends[row], ends[row + 1])
        index[at] = row


@njit(cache=True, nogil=True)
def moved_texts(pool, ends, kept, new_pool, new_ends):
    """The texts of some rows, one behind the other."""
    for j in range(len(kept)):
        size = ends[kept[j] + 1] - ends[kept[j]]
        new_ends[j + 1] = new_ends[j] + size
        new_pool[new_ends[j] : new_ends[j + 1]] = pool[ends[kept[j]] : ends[kept[j] + 1]]


def texts_of(keys: object) -> tuple[Array, Array, bool]:
    """Texts as bytes with where each begins, and whether they were text rather than bytes."""
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        array = plain_column(keys)
    else:
        try:
            array = pa.array(keys.tolist() if isinstance(keys, np.ndarray) else list(keys))  # type: ignore[call-overload]
        except (TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BadValue(
                f"keys of a bank are all integers, all texts or all bytes: {error}"
            ) from None
    kind = array.type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not binary and not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
        raise BadValue(
            f"keys of type {kind}: a bank's keys are whole numbers of up to 64 bits, texts or "
            "bytes; make texts of others first"
        )
    if array.null_count:
        raise BadValue("a key is missing: a bank's keys are numbers or texts; give null a text")
    array = array.cast(pa.large_binary())
    _, places, data = array.buffers()
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, np.int64), not binary
    offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return raw, offsets, not binary
