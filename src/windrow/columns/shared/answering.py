"""Rows and lookups that come mixed, in one call: rows first, then lookups where they were asked.

A range of rows has the same answer whatever rows come later, as long as its own are held. So some
thousand new rows are taken at a time, which the rings hold beside the longest window, and then the
ranges that end there are answered together.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.columns.ranges import Array
from windrow.columns.shared.asked import ranges_given
from windrow.columns.shared.rings import power_of_two
from windrow.columns.shared.values import Batch
from windrow.errors import BadSpecification, WindrowError

if TYPE_CHECKING:
    from windrow.columns.shared.base import Shared

_TOGETHER = 1 << 12
"""Rows that are taken before the ranges that end there are answered."""


def answered(
    shared: "Shared", values: Any, lefts: Any, rights: Any, at: Any, **how: Any
) -> pa.Array:
    """``Shared.answer``; ``how`` is for ``_found``."""
    left, right = ranges_given(lefts, rights)
    batch, kinds = shared._batch(values)
    size = batch.size
    _check(shared, left, right, shared.active.start, shared.active.stop + size)
    times = shared._admitted(batch, kinds, at)
    order = None if np.all(right[:-1] <= right[1:]) else np.argsort(right, kind="stable")
    if order is not None:
        left, right = left[order], right[order]
    _make_room(shared, size)
    first = shared.active.stop
    ends = _cuts(shared, right, first, size)
    found: list[pa.Array] = []
    failure: WindrowError | None = None
    for start, end in zip([first, *ends[:-1]], ends, strict=True):
        if start < end:
            shared._take(*_piece(batch, times, start - first, end - first))
        a, b = np.searchsorted(right, [start if found else -1, end])
        try:
            found.append(shared._found(left[a:b], right[a:b], **how))
        except WindrowError as error:  # of one answer: the rows come all the same
            failure = failure or error
            found.append(pa.nulls(0))
    if failure is not None:
        raise failure
    whole = pa.concat_arrays(found)
    return whole if order is None else whole.take(pa.array(np.argsort(order)))


def _check(shared: "Shared", left: Array, right: Array, first: int, end: int) -> None:
    widest = end - first if shared.longest is None else shared.longest
    bad = (left < first) | (right >= end) | (left > right) | (right - left >= widest)
    if bad.any():
        i = int(np.argmax(bad))
        raise BadSpecification(
            f"rows {left[i]} to {right[i]} cannot be asked for with the new rows, up to "
            f"{end - 1}: rows from {first} on can"
            + ("" if shared.longest is None else f", {shared.longest} of them (longest=)")
        )


def _make_room(shared: "Shared", size: int) -> None:
    """Places for new rows beside those of the longest window, which the first of them may need."""
    if shared.longest is None:
        shared._reserve(shared.active.stop + size)
        return
    spare = min(size, _TOGETHER) if shared.historical else 0
    if spare > shared._spare:
        held, times = shared._held()
        shared._spare = min(power_of_two(spare), _TOGETHER)
        shared._capacity = power_of_two(shared._kept)
        shared._restart(shared.active.start, held, times)


def _cuts(shared: "Shared", right: Array, first: int, size: int) -> list[int]:
    """Up to which rows are taken before what ends there is answered; the last is the end."""
    end = first + size
    if not shared.historical:  # a range must be asked for as soon as its last row is there
        ends: list[int] = np.unique(right[right >= first] + 1).tolist()
        asked_before = [first] if len(right) and right[0] < first else []
        return asked_before + ends + ([end] if not ends or ends[-1] < end else [])
    step = size if shared.longest is None else shared._spare
    return [*range(first + step, end, step), end] if size else [end]


def _piece(batch: Batch, times: Array | None, start: int, end: int) -> tuple[Batch, Array | None]:
    valid = None if batch.valid is None else batch.valid[start:end]
    columns = [column[start:end] for column in batch.columns]
    return Batch(end - start, columns, valid), None if times is None else times[start:end]
