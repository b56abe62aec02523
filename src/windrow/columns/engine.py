"""A specification on a prepared table: bounds of every window, then answers of every aggregate."""

import numpy as np
import pyarrow as pa

from windrow.columns import bounds as find
from windrow.columns.answers import answer, way_of
from windrow.columns.column import plain_column
from windrow.columns.jit import njit
from windrow.columns.kept import kept_bounds
from windrow.columns.masked import plain
from windrow.columns.prepare import Prepared, same_clock, time_column
from windrow.columns.ranges import Array, Ranges, thread_count
from windrow.columns.sequential import sequential_answers
from windrow.errors import BadSpecification
from windrow.rolling import Rolling
from windrow.slides import Kept, Rows, Session, Time, WindowSpec
from windrow.support import require
from windrow.times import Duration


def prepare(spec: Rolling, table: pa.Table, runs: Array | None = None) -> Prepared:
    """Check the specification against the table, and sort, unless the keys' runs are known."""
    spec.check_columns(table.column_names)
    for _, aggregate, label in spec.outputs:
        require("columns", aggregate.kind, spec.windows[label].kind)
    threads = thread_count(spec.threads)
    ready = Prepared(table, spec.key, spec.time, spec.tie, spec.unit, threads, runs)
    ready.sorted_for, ready.sorts = _sorted_for(spec), {}
    return ready


def _sorted_for(spec: Rolling) -> frozenset[tuple[str, str]]:
    """The columns that more than one answer needs in order."""
    used = [(a.columns[0], a.nan) for _, a, _ in spec.outputs if way_of(a).by_order]
    return frozenset(use for use in used if used.count(use) > 1)


def run(spec: Rolling, table: pa.Table) -> dict[str, pa.Array]:
    """Every answer column, in the order of the table's rows."""
    spec, table = plain(spec, table)
    return answers(spec, prepare(spec, table))


def answers(spec: Rolling, ready: Prepared) -> dict[str, pa.Array]:
    """Every answer column of a prepared table."""
    if spec.every is not None:
        from windrow.columns.ticks import run_ticks

        return run_ticks(spec, ready)
    out: dict[str, pa.Array] = {}
    found: dict[str, Ranges] = {}
    known = sequential_answers(spec, ready) if spec.sequential else {}
    for name, aggregate, label in spec.outputs:
        if name in known:
            out[name] = ready.back(known[name])
            continue
        if label not in found:
            found = {label: window_ranges(spec, ready, label, spec.windows[label])}
        out[name] = ready.back(answer(aggregate, ready, found[label], spec.min_rows))
    if ready.sorts:
        ready.sorts.clear()
    return out


def window_ranges(spec: Rolling, table: Prepared, label: str, window: WindowSpec) -> Ranges:
    """The range of rows of every row's window."""
    threads = thread_count(spec.threads)
    forced = {"daba_lite": "steady", "greedy": "greedy"}.get(spec.algorithm)
    size = table.size
    if isinstance(window, Rows):
        simple = not (window.ending or window.after or window.needs_time)
        plain = len(table.offsets) == 2 and simple
        if plain and spec.algorithm in ("auto", "two_stacks_lite"):
            width = max(1, min(window.n, size))
            ranges = Ranges(None, None, size, width, threads, never_empty=True)
            ranges.may_subtract = spec.algorithm == "auto"
            return ranges
    place = np.int32 if size < 1 << 31 else np.int64  # half the memory to fill and read
    lo, hi = np.empty(size, place), np.empty(size, place)
    ranges = Ranges(lo, hi, size, None, threads, forced)
    ranges.monotone = spec.algorithm not in ("b_int", "recalc")
    ranges.recalc = spec.algorithm == "recalc"
    if isinstance(window, Kept):
        hi[:] = np.arange(1, size + 1)
        since: Array | None = None
        for cut in window.cuts:
            begins, _ = window_ranges(spec, table, label, cut).bounds()
            since = begins if since is None else np.maximum(since, begins)
        ranges.kept = kept_bounds(table, label, window, since, lo, spec.algorithm == "recalc")
        return ranges
    if isinstance(window, Rows):
        before, ending, after = (min(x, size) for x in (window.n, window.ending, window.after))
        ranges.never_empty = not window.ending
        ranges.in_parallel(
            lambda first, last: find.row_bounds(
                table.offsets, before, ending, after, first, last, lo, hi
            )
        )
        if window.within is not None:
            age = limit(table, window.within, label)
            ranges.in_parallel(
                lambda first, last: find.cut_older(table.time, table.time, age, first, last, lo, hi)
            )
        return ranges
    assert table.time is not None
    if isinstance(window, Time):
        length, ending, after = lengths(table, window, label)
        ranges.never_empty = window.includes_end and not ending
        ranges.in_parallel(
            lambda first, last: find.time_bounds(
                table.offsets,
                table.time,
                length,
                ending,
                after,
                window.includes_start,
                window.includes_end,
                first,
                last,
                lo,
                hi,
            )
        )
        return ranges
    if isinstance(window, Session):
        ranges.never_empty = window.includes_end
        gap, offsets = pause(table, label, window), table.offsets
        find.session_bounds(
            *(offsets[:-1], offsets[1:], table.time, offsets, table.time),
            *(gap, window.includes_end, lo, hi),
        )
        return ranges
    low, high = (bound_column(spec, table, name) for name in (window.low, window.high))
    ranges.in_parallel(
        lambda first, last: find.column_bounds(
            table.offsets, table.time, low, high, first, last, lo, hi
        )
    )
    monotone = bool(find.is_monotone(lo, hi))
    ranges.monotone &= monotone
    if not monotone and spec.algorithm in ("two_stacks_lite", "daba_lite", "greedy"):
        row = int(_first_fall(lo, hi))
        raise BadSpecification(
            f"algorithm={spec.algorithm!r} needs bounds that never move back, but those of row "
            f"{table.original_row(row)} start or end before those of the row before it in time; "
            'use algorithm="auto"'
        )
    return ranges


@njit(cache=True)
def _first_fall(lo, hi):  # type: ignore[no-untyped-def]
    for i in range(1, len(lo)):
        if lo[i] < lo[i - 1] or hi[i] < hi[i - 1]:
            return i
    return -1


def lengths(table: Prepared, window: Time, label: str) -> tuple[int, int, int]:
    """Length, ending and after in ticks; beyond the table's whole span they make no difference."""
    assert table.clock is not None
    assert table.time is not None
    what = f"window {label!r}"
    found = [
        table.clock.length(x, what) if x else 0
        for x in (window.length, window.ending, window.after)
    ]
    if not table.size:
        return 1, 0, 0
    starts, ends = table.offsets[:-1], table.offsets[1:]
    kept = starts < ends  # rows of a key are sorted, so its first and last row say it all
    youngest = int(table.time[ends[kept] - 1].max())
    oldest = int(table.time[starts[kept]].min())
    span = youngest - oldest + 1
    length, ending, after = (min(x, span + 1) for x in found)
    farthest = max(abs(youngest), abs(oldest)) + length + max(ending, after)
    if max(farthest, span) + 2 > np.iinfo(np.int64).max:
        raise BadSpecification(f"{what}: the times of this table are too far from 0 for int64")
    return length, ending, after


def pause(table: Prepared, label: str, window: Session) -> int:
    """The gap in ticks: a longer pause ends a session."""
    return lengths(table, window.near, label)[0]


def session_start(time: Array, place: int, gap: int) -> int:
    """Where the session of a row begins, of rows of one key."""
    pauses = np.flatnonzero(np.diff(time[: place + 1]) > gap)
    return int(pauses[-1]) + 1 if len(pauses) else 0


def limit(table: Prepared, within: Duration | int, label: str) -> int:
    """The age in ticks from which a rows window leaves rows out, as a window of time would."""
    return lengths(table, Time(within), label)[0]


def bound_column(spec: Rolling, table: Prepared, name: str) -> Array:
    """A column of bounds, in the unit of the time column."""
    assert spec.time is not None
    assert table.clock is not None
    kind = plain_column(table.table[spec.time]).type
    array = plain_column(table.table[name])
    if array.type != kind:
        same_clock(kind, spec.time, array.type, name)
        try:
            array = array.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadSpecification(
                f"bounds column {name!r} has type {array.type}, the time column {spec.time!r} has "
                f"{kind}: {error}"
            ) from error
    ticks, _ = time_column(pa.table({name: array}), name, spec.unit)
    return ticks if table.order is None else ticks[table.order]
