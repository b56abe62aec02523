"""Sketches: within their stated error on a million rows, the same in every process and grouping."""

import os
import random
import subprocess
import sys
from collections import Counter
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.aggregates.hashing import hash64
from windrow.errors import BadBytes, BadSpecification
from windrow.testing import check_laws
from windrow.windows.compare import equal, same

Aggregate = Any
CHUNK, WIDE = 10_000, 20
"""Rows of a segment, and segments of a window: a million rows slide by folding partials."""


def stream() -> Any:
    """A million rows: a few values are frequent, most are rare, a few hundred thousand differ."""
    generator = np.random.default_rng(7)
    return np.minimum(generator.zipf(1.25, 1_000_000), 10**12)


def windows_over(aggregate: Aggregate, rows: Any) -> Any:
    """Each window of 200,000 rows with its partial, folded by DABA Lite from segments."""
    window = wr.windows.DabaLite(aggregate)
    for end in range(CHUNK, len(rows) + 1, CHUNK):
        window.push(aggregate.of_run(rows[end - CHUNK : end].tolist()))
        if len(window) > WIDE:
            window.evict()
        if len(window) == WIDE:
            yield rows[end - CHUNK * WIDE : end], window.total()


@pytest.fixture(scope="module")
def rows() -> Any:
    return stream()


def test_approx_distinct_is_within_its_error(rows: Any) -> None:
    aggregate = wr.ApproxDistinct(error=0.02)
    errors = []
    for held, partial in windows_over(aggregate, rows):
        exact = len(np.unique(held))
        assert exact > 10_000
        errors.append(abs(aggregate.answer(partial) / exact - 1))
        assert len(partial) <= 40 + (1 << aggregate.lg_k)
    assert len(errors) == 81
    # Three standard deviations: 99.7 % of windows, and these overlap.
    assert np.mean(np.array(errors) <= aggregate.error_bound) > 0.95
    assert max(errors) <= 4 / 3 * aggregate.error_bound
    assert np.sqrt(np.mean(np.square(errors))) <= 1.5 * aggregate.error
    whole = reduce(
        aggregate.combine, [aggregate.of_run(part.tolist()) for part in np.split(rows, 8)]
    )
    assert abs(aggregate.answer(whole) / len(np.unique(rows)) - 1) <= aggregate.error_bound


def test_errors_of_distinct_counts_are_spread_as_stated() -> None:
    """Windows that share no value: their errors are independent, and have the stated deviation."""
    aggregate = wr.ApproxDistinct(error=0.05)
    size = 2000
    errors = np.array(
        [
            aggregate.answer(aggregate.of_run(range(start, start + size))) / size - 1
            for start in range(0, 300 * size, size)
        ]
    )
    stated = 1.04 / np.sqrt(1 << aggregate.lg_k)
    assert stated <= 0.05
    assert abs(errors.mean()) < 0.2 * stated
    assert 0.85 * stated < errors.std() < 1.15 * stated
    assert np.mean(np.abs(errors) <= aggregate.error_bound) >= 0.99


def test_approx_quantile_is_within_its_error(rows: Any) -> None:
    """The coin is not ours to seed: the bound is that of 99 in 100 over all quantiles at once."""
    generator = np.random.default_rng(3)
    values = generator.permutation(1_000_000).astype(np.float64)
    aggregate = wr.ApproxQuantile(error=0.01)
    errors = []
    for held, partial in windows_over(aggregate, values):
        ordered = np.sort(held)
        for phi in (0.01, 0.5, 0.99):
            found = wr.ApproxQuantile(phi, error=0.01).answer(partial)
            errors.append(abs((np.searchsorted(ordered, found) + 0.5) / len(ordered) - phi))
        assert len(partial[0]) <= 24 * aggregate.k + 60
    assert len(errors) == 243
    assert max(errors) <= 1.5 * aggregate.error_bound
    assert np.mean(np.array(errors) <= aggregate.error_bound) > 0.9
    assert aggregate.error_bound <= 0.01


def test_frequent_items_are_within_their_bounds_always(rows: Any) -> None:
    aggregate = wr.FrequentItems(share=0.02, error=0.01)
    inexact = 0
    for held, partial in windows_over(aggregate, rows):
        values, counts = np.unique(held, return_counts=True)
        true = dict(zip(values.tolist(), counts.tolist(), strict=True))
        found = aggregate.answer(partial)
        for item in found:
            assert item["least"] <= true[item["value"]] <= item["most"]
            assert item["least"] <= item["count"] <= item["most"]
            assert item["most"] - item["least"] <= aggregate.error_bound * len(held)
            inexact += item["most"] > item["least"]
        named = {item["value"] for item in found}
        assert {v for v, n in true.items() if n >= aggregate.share * len(held)} <= named
        assert found == sorted(found, key=lambda item: -item["count"])
    assert inexact
    assert aggregate.error_bound <= 0.01


def test_count_min_is_within_its_error(rows: Any) -> None:
    aggregate = wr.CountMin(error=0.01, confidence=0.99)
    asked = [*range(1, 60), *range(1000, 1100)]
    above: list[bool] = []
    for held, partial in windows_over(aggregate, rows):
        true = Counter(held.tolist())
        for value in asked:
            off = wr.CountMin.estimate(partial, value) - true[value]
            assert off >= 0
            above.append(off > aggregate.error_bound * len(held))
        assert len(partial) <= 8 * np.prod(aggregate.shape) + 40
    assert np.mean(above) <= 0.01


def test_bloom_filters_deny_nothing_and_are_seldom_wrong() -> None:
    aggregate = wr.Bloom(capacity=20_000, error=0.01)
    partial = reduce(
        aggregate.combine,
        [aggregate.of_run(range(start, start + 500)) for start in range(0, 20_000, 500)],
    )
    assert len(partial) <= 14 + -(-aggregate.bits // 8)
    assert all(wr.Bloom.contains(partial, x) for x in range(0, 20_000, 7))
    wrong = np.mean([wr.Bloom.contains(partial, x) for x in range(100_000, 120_000)])
    assert 0.005 < wrong < 0.0125
    text = wr.Bloom(capacity=3).of_run(["a", "b"])
    assert wr.Bloom.contains(text, "a")
    assert not wr.Bloom.contains(text, b"a")


# --- grouping and order --------------------------------------------------------------------------

SMALL: list[Aggregate] = [
    wr.ApproxDistinct(error=0.1),
    wr.ApproxDistinct(),
    wr.ApproxQuantile(0.3, error=0.1),
    wr.ApproxQuantile(0.3, error=0.05),
    wr.FrequentItems(share=0.4, error=0.4),
    wr.FrequentItems(share=0.1, error=0.05),
    wr.CountMin(error=0.5, confidence=0.9),
    wr.CountMin(),
    wr.Bloom(capacity=3, error=0.2),
    wr.Bloom(),
]
"""Small enough that a few hundred rows are more than they keep exactly, beside the usual ones."""


def tree(aggregate: Aggregate, partials: list[Any], generator: random.Random) -> Any:
    """Combined neighbour by neighbour, in any grouping."""
    partials = list(partials)
    while len(partials) > 1:
        i = generator.randrange(len(partials) - 1)
        partials[i : i + 2] = [aggregate.combine(partials[i], partials[i + 1])]
    return partials[0]


@pytest.mark.parametrize("aggregate", SMALL, ids=repr)
@pytest.mark.parametrize("size", [5, 12, 40, 700])
def test_grouping_and_order_do_not_matter(aggregate: Aggregate, size: int) -> None:
    """To the bit where that is promised, else as far as the bounds can tell."""
    generator = random.Random(size)
    values: list[Any] = [generator.choice([generator.randrange(size), 0.5, 3]) for _ in range(size)]
    partials = [aggregate.lift(value) for value in values]
    other = generator.sample(partials, len(partials))
    first = reduce(aggregate.combine, partials)
    for again in (
        tree(aggregate, partials, generator),
        reduce(aggregate.combine, other),
        aggregate.of_run(values),
    ):
        assert same(aggregate, first, again)
        if aggregate.reproducible:
            assert aggregate.answer(first) == aggregate.answer(again)


@pytest.mark.parametrize("aggregate", SMALL, ids=repr)
def test_laws_hold_where_little_is_kept(aggregate: Aggregate) -> None:
    check_laws(aggregate, [1, 2, 3.5, 2, 5, 6, 7, 8, 9, 10], rounds=60)


def test_agreement_is_not_given_away() -> None:
    """What laws compare estimates by finds a row that is missing, or another."""
    quantile, frequent = wr.ApproxQuantile(error=0.1), wr.FrequentItems(share=0.4, error=0.4)
    numbers = list(range(200))
    for aggregate in (quantile, frequent):
        whole = aggregate.of_run(numbers)
        assert not same(aggregate, whole, aggregate.of_run(numbers[1:]))
    assert not same(quantile, quantile.of_run(numbers), quantile.of_run([x + 1 for x in numbers]))
    assert not same(quantile, quantile.of_run(numbers), quantile.of_run([0] * 150 + numbers[150:]))
    few = ["a"] * 5 + ["b"]
    assert not same(frequent, frequent.of_run(few), frequent.of_run(["a"] + ["b"] * 5))


def test_quantiles_of_few_rows_are_exact() -> None:
    generator = np.random.default_rng(0)
    values = generator.choice([1.0, 2.5, -3.0, np.nan, np.inf, 7.0], 150)
    table = pa.table({"x": values})
    for phi in (0.0, 0.1, 0.5, 0.9, 1.0):
        aggregates = [
            wr.ApproxQuantile("x", phi).alias("about"),
            wr.Quantile("x", phi, method="inverted_cdf").alias("exact"),
        ]
        answers = wr.Rolling(windows={"w": wr.rows(60)}, aggregates=aggregates)(table)
        assert equal(answers["about_w"].to_pylist(), answers["exact_w"].to_pylist())


def test_numbers_that_are_equal_are_one_value() -> None:
    assert hash64(1) == hash64(1.0) == hash64(np.int8(1)) == hash64(True)
    assert hash64(0.5) != hash64(0.25) != hash64("0.25")
    assert hash64(-0.0) == hash64(0)
    assert hash64(float("nan")) == hash64(-float("nan"))
    assert wr.ApproxDistinct().answer(wr.ApproxDistinct().of_run([1, 1.0, True, "1", b"1"])) == 3


# --- processes -----------------------------------------------------------------------------------

_PRINT = """
import hashlib, windrow as wr
values = ["a", "b", "c", 1, 2.5, None, b"x"] + [f"w{i}" for i in range(300)]
for aggregate in (wr.ApproxDistinct(), wr.CountMin(error=0.1), wr.Bloom(capacity=50),
                  wr.FrequentItems(error=0.4, share=0.4)):
    window = wr.windows.TwoStacksLite(aggregate)
    for value in values:
        window.insert(str(value) if aggregate.family else value)
    print(hashlib.sha256(aggregate.to_bytes(window.total())).hexdigest())
"""


def test_bytes_are_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(set(found.pop().split())) == 4


_WITHOUT = """
import sys
sys.modules["datasketches"] = None
import windrow as wr
wr.Bloom()
for kind in (wr.ApproxDistinct, wr.ApproxQuantile, wr.FrequentItems, wr.CountMin):
    try:
        kind("x")
    except ImportError as error:
        print(error)
from windrow.columns.warm import with_kernels
assert with_kernels()
"""


def test_without_the_package_the_extra_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("pip install 'windrow[sketches]'") == 4


# --- what is said --------------------------------------------------------------------------------


def test_bounds_and_sizes_are_said() -> None:
    table = pa.table({"x": [1.0, 2.0], "s": ["a", "b"]})
    aggregates: list[Any] = [
        wr.ApproxDistinct("s"),
        wr.ApproxQuantile("x", 0.5),
        wr.FrequentItems("s"),
        wr.CountMin("s"),
        wr.Bloom("s"),
        wr.Max("x"),
    ]
    said = wr.Rolling(windows=[wr.rows(2)], aggregates=aggregates).explain(table)
    for aggregate in aggregates[:-1]:
        assert aggregate.approximate
        assert aggregate.approximation in said
        assert aggregate.error_bound <= 0.051
    assert said.count("approximate:") == 5
    assert wr.Max().approximation == ""


def test_mistakes() -> None:
    for make, message in (
        (lambda: wr.ApproxDistinct(error=0.5), "error= is from 0.0008 to 0.1, not 0.5"),
        (lambda: wr.ApproxQuantile(1.5), "phi= is from 0 to 1, not 1.5"),
        (lambda: wr.ApproxQuantile(0.5, phi=0.5), "phi is given twice"),
        (lambda: wr.FrequentItems(share=0.001), "share=0.001 is less than error=0.01"),
        (lambda: wr.CountMin(confidence=1), "confidence= is from 0.5 to 1, not 1"),
        (lambda: wr.Bloom(capacity=0), "capacity= is a number from 1 on, not 0"),
        (lambda: wr.Bloom(capacity=10**9), "the most is"),
    ):
        with pytest.raises(BadSpecification, match=message):
            make()
    with pytest.raises(BadBytes, match="expected the bytes"):
        wr.Bloom.contains(b"something", 1)
    with pytest.raises(BadBytes, match="expected the bytes"):
        wr.CountMin.estimate(b"WCMS", 1)
    with pytest.raises(TypeError, match="takes numbers, got 'a'"):
        wr.windows.DabaLite(wr.ApproxQuantile()).insert("a")
    assert wr.ApproxQuantile("x", 0.999).output_name == "x_approx_p99_9"
