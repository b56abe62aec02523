"""Counters in few bits: never further from the truth than they say, and as small as they say."""

import copy
import math
import os
import pickle
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from windrow.approx import Count, ExponentialHistogram, OverTime, RealSum, Sum
from windrow.approx.base import Counter
from windrow.approx.bits import Packed
from windrow.errors import BadBytes, BadSpecification, BadValue, InvariantBroken, OutOfOrder

SLOW = os.environ.get("WINDROW_TESTS") == "slow"
MANY = settings(max_examples=30_000 if SLOW else 3000)

windows = st.one_of(st.integers(1, 40), st.integers(1, 400))
ranges = st.one_of(
    st.integers(1, 12), st.integers(1, 10**6), st.sampled_from([2**31, 2**40, 10**18])
)


@st.composite
def epsilons(draw: st.DrawFn, W: int = 100) -> Any:
    """ε of every size that means something for a window of W, and floats that divide nothing."""
    how = draw(st.integers(0, 3))
    if how == 0:
        return draw(st.floats(1e-9, 0.25))
    if how == 1:
        return Fraction(1, draw(st.integers(4, 400)))
    if how == 2:
        return min(0.25, draw(st.integers(1, 60)) / (draw(st.integers(1, 8)) * W))
    return min(0.25, 1 / (2 * W * draw(st.floats(0.3, 40))))


def adversaries(W: int, R: int, epsilon: float, seed: int) -> Iterator[list[int]]:
    """Lemma 3's and Lemma 12's words, and streams that sit on the edges of blocks."""
    rng = np.random.default_rng(seed)
    block = int(2 * W * epsilon + 1)
    words = [R * int(bit) for bit in rng.integers(0, 2, W // block + 1) for _ in range(block)]
    yield words[:W] + [0] * (W + 1)
    letter = int(2 * R * W * epsilon + 1)
    letters = [letter * int(n) for n in rng.integers(0, R // letter + 1, W)]
    yield letters + [0] * (W + 1)
    edge = max(math.ceil(2 * W * epsilon), 1)
    yield ([R] * (edge + 1) + [0] * (edge - 1)) * (2 * W // (2 * edge) + 1)
    yield [R] * (2 * W + 1)
    yield [R, 0] * W + [0, R]
    yield [0] * (W + 3)
    yield [int(x) for x in rng.integers(0, R, 2 * W + 2, endpoint=True)]


def check_stream(counter: Counter, stream: list[Any]) -> None:
    """The error at every step, from the first value on, without rounding in the truth."""
    W = counter.window
    total, bound = Fraction(0), counter.error_bound * (1 + 1e-12)
    for j, value in enumerate(stream):
        counter.insert(value)
        total += Fraction(value)
        if j >= W:
            total -= Fraction(stream[j - W])
        error = abs(counter.query() - float(total))
        assert error <= bound + abs(float(total)) * 1e-15, (j, counter)
    counter.check_invariants()


@MANY
@given(st.data(), windows, ranges, st.integers(0, 2**32), st.integers(0, 7))
def test_no_error_beyond_the_bound(data: Any, W: int, R: int, seed: int, which: int) -> None:
    epsilon = data.draw(epsilons(W))
    if which == 7:
        which, R = seed % 7, 1
    counter = Count(W, epsilon) if R == 1 else Sum(W, R, epsilon)
    assert counter.error_bound <= R * W * float(epsilon) * (1 + 1e-12)
    stream = list(adversaries(W, R, float(epsilon), seed))[which]
    check_stream(counter, stream)
    assert len(counter.to_bytes()) <= (counter.bits() + 7) // 8 + 16
    assert sum(counter.field_widths().values()) == counter.bits() >= counter.lower_bound_bits()


@examples(60)
@given(st.data(), windows, ranges, st.integers(0, 2**32))
def test_many_at_once_is_one_by_one(data: Any, W: int, R: int, seed: int) -> None:
    epsilon = data.draw(epsilons(W))
    one = Sum(W, R, epsilon)
    many = copy.deepcopy(one)
    for stream in adversaries(W, R, float(epsilon), seed):
        cut = seed % (len(stream) + 1)
        many.insert_many(np.array(stream[:cut], object if R > 2**62 else np.int64))
        many.insert_many(stream[cut:])
        for value in stream:
            one.insert(value)
        assert one.to_bytes() == many.to_bytes()


@examples(60)
@given(st.data(), windows, st.integers(1, 2000), st.lists(st.integers(0, 300), max_size=8))
def test_skipping_is_inserting_zeros(data: Any, W: int, R: int, gaps: list[int]) -> None:
    one = Sum(W, R, data.draw(epsilons(W)))
    other = copy.deepcopy(one)
    for gap in gaps:
        one.insert(R)
        other.insert(R)
        one.skip(gap)
        for _ in range(gap):
            other.insert(0)
        assert one.to_bytes() == other.to_bytes()
        with_more = one.query_with(R)
        assert one.to_bytes() == other.to_bytes()
        one.insert(R)
        other.insert(R)
        assert with_more == one.query()


@examples(80)
@given(st.data(), windows, st.floats(-100, 100), st.floats(0.1, 1e6), st.integers(0, 2**32))
def test_real_values(data: Any, W: int, low: float, width: float, seed: int) -> None:
    epsilon = max(float(data.draw(epsilons(W))), 1e-6)
    counter = RealSum(W, low + width, epsilon, minimum=low)
    assert counter.error_bound <= W * epsilon * (counter.maximum - low) * (1 + 1e-9)
    rng = np.random.default_rng(seed)
    values = np.clip(
        low + rng.random(3 * W) * rng.choice([0.0, 0.5, 1.0], 3 * W) * width, low, None
    )
    values = np.minimum(values, counter.maximum)
    seen: list[float] = []
    other = copy.deepcopy(counter)
    slack = 1e-12 * W * (abs(low) + width)
    for value in values.tolist():
        counter.insert(value)
        seen = [*seen, value][-W:]
        assert abs(counter.query() - math.fsum(seen)) <= counter.error_bound + slack
    other.insert_many(values)
    assert other.to_bytes() == counter.to_bytes()
    assert RealSum.from_bytes(counter.to_bytes(), like=other).query() == counter.query()


def theorem_8(W: int, k: int) -> int:
    n = W // k
    logs = [math.ceil(math.log2(x)) for x in (2 * n, n, k, k + 1)]
    return k + sum(logs)


def test_bits_are_those_of_theorem_8() -> None:
    for k in (2, 3, 4, 5, 7, 10, 50, 64, 500, 1000, 2**14):
        for n in (1, 2, 3, 4, 5, 8, 100, 1023, 2**16):
            counter = Count(k * n, 1 / (2 * k))
            assert counter.bits() == theorem_8(k * n, k)
            assert counter.field_widths()["b"] == k


def test_exact_where_that_is_smaller() -> None:
    counter = Count(100, 1 / 201)
    assert counter.algorithm == "exact"
    assert counter.error_bound == 0
    assert counter.bits() == 100 + 7 + 7
    assert Sum(100, 7, 1e-12).algorithm == "exact"
    assert Sum(100, 7, 1e-12).bits() == 300 + 7 + 10
    assert Sum(1000, 1500, 0.1).algorithm == "algorithm 2"
    assert Sum(1000, 1500, 1e-5).algorithm == "algorithm 3"
    assert Count(1000, 0.1).algorithm == "algorithm 1"


def test_three_times_the_lower_bound() -> None:
    for exponent in range(31):
        for W in (2**exponent, 2**exponent + 1, 3 * 2**exponent // 2):
            for epsilon in [Fraction(1, q) for q in (4, 5, 7, 10, 30, 60, 100, 1000, 10**5)]:
                counter = Count(W, epsilon)
                assert counter.bits() <= 3 * counter.lower_bound_bits() + 8, counter


def test_three_times_the_lower_bound_for_sums() -> None:
    inverses = {6, 73, 114, 347, *(round(4 * 1.25**j) for j in range(0, 60, 1 if SLOW else 3))}
    for W in (1, 2, 3, 5, 9, 16, 33, 64, 100, 333, 1000, 4096, 10**5, 2**20, 2**30):
        for R in (1, 2, 10, 255, 1500, 10**6):
            for inverse in inverses:
                if min(W, inverse) <= 2**20:
                    counter = Sum(W, R, Fraction(1, inverse))
                    assert counter.bits() <= 3 * counter.lower_bound_bits() + 8, counter


@pytest.mark.parametrize(
    ("W", "R", "inverse"), [(64, 1500, 73), (333, 10**6, 347), (5, 10**6, 10), (1, 255, 9)]
)
def test_words_of_cells_are_shifted(W: int, R: int, inverse: int) -> None:
    for stream in adversaries(W, R, 1 / inverse, 5):
        one, many = Sum(W, R, Fraction(1, inverse)), Sum(W, R, Fraction(1, inverse))
        assert one.layout.word
        assert one.layout.in_pieces or W == 1
        check_stream(one, stream)
        many.insert_many(stream)
        assert many.to_bytes() == one.to_bytes()


def test_the_papers_examples() -> None:
    gold = Sum(3_600_000, 1500, 1 / 1500)
    assert len(gold.to_bytes()) <= 128
    histogram = ExponentialHistogram(3_600_000, 0.001, 1500)
    assert histogram.most_buckets() * histogram.bucket_bits() >= 100 * 8 * len(gold.to_bytes())
    five = Count(1_000_000, 5 / 1_000_000)
    assert five.error_bound <= 5
    assert five.bits() <= 0.1 * 1_000_000 + 50


class Counting(Packed):
    """Fields that count how often they are read or written."""

    __slots__ = ("touched",)
    touched: int

    def get(self, offset: int, width: int) -> int:
        self.touched += 1
        return super().get(offset, width)

    def put(self, offset: int, width: int, value: int) -> None:
        self.touched += 1
        super().put(offset, width, value)


def test_a_constant_number_of_fields_whatever_the_window() -> None:
    most = 0
    for exponent in range(0, 21, 2):
        for epsilon in (0.25, 0.1, 0.001, 2.0**-exponent / 4):
            for counter in (Count(2**exponent, epsilon), Sum(2**exponent, 1500, epsilon)):
                packed = Counting(counter.bits())
                counter._packed = packed
                for j in range(300):
                    packed.touched = 0
                    counter.insert(j % 2)
                    counter.query()
                    most = max(most, packed.touched)
    assert most <= 7  # two reads of the head and a write, two of a cell, two oldest ones


@examples(60)
@given(st.data(), st.integers(1, 30), st.integers(1, 7))
def test_time_windows(data: Any, W: int, length: int) -> None:
    epsilon = data.draw(epsilons(W))
    counter = OverTime(Sum(W, 100, epsilon), tick=length)
    rows: list[tuple[int, int]] = []
    now = 0
    for _ in range(data.draw(st.integers(1, 40))):
        now += data.draw(st.sampled_from([0, 0, 1, 2, 5, 50, 500]))
        value = data.draw(st.integers(0, 20))
        if sum(v for t, v in rows if t // length == now // length) + value > 100:
            continue
        rows.append((now, value))
        counter.insert(value, at=now)
        ticks = sum(v for t, v in rows if t // length > now // length - W)
        assert abs(counter.query() - ticks) <= counter.counter.error_bound
        truth = sum(v for t, v in rows if t > now - W * length)
        assert abs(counter.query() - truth) <= counter.error_bound
        data_bytes = counter.to_bytes()
        assert len(data_bytes) <= (counter.bits() + 7) // 8 + 16
        again = OverTime(Sum(W, 100, epsilon), tick=length).from_bytes(data_bytes)
        assert again.query() == counter.query()
    later = now + 10 * W * length
    assert counter.query(at=later) <= counter.error_bound


def test_times_of_people() -> None:
    noon = datetime(2026, 1, 1, 12)
    counter = OverTime(RealSum(60, 10.0, 0.01), tick="1 minute")
    for minute in range(90):
        counter.insert(2.5, at=noon + timedelta(minutes=minute))
        counter.insert(2.5, at=noon + timedelta(minutes=minute, seconds=30))
    assert abs(counter.query() - 300) <= counter.error_bound
    with pytest.raises(OutOfOrder, match="sort by time"):
        counter.insert(1, at=noon)
    with pytest.raises(BadValue, match="shorter tick"):
        counter.insert(9, at=noon + timedelta(minutes=89, seconds=40))
    with pytest.raises(BadSpecification, match="minimum"):
        OverTime(RealSum(60, 10.0, 0.01, minimum=1.0))


def test_a_gap_costs_no_more_than_the_blocks() -> None:
    counter = Count(10**9, 0.01)
    packed = counter._packed = Counting(counter.bits())
    packed.touched = 0
    counter.skip(10**15)
    assert packed.touched <= 3 * (counter.layout.k + 2)


@examples(150)
@given(st.integers(1, 60), st.integers(1, 300), st.floats(0.01, 0.25), st.integers(0, 2**32))
def test_the_histograms_share(W: int, R: int, epsilon: float, seed: int) -> None:
    histogram = ExponentialHistogram(W, epsilon, R)
    rng = np.random.default_rng(seed)
    streams = list(adversaries(W, R, epsilon, seed))
    stream = [x for j in rng.integers(0, len(streams), 2) for x in streams[j]]
    for j, value in enumerate(stream):
        histogram.insert(value)
        truth = sum(stream[max(0, j - W + 1) : j + 1])
        error = abs(histogram.query() - truth)
        assert error <= histogram.error_bound
        assert error <= epsilon * truth
        assert histogram.buckets() <= histogram.most_buckets()
    assert ExponentialHistogram.from_bytes(histogram.to_bytes()).query() == histogram.query()


@examples(100)
@given(st.data(), st.integers(1, 2**14), st.integers(1, 2**8))
def test_bytes_and_pickles(data: Any, W: int, R: int) -> None:
    counter = Sum(W, R, data.draw(epsilons(100)), clamp=True)
    counter.insert(R)
    raw = counter.to_bytes()
    assert len(raw) <= (counter.bits() + 7) // 8 + 16
    again = Sum.from_bytes(raw)
    assert (again.to_bytes(), again.epsilon, again.maximum) == (raw, counter.epsilon, R)
    assert pickle.loads(pickle.dumps(counter)).to_bytes() == raw
    place = data.draw(st.integers(0, len(raw) - 1))
    damaged = bytearray(raw)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BadBytes):
        Sum.from_bytes(bytes(damaged))


def test_parameters_too_long_for_a_header() -> None:
    counter = Sum(2**30, 2**40, Fraction(1, 3 * 2**20))
    counter.insert(2**40)
    raw = counter.to_bytes()
    assert len(raw) <= (counter.bits() + 7) // 8 + 16
    with pytest.raises(BadBytes, match="like="):
        Sum.from_bytes(raw)
    assert Sum.from_bytes(raw, like=counter).query() == counter.query()
    with pytest.raises(BadBytes, match="other parameters"):
        Sum.from_bytes(raw, like=Sum(2**30, 2**40, 0.01))
    with pytest.raises(BadBytes, match="another kind"):
        Count.from_bytes(Sum(10, 5, 0.1).to_bytes())


def test_values_beyond_a_machine_word() -> None:
    one, many = Sum(20, 2**70, 0.01), Sum(20, 2**70, 0.01)
    values = [2**70 - j * 2**60 for j in range(50)]
    check_stream(one, values)
    many.insert_many(values)
    assert one.to_bytes() == many.to_bytes()


def test_invariants_are_checked() -> None:
    counter = Count(100, 0.05)
    counter.insert_many([1] * 55)
    counter.check_invariants()
    counter._packed.data[0] ^= 255
    with pytest.raises(InvariantBroken):
        counter.check_invariants()


@pytest.mark.parametrize("epsilon", [0, -0.1, 0.2501, math.nan, "1/4", True, None])
def test_epsilon_out_of_range(epsilon: Any) -> None:
    with pytest.raises(BadSpecification, match="epsilon"):
        Count(10, epsilon)


def test_refusals() -> None:
    for window in (0, -1, 2.5, None, True):
        with pytest.raises(BadSpecification, match="window"):
            Count(window, 0.1)  # type: ignore[arg-type]
    for maximum in (0, 1.5, -3):
        with pytest.raises(BadSpecification, match="RealSum"):
            Sum(10, maximum, 0.1)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="clamp=True"):
        Sum(10, 5, 0.1).insert(6)
    with pytest.raises(BadValue, match=r"row 2: .*not in 0\.\.5"):
        Sum(10, 5, 0.1).insert_many([1, 2, -1])
    for value in (0.5, None, "1"):
        with pytest.raises(BadValue, match="whole number"):
            Count(10, 0.1).insert(value)
    with pytest.raises(BadValue, match="row 1"):
        RealSum(10, 5.0, 0.1).insert_many([1.0, math.nan])
    real = RealSum(10, 5.0, 0.1)
    with pytest.raises(BadValue, match="not numbers"):
        real.insert("3")
    with pytest.raises(BadValue, match="not numbers"):
        real.insert_many([1.0, "3"])
    real.insert_many(value for value in (1.0, 2.0))
    assert abs(real.query() - 3.0) <= real.error_bound
    with pytest.raises(BadValue, match="in 0"):
        ExponentialHistogram(10, 0.1).insert(2)
    clamped = Sum(10, 5, 1e-9, clamp=True)
    clamped.insert_many([7, -3])
    clamped.insert(99)
    assert clamped.query() == 10
    assert wr.approx.Count is Count
