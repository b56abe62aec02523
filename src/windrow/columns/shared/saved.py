"""The rows that a shared window holds, as bytes, and from them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.aggregates.codec import Reader, encode
from windrow.columns.ranges import Array
from windrow.columns.shared.rings import power_of_two
from windrow.columns.shared.values import Batch
from windrow.errors import BadBytes

if TYPE_CHECKING:
    from windrow.columns.shared.base import Shared


def written(shared: "Shared") -> bytes:
    """The options, the kinds of the rows, and the rows: columns, times, which are missing."""
    held, times = shared._held()
    kinds = tuple("" if kind is None else kind for kind in shared.kinds)
    head = (shared._options(), shared.active.start, held.size, kinds)
    flags = (held.valid is not None, times is not None)
    arrays = [column.view(np.int64) for column in held.columns]
    arrays += [] if times is None else [times]
    out = [encode((*head, *flags)), *(a.astype("<i8").tobytes() for a in arrays)]
    out += [] if held.valid is None else [held.valid.astype(np.uint8).tobytes()]
    return b"".join(out)


def read(
    shared: "Shared", r: Reader, first: int, size: int, kinds: Any, valid: bool, timed: bool
) -> None:
    """Make an empty shared window hold the rows that were written."""

    def numbers() -> Array:
        return np.frombuffer(r.take(8 * size), "<i8").astype(np.int64)

    columns = [numbers() for _ in kinds]
    times = numbers() if timed else None
    present = np.frombuffer(r.take(size), np.uint8) == 1 if valid else None
    if r.remaining() or len(kinds) != len(shared.kinds) or (shared.longest or size) < size:
        raise BadBytes("other sizes than the head says")
    shared.kinds = [kind or None for kind in kinds]
    columns = [
        column.view(np.float64) if kind == "float64" else column
        for column, kind in zip(columns, shared.kinds, strict=True)
    ]
    shared._capacity = max(shared._capacity, power_of_two(shared.longest or size))
    shared._restart(first, Batch(size, columns, present), times)
