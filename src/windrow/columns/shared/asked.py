"""What people ask with: times, ranges of rows, and windows."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.columns.column import numbers_of
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification, OutOfOrder
from windrow.slides import Rows, Time, as_window
from windrow.times import Duration

if TYPE_CHECKING:
    from windrow.columns.shared.base import Shared


def numbers_given(values: Any, what: str) -> Array:
    """Whole numbers of an array or a list as int64."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        whole = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
        if whole.null_count:
            raise BadSpecification(f"{what}: {whole.null_count} are missing")
        values = numbers_of(whole)
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise BadSpecification(f"{what} are whole numbers in one column, not {array.dtype}")
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        raise BadSpecification(f"{what} are beyond int64")
    return np.ascontiguousarray(array, np.int64)


def ranges_given(lefts: Any, rights: Any) -> tuple[Array, Array]:
    """Both ends of ranges."""
    left, right = numbers_given(lefts, "row numbers"), numbers_given(rights, "row numbers")
    if len(left) != len(right):
        raise BadSpecification(f"{len(left)} left ends, but {len(right)} right ends")
    return left, right


def times_given(at: Any, size: int, last: int | None, known: bool | None, row: int) -> Array | None:
    """The times of new rows, checked; ``known``: whether the rows before had any."""
    if size and known is not None and known != (at is not None):
        raise BadSpecification(
            f"row {row} comes {'without' if known else 'with'} a time, the rows before came "
            f"{'with' if known else 'without'}: give all rows a time, or none"
        )
    if at is None:
        return None
    times = numbers_given(at, "times")
    if len(times) != size:
        raise BadSpecification(f"{size} rows, but {len(times)} times")
    if size:
        before = np.empty_like(times)
        before[0] = times[0] if last is None else last
        before[1:] = times[:-1]
        falls = np.flatnonzero(times < before)
        if len(falls):
            i = int(falls[0])
            raise OutOfOrder(
                f"row {row + i} has time {times[i]}, but a row before it has {before[i]}: "
                "sort the rows by time"
            )
    return times


def window_rows(shared: "Shared", window: Any, now: int | None) -> tuple[int, int]:
    """The active rows in a window that ends now: the first, and the one behind the last."""
    spec = as_window(window)
    active = shared.active
    if isinstance(spec, Rows):
        if spec.after or spec.within is not None or now is not None:
            raise BadSpecification(
                f"{spec.label}: here a window of rows is rows(n, ending=k), and ends at the last "
                "row, not at a time"
            )
        end = active.stop - spec.ending
        return max(active.start, end - spec.n), end
    if not isinstance(spec, Time) or spec.after:
        raise BadSpecification(f"{spec.label}: here a window is rows(n, ending=k) or time(length)")
    if isinstance(spec.length, Duration) or isinstance(spec.ending, Duration):
        raise BadSpecification(
            f"{spec.label}: times are integers here, so lengths are too: time(3600)"
        )
    if now is None:
        if not len(active):
            return 0, 0
        if shared.times is None:
            raise BadSpecification("these rows have no times: insert them with at=")
        now = shared._time_of(active.stop - 1)
    end_time = now - spec.ending
    start_time = end_time - spec.length
    return shared.positions(
        start_time - 1 if spec.includes_start else start_time,
        end_time if spec.includes_end else end_time - 1,
    )
