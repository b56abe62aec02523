"""The segment kernel: old rows, a middle, new rows; equal to one call over the whole table."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from tests.pairs import GeoMean
from windrow.columns.segments import SegmentKernel
from windrow.errors import Refused


def runs(keys: np.ndarray[Any, Any], count: int, base: int) -> np.ndarray[Any, Any]:
    return base + np.searchsorted(keys, np.arange(count + 1))


@pytest.mark.parametrize("aggregate", [wr.Max("x"), wr.Min("x"), GeoMean("x")], ids=repr)
@given(st.integers(0, 10**6), st.integers(5, 30), st.booleans())
@settings(max_examples=60)
def test_segments_equal_the_whole(
    aggregate: wr.Aggregate, seed: int, lookback: int, nulls: bool
) -> None:
    generator = np.random.default_rng(seed)
    n, count = 120, 3
    time = np.sort(generator.integers(0, 100, n))
    keys = generator.integers(0, count, n)
    x = generator.random(n) + 0.5
    valid = generator.random(n) > (0.3 if nulls else -1)
    table = pa.table({"k": keys, "t": time, "x": pa.array(x, mask=~valid)})
    spec = wr.Rolling(key="k", time="t", windows={"w": wr.time(lookback)}, aggregates=[aggregate])
    whole = spec(table)[spec.outputs[0][0]].to_pylist()
    middle_value = {"max": -np.inf, "min": np.inf}.get(aggregate.name, 1.0)
    filled = np.where(valid, x, middle_value)
    kernel = SegmentKernel(aggregate, [filled.dtype], nulls)
    start = int(generator.integers(40, 70))
    end = start + int(generator.integers(1, lookback))  # not longer than the lookback
    order = np.lexsort((np.arange(n), time, keys))
    by_key = {"k": keys[order], "t": time[order], "x": filled[order], "valid": valid[order]}

    def part(low: int, high: int) -> np.ndarray[Any, Any]:
        return np.flatnonzero((by_key["t"] > low) & (by_key["t"] <= high))

    old, new = part(start - lookback, end - lookback), part(start, end)
    between = part(end - lookback, start)
    own = GeoMean is type(aggregate)
    offsets = runs(by_key["k"][between], count, 0)
    middle = kernel.fold(
        [by_key["x"][between]], offsets, by_key["valid"][between] if own and nulls else None
    )
    rows = np.array([by_key["valid"][between][a:b].sum() for a, b in pairwise(offsets)])
    both = np.concatenate([old, new])
    old_runs = runs(by_key["k"][old], count, 0)
    new_runs = runs(by_key["k"][new], count, len(old))
    lo, hi = [], []
    for row in new:
        key, now = by_key["k"][row], by_key["t"][row]
        own_old = by_key["t"][old][old_runs[key] : old_runs[key + 1]]
        own_new = by_key["t"][new][new_runs[key] - len(old) : new_runs[key + 1] - len(old)]
        lo.append(old_runs[key] + np.searchsorted(own_old, now - lookback, "right"))
        hi.append(new_runs[key] + np.searchsorted(own_new, now, "right"))
    answers = kernel.answers(
        [by_key["x"][both]],
        old_runs,
        new_runs,
        np.array(lo, np.int64),
        np.array(hi, np.int64),
        middle,
        rows,
        by_key["valid"][both] if nulls else None,
    )
    for row, answer in zip(new, answers, strict=True):
        want = whole[order[row]]
        if want is not None:
            assert answer == pytest.approx(want, rel=1e-12)


def test_what_has_no_kernel_says_why() -> None:
    with pytest.raises(Refused, match=r"no segment kernel: .*identity"):
        SegmentKernel(wr.Concat("x"), [np.dtype(np.float64)])
