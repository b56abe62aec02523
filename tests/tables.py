"""The oracle for tables: what every window means, read off its definition, folded by Recalc."""

from collections.abc import Sequence
from typing import Any

import windrow as wr
from windrow.slides import Bounds, Rows, Session, Time
from windrow.times import EVER, NANOSECONDS, Duration
from windrow.windows import Recalc

Row = dict[str, Any]


def amount(length: Any, unit: str | None) -> int:
    if length == EVER:
        return 1 << 70
    if isinstance(length, Duration):
        assert unit is not None
        return length.nanoseconds // NANOSECONDS[unit]
    return int(length)


def key_of(row: Row, spec: wr.Rolling) -> tuple[Any, ...]:
    return tuple(
        "NaN" if isinstance(row[k], float) and row[k] != row[k] else row[k] for k in spec.key
    )


def ordered(rows: Sequence[Row], spec: wr.Rolling, i: int) -> list[int]:
    """The rows of row i's key, in order."""
    own = [j for j, row in enumerate(rows) if key_of(row, spec) == key_of(rows[i], spec)]
    time = spec.time
    if time is None:
        return own
    return sorted(own, key=lambda j: (rows[j][time], *(rows[j][t] for t in spec.tie)))


def session(times: Sequence[Any], at: Any, gap: Any, with_end: bool) -> int:
    """How many of the last rows up to a time, or before it, are its session: their times sorted."""
    known = [t for t in times if t < at or (with_end and t == at)]
    found, later = 0, at
    for t in reversed(known):
        if later - t > gap:
            break
        found, later = found + 1, t
    return found


def members(
    rows: Sequence[Row], spec: wr.Rolling, window: Any, i: int, unit: str | None = None
) -> list[int]:
    """The rows in row i's window, in order."""
    own = ordered(rows, spec, i)
    if isinstance(window, Rows):
        place = own.index(i)
        end = place + 1 - window.ending + window.after
        start = place - window.ending - window.n + 1
        found = own[max(0, start) : max(0, end)]
        if window.within is None:
            return found
        assert spec.time is not None
        oldest = rows[i][spec.time] - amount(window.within, unit)
        return [j for j in found if rows[j][spec.time] > oldest]
    assert spec.time is not None
    time = spec.time
    if isinstance(window, Bounds):
        low, high = rows[i][window.low], rows[i][window.high]
        return [j for j in own if low <= rows[j][time] <= high]
    if isinstance(window, Session):
        times = [rows[j][time] for j in own]
        count = session(times, rows[i][time], amount(window.gap, unit), window.includes_end)
        known = [j for j in own if rows[j][time] <= rows[i][time] - (not window.includes_end)]
        return known[len(known) - count :]
    assert isinstance(window, Time)
    length, ending, after = (amount(x, unit) for x in (window.length, window.ending, window.after))
    now = rows[i][time]
    start, end = now - ending - length, now - ending + after
    found = []
    for j in own:
        t = rows[j][time]
        if (t >= start if window.includes_start else t > start) and (
            t <= end if window.includes_end else t < end
        ):
            found.append(j)
    return found


def value(row: Row, aggregate: wr.Aggregate) -> Any:
    values = tuple(row[c] for c in aggregate.columns)
    return values[0] if len(values) == 1 else values


def expected(
    rows: Sequence[Row], spec: wr.Rolling, aggregate: wr.Aggregate, found: list[int]
) -> Any:
    """The answer over some rows, by Recalc; an overflow is an answer too."""
    window = Recalc(aggregate)
    lift = aggregate.lifter()
    present = 0
    for j in found:
        window.insert(value(rows[j], aggregate))
        present += lift(value(rows[j], aggregate)) is not wr.aggregates.EMPTY
    if present < spec.min_rows:
        return None
    return window.query()
