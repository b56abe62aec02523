"""Moments of float columns from power sums, correctly rounded: with a proof, or by integers.

Three steps, each for the rows that the one before left open: running sums with a bound for a
region of rows (``strips``), Two-Stacks in three words with a proof for each row
(``power_kernels``), and exact accumulators, some 50 µs each. Windows with values so large or small
that products of them leave the range of floats go to the last at once.

Columns are first moved towards 0 by a constant, where that is exact for every row: no answer here
changes by that, but for weighted means.
"""

from functools import reduce
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.aggregates import exact
from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.aggregates.relations import WeightedMean
from windrow.columns.column import Column
from windrow.columns.exact import SIZE, WORDS, accumulate
from windrow.columns.fused import fma
from windrow.columns.jit import njit
from windrow.columns.power_kernels import PARTS, power_kernels
from windrow.columns.ranges import Array, Ranges
from windrow.columns.strips import strip_answers, unchanging
from windrow.columns.sums import spread

if TYPE_CHECKING:
    from windrow.columns.middles import Middle

_EXACT_INTEGER = 1 << 53
_SECOND, _FOURTH = (1e-120, 1e120), (2.0**-200, 2.0**200)
_RANGES = {1: _SECOND, 2: _SECOND, 3: _FOURTH, 4: _FOURTH}
"""By the highest degree: what an input's size may be, so that the last bit of a part is a float."""

Parts = list[list[Array]]
"""For each monomial the arrays of floats that it is the sum of."""


def freedom(aggregate: PowerSums) -> int:
    """What kernels are told: 1 for the form of a sample."""
    if hasattr(aggregate, "population"):
        return 0 if aggregate.population else 1
    return getattr(aggregate, "ddof", 0)


def answers_of(
    aggregate: PowerSums, inputs: list[Array], weights: Array | None, parts: bool, ranges: Ranges
) -> tuple[Array, Array]:
    """The answers of all ranges, and which of them are not certain yet.

    First by strips; where these are not certain, by the kernels with three words, about those rows.
    ``weights`` says how many rows each row stands for, None: one.
    """
    if not ranges.slides:
        return _proven(aggregate, inputs, weights, parts, ranges)
    counts = None
    if weights is not None:
        counts = np.zeros(len(weights) + 1, np.int64)
        np.cumsum(weights, out=counts[1:])
    out, rows = strip_answers(aggregate, freedom(aggregate), inputs, parts, counts, ranges)
    if len(rows) and not parts:
        out, rows = _unchanging(aggregate, inputs, weights, ranges, out, rows)
    if 8 * len(rows) > len(ranges):
        return _proven(aggregate, inputs, weights, parts, ranges)
    if len(rows):
        out[rows], left = _proven(aggregate, inputs, weights, parts, ranges.some(rows))
        rows = rows[left]
    return out, rows


def _unchanging(
    aggregate: PowerSums,
    inputs: list[Array],
    weights: Array | None,
    ranges: Ranges,
    out: Array,
    rows: Array,
) -> tuple[Array, Array]:
    """Rows in whose ranges an input has one value only are answered; and those that are left."""
    valid: Any = np.empty(0, np.bool_) if weights is None else weights != 0
    lo, hi = ranges.of(rows)
    for place, answer in aggregate.unchanging:
        same = np.empty(len(rows), np.bool_)
        unchanging(inputs[place], valid, lo, hi, same)
        out[rows[same]] = answer
        lo, hi, rows = lo[~same], hi[~same], rows[~same]
    return out, rows


def _proven(
    aggregate: PowerSums, inputs: list[Array], weights: Array | None, parts: bool, ranges: Ranges
) -> tuple[Array, Array]:
    """What kernels with a proof for each row say, and what they leave open.

    They say NaN where they are not certain, and an infinity for a certain NaN.
    """
    kind: Any = type(aggregate)
    module = power_kernels(kind, parts)
    out = np.full(len(ranges), np.inf)
    rest = (float(freedom(aggregate)), float(aggregate.fewest), out)
    if ranges.width is not None:  # one kernel for all ranges: each takes seconds to compile
        place = np.int32 if len(ranges) < 1 << 31 else np.int64
        ranges = ranges.like(*(bound.astype(place) for bound in ranges.bounds()))
    weighted = (np.ones(len(inputs[0])) if weights is None else weights, *inputs)
    ranges.in_parallel(lambda first, last: ranges.run(module, weighted, first, last, *rest))
    left = np.flatnonzero(np.isnan(out))
    out[np.isinf(out)] = np.nan
    return out, left


def degree(monomials: tuple[Monomial, ...]) -> int:
    """The highest number of factors."""
    return max(map(sum, monomials))


def odd_rows(columns: list[Array], monomials: tuple[Monomial, ...]) -> Array | None:
    """Rows with an input whose products floats cannot hold, or that is no number; None: none."""
    low, high = _RANGES[degree(monomials)]
    found: Array | None = None
    for x in columns:
        smallest, largest = spread(x, 0, len(x))
        if largest == 0.0 or (smallest >= low and largest <= high):
            continue
        size = np.abs(x)
        odd = ~((size >= low) & (size <= high) | (size == 0))
        found = odd if found is None else found | odd
    return found


@njit(cache=True, nogil=True)
def _products(x, y, high, low):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        p = x[i] * y[i]
        high[i] = p
        low[i] = fma(x[i], y[i], -p)


def _two(x: Array, y: Array) -> list[Array]:
    high, low = np.empty(len(x)), np.empty(len(x))
    _products(x, y, high, low)
    return [high, low]


def parts_of(monomials: tuple[Monomial, ...], columns: list[Array]) -> Parts:
    """The floats that every monomial of every row consists of."""
    out: Parts = []
    for monomial in monomials:
        factors = [columns[i] for i, power in enumerate(monomial) for _ in range(power)]
        if len(factors) == 1:
            out.append(factors)
            continue
        high, low = _two(factors[0], factors[1])
        if len(factors) == 2:
            out.append([high, low])
        elif len(factors) == 3:
            out.append([*_two(high, factors[2]), *_two(low, factors[2])])
        else:
            out.append([*_two(high, high), *_two(2.0 * high, low), *_two(low, low)])
    return out


@njit(cache=True, nogil=True)
def _extent(x, valid):  # type: ignore[no-untyped-def]
    low, high = np.inf, -np.inf
    for i in range(len(x)):
        if (valid[i] if len(valid) else True) and abs(x[i]) < np.inf:
            low = min(low, x[i])
            high = max(high, x[i])
    return low, high


def centre_of(column: Column) -> int | float:
    """A number that can be taken from every valid value without rounding; 0 where there is none."""
    if column.is_float:
        return _float_centre(column.values, column.valid)
    values = column.values if column.valid is None else column.values[column.valid]
    if not len(values):
        return 0
    low, high = int(values.min()), int(values.max())
    return (low + high) // 2 if high - low < _EXACT_INTEGER else 0


def _float_centre(x: Array, valid: Array | None) -> float:
    if valid is None:
        smallest, largest = spread(x, 0, len(x))
        if 4 * smallest < largest < np.inf:
            return 0
    low, high = _extent(x, np.empty(0, np.bool_) if valid is None else valid)
    if low > high or low <= 0 <= high:
        return 0
    near, far = sorted((abs(low), abs(high)))
    if far > 4 * near or near < 1e-40 or far > 1e40:
        return 0
    sign = 1.0 if low > 0 else -1.0
    return float(sign * min(max((near + far) / 2, far / 2), 2 * near))  # Sterbenz: c/2 ≤ x ≤ 2c


def as_floats(column: Column, centre: int | float) -> Array | None:
    """The values less a centre, 0 where missing; None where floats do not hold them."""
    if column.is_float:
        return column.filled(centre) - centre if centre else column.filled(0)
    values: Array = column.filled(0)
    if centre:
        values = np.where(column.valid, values, centre) if column.valid is not None else values
        return (values - np.int64(centre)).astype(np.float64)
    if len(values) and max(-int(values.min()), int(values.max())) > _EXACT_INTEGER:
        return None
    return values.astype(np.float64)


def plain_inputs(
    aggregate: PowerSums, columns: list[Column], valid: Array | None
) -> tuple[list[Array], Array | None]:
    """The inputs as floats, 0 where a row is missing or odd; and which rows are odd, None: none."""
    inputs = [column.filled(0).astype(np.float64) for column in columns]
    if valid is not None:
        inputs = [np.where(valid, x, 0.0) for x in inputs]
    odd = odd_rows(inputs, aggregate.monomials)
    for column in columns:
        if not column.is_float:
            values = column.filled(0)
            wide = (values > _EXACT_INTEGER) | (values < -_EXACT_INTEGER)
            if wide.any():
                odd = wide if odd is None else odd | wide
    if odd is not None:
        odd = odd if valid is None else odd & valid
        inputs = [np.where(odd, 0.0, x) for x in inputs]
    return inputs, odd


def power_answers(
    aggregate: PowerSums,
    columns: list[Column],
    valid: Array | None,
    ranges: Ranges,
    middle: "Middle | None" = None,
    place: int = 0,
) -> Array | None:
    """The answer of every range; None where only Python can tell. Too few rows: arbitrary.

    With a ``middle``, ranges are those of a table with one more row at ``place``.
    """
    moves = not isinstance(aggregate, WeightedMean)
    centres = [centre_of(column) if moves else 0 for column in columns]
    floats = [as_floats(column, centre) for column, centre in zip(columns, centres, strict=True)]
    inputs = [x for x in floats if x is not None]
    if len(inputs) < len(floats):
        return None
    if valid is not None:
        inputs = [np.where(valid, x, 0.0) for x in inputs]
    odd = odd_rows(inputs, aggregate.monomials)
    known: dict[int, Any] = {}
    if odd is not None:
        rows = np.flatnonzero(odd).tolist()
        known = {i: aggregate.lift(*(float(x[i]) for x in inputs)) for i in rows}
        inputs = [np.where(odd, 0.0, x) for x in inputs]
    weights = None if valid is None else valid.astype(np.float64)
    if middle is None:
        found = answers_of(aggregate, inputs, weights, False, ranges)
        return decided(aggregate, None, inputs, weights, known, ranges, *found)
    total = moved(aggregate.monomials, middle.partial, centres)
    stand_ins = None if total is None else _stand_ins(aggregate.monomials, total)
    if stand_ins is None:
        return None
    count = len(stand_ins[0][0])
    parts = [
        [np.insert(part, place, new) for part, new in zip(arrays, more, strict=True)]
        for arrays, more in zip(parts_of(aggregate.monomials, inputs), stand_ins, strict=True)
    ]
    weights = np.ones(len(inputs[0])) if weights is None else weights
    weights = np.insert(weights, place, [float(middle.rows), *[0.0] * (count - 1)])
    lo, hi = ranges.bounds()
    ranges = ranges.like(lo, hi + (count - 1))
    known = {i + count * (i >= place): partial for i, partial in known.items()}
    return from_parts(aggregate, parts, weights, known, ranges)


def from_parts(
    aggregate: PowerSums, parts: Parts, weights: Array, known: dict[int, Any], ranges: Ranges
) -> Array:
    """Answers where rows may stand for many: ``weights`` says how many, ``known`` has odd ones."""
    found = answers_of(aggregate, [p for arrays in parts for p in arrays], weights, True, ranges)
    return decided(aggregate, parts, [], weights, known, ranges, *found)


def decided(
    aggregate: PowerSums,
    parts: Parts | None,
    inputs: list[Array],
    weights: Array | None,
    known: dict[int, Any],
    ranges: Ranges,
    out: Array,
    left: Array,
) -> Array:
    """Answers with those decided that kernels left open, or that have odd rows in their windows."""
    rows = np.array(sorted(known), np.int64)
    if known:
        asked = _have(rows, ranges)
        asked[left] = True
        odd = [any(exact.special(total) is not None for total in known[i][1:]) for i in rows]
        never = _have(rows[np.array(odd)], ranges)
        out[never] = np.nan
        left = np.flatnonzero(asked & ~never)
    for i, start, end in zip(left.tolist(), *(b.tolist() for b in ranges.of(left)), strict=True):
        if end > start:
            total = _total_of(aggregate, parts, inputs, weights, slice(start, end))
            for place in rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)].tolist():
                total = [a + b for a, b in zip(total, (0, *known[place][1:]), strict=True)]
            answer = aggregate.lower(tuple(total))
            out[i] = np.nan if answer is None else answer
    return out


def _have(rows: Array, ranges: Ranges) -> Array:
    """Which ranges have any of some rows, which are in order."""
    lo, hi = ranges.bounds()
    return np.searchsorted(rows, hi) > np.searchsorted(rows, lo)


def _total_of(
    aggregate: PowerSums,
    parts: Parts | None,
    inputs: list[Array],
    weights: Array | None,
    some: slice,
) -> list[int]:
    """The exact partial of some rows, but for odd ones."""
    count = some.stop - some.start if weights is None else round(float(weights[some].sum()))
    if parts is None:
        pieces = parts_of(aggregate.monomials, [x[some] for x in inputs])
    else:
        pieces = [[part[some] for part in arrays] for arrays in parts]
    sums = [_exact_sum(a, sum(m)) for m, a in zip(aggregate.monomials, pieces, strict=True)]
    return [count, *sums]


def _exact_sum(arrays: list[Array], factors: int) -> int:
    """The exact total of some arrays of floats, in the units of a product of so many factors."""
    words = np.zeros((1, SIZE), np.int64)
    for part in arrays:
        accumulate(part, np.ones(len(part), np.bool_), np.array([0, len(part)]), words)
    units: int = sum(word << 32 * k for k, word in enumerate(words[0, :WORDS].tolist()) if word)
    return units >> 14 << exact.FLOAT_UNIT_BITS * (factors - 1) + exact.MARK_BITS


def moved(
    monomials: tuple[Monomial, ...], partial: tuple[int, ...], centres: list[int | float]
) -> tuple[int, ...] | None:
    """The exact sums of a run around some centres; None where it has odd values."""
    inputs = partial[1 : 1 + len(centres)]
    if any(exact.special(t) is not None or exact.unit(t) != exact.FLOAT_UNIT for t in inputs):
        return None
    shifts = [
        (exact.of_float(c) if isinstance(c, float) else exact.of_int(c)) >> exact.MARK_BITS
        for c in centres
    ]
    sums = {(0,) * len(centres): partial[0]}
    for monomial, total in zip(monomials, partial[1:], strict=True):
        sums[monomial] = total >> exact.MARK_BITS
    if not any(shifts):
        return tuple(sums[monomial] for monomial in monomials)
    out = []
    for monomial in monomials:
        total = 0
        for powers in product(*(range(p + 1) for p in monomial)):
            factor = 1
            for p, k, shift in zip(monomial, powers, shifts, strict=True):
                factor *= comb(p, k) * (-shift) ** (p - k)
            total += factor * sums[powers] if factor else 0
        out.append(total)
    return tuple(out)


def _stand_ins(monomials: tuple[Monomial, ...], sums: tuple[int, ...]) -> Parts | None:
    """Rows of parts with these sums; None where floats do not hold them."""
    lists = []
    for monomial, total in zip(monomials, sums, strict=True):
        floats = _floats(total, sum(monomial))
        if floats is None:
            return None
        lists.append(floats)
    width = [PARTS[sum(monomial)] for monomial in monomials]
    count = max(1, *(-(-len(f) // w) for f, w in zip(lists, width, strict=True)))
    out = []
    for floats, w in zip(lists, width, strict=True):
        grid = np.zeros((count, w))
        grid.ravel()[: len(floats)] = floats
        out.append([np.ascontiguousarray(grid[:, k]) for k in range(w)])
    return out


def _floats(total: int, factors: int) -> list[float] | None:
    unit = exact.FLOAT_UNIT**factors
    out: list[float] = []
    while total:
        nearest = exact.ratio(total, unit)
        if not 1e-300 < abs(nearest) < 1e300:
            return None
        out.append(nearest)
        total -= exact.of_float(nearest) >> exact.MARK_BITS << 1074 * (factors - 1)
    return out


def power_sums(
    aggregate: PowerSums, columns: list[Column], valid: Array, offsets: Array, rows: Array
) -> list[Any]:
    """The exact partial of every run."""
    inputs, odd = plain_inputs(aggregate, columns, valid)
    keep = valid if odd is None else valid & ~odd
    sums = []
    for monomial, arrays in zip(
        aggregate.monomials, parts_of(aggregate.monomials, inputs), strict=True
    ):
        words = np.zeros((len(offsets) - 1, SIZE), np.int64)
        for part in arrays:
            accumulate(part, keep, offsets, words)
        shift = exact.FLOAT_UNIT_BITS * (sum(monomial) - 1) + exact.MARK_BITS
        sums.append(
            [
                sum(word << 32 * k for k, word in enumerate(line) if word) >> 14 << shift
                for line in words[:, :WORDS].tolist()
            ]
        )
    kept = np.add.reduceat(np.append(keep, 0).astype(np.int64), offsets[:-1]) if len(rows) else rows
    kept = np.where(offsets[1:] > offsets[:-1], kept, 0)
    marks = [int(column.is_float) for column in columns]
    out: list[Any] = []
    for run, line in enumerate(zip(*sums, strict=True)):
        total = [int(kept[run]), *line]
        for i, mark in enumerate(marks):
            total[1 + i] += mark * int(kept[run]) * exact.FLOAT
        out.append(tuple(total))
    if odd is not None:
        places = np.flatnonzero(odd)
        runs = np.searchsorted(offsets, places, side="right") - 1
        for row, run in zip(places.tolist(), runs.tolist(), strict=True):
            values = (column.values[row].item() for column in columns)
            out[run] = reduce(aggregate.combine, (out[run], aggregate.lift(*values)))
    return out
