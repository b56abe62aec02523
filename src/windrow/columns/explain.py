"""What is done for each answer, and why, with the combines that it costs."""

import numpy as np
import pyarrow as pa

from windrow.columns.builtin import kernels
from windrow.columns.choose import Plan, plan
from windrow.columns.engine import prepare, window_ranges
from windrow.columns.jit import njit
from windrow.columns.masked import plain
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array, Ranges
from windrow.rolling import Rolling


@njit(cache=True)
def _two_stacks(lo, hi):  # type: ignore[no-untyped-def]
    """How often Two-Stacks combines: rows folded into front or back, answers put together."""
    combines = high = mid = 0
    for i in range(len(lo)):
        if hi[i] <= lo[i]:
            continue
        if lo[i] >= mid:
            high = max(high, hi[i])
            combines += high - lo[i] - 1
            mid = high
        else:
            combines += hi[i] - high + (1 if hi[i] > mid else 0)
            combines -= 1 if high == mid and hi[i] > high else 0
            high = hi[i]
    return combines


@njit(cache=True)
def _base_intervals(lo, hi, size):  # type: ignore[no-untyped-def]
    combines = size - 1
    for i in range(len(lo)):
        a, b = lo[i], hi[i]
        pieces = 0
        while a < b:
            pieces += (a & 1) + (b & 1)
            a = (a + 1) >> 1
            b >>= 1
        combines += max(pieces - 1, 0)
    return combines


def _greedy(lo: Array, hi: Array) -> int:
    rows = np.zeros(int(hi.max()) if len(hi) else 0)
    out = np.empty(len(lo))
    combines: int = kernels("max").greedy(rows, lo, hi, 0, len(lo), 0.0, 0.0, out)
    return combines


def measured(chosen: Plan, ranges: Ranges, table: Prepared) -> float:
    """Combines per row, counted by running the algorithm's moves on these ranges."""
    lo, hi = ranges.bounds()
    if not len(lo):
        return 0.0
    if chosen.algorithm == "recalc":
        return float(np.maximum(hi - lo - 1, 0).sum() / len(lo))
    if chosen.algorithm == "greedy":
        return float(_greedy(lo, hi) / len(lo))
    if chosen.algorithm == "b_int":
        return float(_base_intervals(lo, hi, table.size) / len(lo))
    if chosen.algorithm == "two_stacks_lite":
        return float(_two_stacks(lo, hi) / len(lo))
    return float("nan")


def explain_columns(spec: Rolling, arrow: pa.Table, count_combines: bool) -> str:
    """See ``Rolling.explain``."""
    spec, arrow = plain(spec, arrow)
    table = prepare(spec, arrow)
    keys = len(table.offsets) - 1
    order = "already in order" if table.order is None else "sorted here"
    by = f"by {', '.join(spec.key)} ({keys:,} keys)" if spec.key else "without a key"
    lines = [f"{table.size:,} rows {by}, {order}; columns engine"]
    for label, window in spec.windows.items():
        ranges = window_ranges(spec, table, label, window)
        lines.append(f"window {label}: ranges {ranges.description()}, {ranges.threads} thread(s)")
        if ranges.kept is not None:
            lines.append(f"  rows kept: {ranges.kept}")
        for aggregate in (a for _, a, used in spec.outputs if used == label):
            chosen = plan(aggregate, table, ranges)
            line = f"  {aggregate!r}: {chosen}"
            if count_combines and chosen.combines is not None:
                line += f"; measured {measured(chosen, ranges, table):.2f} a row"
            lines.append(line + (f"; {aggregate.approximation}" if aggregate.approximate else ""))
    return "\n".join(lines)
