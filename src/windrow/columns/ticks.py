"""Answers at ticks instead of rows: one row per key and tick while its longest window has rows."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns import bounds as find
from windrow.columns.answers import answer
from windrow.columns.column import array_of, plain_column, typed
from windrow.columns.engine import lengths
from windrow.columns.jit import njit
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array, Ranges, thread_count
from windrow.errors import BadSpecification
from windrow.rolling import Rolling
from windrow.slides import Session, Time
from windrow.times import NANOSECONDS, Clock, clock_of, unit_of

_MOST_TICKS = 1 << 31
_LIMIT = 1 << 62


@njit(cache=True)
def _ticks(offsets, time, step, origin, reach, delay, tick_offsets, out):  # type: ignore[no-untyped-def]
    """Ticks from a row's first to the last whose windows may hold it; only counts without out."""
    total = 0
    for run in range(len(offsets) - 1):
        tick_offsets[run] = total
        following = np.int64(-(2**62))
        for i in range(offsets[run], offsets[run + 1]):
            t = time[i] - origin + delay
            first = max(following, -((-t) // step))  # the first tick at or after the row
            last = (t + reach) // step
            for k in range(first, last + 1):
                if len(out):
                    out[total] = k * step + origin
                total += 1
            following = max(following, last + 1)
    tick_offsets[len(offsets) - 1] = total
    return total


def run_ticks(spec: Rolling, table: Prepared) -> dict[str, pa.Array]:
    """The key columns, the tick in the time column's place, and the answers."""
    assert spec.time is not None
    assert spec.every is not None
    assert table.clock is not None
    assert table.time is not None
    step = table.clock.length(spec.every, "every=")
    kind = plain_column(table.table[spec.time]).type
    origin = _origin(spec, table, step)
    windows = [(label, w) for label, w in spec.windows.items() if isinstance(w, Time | Session)]
    for label, window in windows:
        lengths(table, window.near, label)  # refuses times too far from 0
    # exact lengths, not those cut to the table's span: ticks go on after the last row
    full = [
        (
            min(table.clock.length(w.length, label), _LIMIT),
            table.clock.length(w.ending, label) if w.ending else 0,
        )
        for label, w in ((label, window.near) for label, window in windows)
    ]
    ends = [both for (_, w), both in zip(windows, full, strict=True) if w.kind != "ever"]
    reach = max(length + ending for length, ending in ends)
    delay = min(ending for _, ending in ends)
    _check_reach(table, step, max(reach, *(ending for _, ending in full)))
    tick_offsets = np.zeros(len(table.offsets), np.int64)
    nothing = np.empty(0, np.int64)
    arguments = (table.offsets, table.time, step, origin, reach - delay, delay, tick_offsets)
    total = _ticks(*arguments, nothing)
    if total > _MOST_TICKS:
        raise BadSpecification(
            f"every=: {total:,} ticks, until the longest window of each key is empty. Take a "
            "longer every=, or shorter windows"
        )
    ticks = np.empty(total, np.int64)
    if total:
        _ticks(*arguments, ticks)
    ranges: dict[str, Ranges] = {}
    live = np.zeros(total, np.bool_)
    for label, window in windows:
        lo, hi = np.empty(total, np.int64), np.empty(total, np.int64)
        length, ending = full[windows.index((label, window))]
        offsets, asked = table.offsets, (tick_offsets, ticks)
        if isinstance(window, Session):
            find.session_bounds(
                *(offsets[:-1], offsets[1:], table.time, *asked),
                *(length, window.includes_end, lo, hi),
            )
        else:
            find.tick_bounds(
                *(offsets, table.time, *asked, length, ending),
                *(window.includes_start, window.includes_end, lo, hi),
            )
        ranges[label] = Ranges(lo, hi, total, None, thread_count(spec.threads))
        if window.kind != "ever":  # ticks last as long as windows that end
            live |= hi > lo
    out: dict[str, Any] = {}
    runs = np.repeat(np.arange(len(table.offsets) - 1), np.diff(tick_offsets))
    first_rows = table.offsets[:-1][runs]
    rows = first_rows if table.order is None else table.order[first_rows]
    for name in spec.key:
        out[name] = plain_column(table.table[name]).take(array_of(rows))
    out[spec.time] = _times(ticks, kind, spec.unit)
    for name, aggregate, label in spec.outputs:
        out[name] = answer(aggregate, table, ranges[label], spec.min_rows)
    keep = array_of(live)
    return {name: array.filter(keep) for name, array in out.items()}


def _times(ticks: Array, kind: pa.DataType, unit: str | None) -> pa.Array:
    """Ticks as the table's times are; of floats the nearest, in their unit."""
    if not pa.types.is_floating(kind):
        return typed(ticks, None, kind)
    factor = NANOSECONDS[unit_of(unit)]
    whole, rest = np.divmod(ticks, factor)
    return array_of(whole + rest / factor).cast(kind)


def _check_reach(table: Prepared, step: int, reach: int) -> None:
    """Refuse ticks that int64 cannot count."""
    assert table.time is not None
    if not table.size:
        return
    far = max(abs(int(table.time.min())), abs(int(table.time.max())))
    if far + reach + step >= _LIMIT:
        raise BadSpecification(
            "every=: ticks go on until the longest window is empty, which is too far from 0 for "
            "int64: take shorter windows, or a shorter every="
        )


def _origin(spec: Rolling, table: Prepared, step: int) -> int:
    """The origin, or a tick near 0 that is as good."""
    assert table.clock is not None
    return given_origin(spec, table.clock) % step


def given_origin(spec: Rolling, own: Clock) -> int:
    """One of the ticks, as the table's times count."""
    if spec.origin is None:
        return 0
    clock = clock_of(spec.origin, spec.unit)
    ticks = clock.to_ticks(spec.origin)
    if clock.unit is None or own.unit is None:
        if clock.unit != own.unit:
            raise BadSpecification(f"origin={spec.origin!r} is not a time like those of the table")
        return ticks
    whole, rest = divmod(ticks * NANOSECONDS[clock.unit], NANOSECONDS[own.unit])
    if rest:
        raise BadSpecification(f"origin={spec.origin!r} is finer than the table's times")
    return whole
