"""Banks: each key's answer is that of a counter of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.approx import Bank, Count, Sum
from windrow.errors import BadBytes, BadSpecification, BadValue

LAYOUTS = [
    ("count", 50, 0.1, 1),
    ("count", 53, 0.013, 1),
    ("count", 30, 1e-9, 1),
    ("sum", 30, 0.07, 1500),
    ("sum", 100, 0.008, 100),
    ("sum", 30, 0.001, 1500),
    ("sum", 40, 0.003, 10**6),
]


@settings(max_examples=40)
@given(st.sampled_from(LAYOUTS), st.integers(0, 2**32), st.integers(1, 300))
def test_every_key_has_a_counter_of_its_own(layout: Any, seed: int, many: int) -> None:
    kind, window, epsilon, R = layout
    bank = Bank(kind, window, epsilon, R)
    rng = np.random.default_rng(seed)
    keys = rng.choice(rng.integers(-(2**63), 2**63 - 1, many), 3000)
    values = rng.integers(0, R, 3000, endpoint=True)
    cut = int(rng.integers(0, 3000))
    bank.insert_many(keys[:cut], values[:cut])
    bank.insert_many(keys[cut:], values[cut:])
    assert len(bank) == len(np.unique(keys))
    for key in np.unique(keys)[:20]:
        one = Count(window, epsilon) if kind == "count" else Sum(window, R, epsilon)
        one.insert_many(values[keys == key])
        assert bank.query([key])[0] == pytest.approx(one.query(), rel=1e-12)
        truth = values[keys == key][-window:].sum()
        assert abs(bank.query([key])[0] - truth) <= bank.error_bound * (1 + 1e-12)
    threshold = window * R / 2
    heavy = set(bank.heavy(threshold)[0].tolist())
    for key in np.unique(keys):
        truth = values[keys == key][-window:].sum()
        assert key in heavy or truth < threshold
        assert key not in heavy or truth >= threshold - 2 * bank.error_bound - 1e-6


def test_saves_and_restores(tmp_path: Path) -> None:
    bank = Bank("sum", 100, 0.01, 1500, clamp=True)
    keys = np.arange(5000) * 17 - 400
    bank.insert_many(keys, keys)
    bank.save(tmp_path / "bank")
    again = Bank.load(tmp_path / "bank")
    assert np.array_equal(again.query(keys), bank.query(keys))
    bank.insert_many(keys[::-1], keys)
    again.insert_many(keys[::-1], keys)
    assert bank.to_bytes() == again.to_bytes()
    damaged = bytearray(bank.to_bytes())
    damaged[-1] ^= 1
    with pytest.raises(BadBytes, match="damaged"):
        Bank.from_bytes(bytes(damaged))


def test_grows_within_its_memory_and_drops_idle_keys() -> None:
    for kind, window, epsilon, R in LAYOUTS:
        bank = Bank(kind, window, epsilon, R)
        for many in range(10_000, 60_001, 7_777):
            bank.insert_many(np.arange(many))
            assert bank.nbytes <= len(bank) * (1.25 * bank.bits() / 8 + 16)
    before = bank.query(np.arange(50, 100))
    assert bank.drop_idle() == 0
    bank.insert_many(np.arange(100), np.zeros(100, int))
    assert bank.drop_idle() == many - 100
    assert len(bank) == 100
    assert 99 in bank
    assert 100 not in bank
    assert np.all(np.abs(bank.query(np.arange(50, 100)) - before) <= 2 * bank.error_bound)
    assert bank.nbytes < 10_000
    assert bank.drop_idle() == 100
    assert bank.query([5]).tolist() == [0.0]


def test_refusals() -> None:
    with pytest.raises(BadSpecification, match="kind"):
        Bank("mean", 10, 0.1)
    with pytest.raises(BadSpecification, match="for sums"):
        Bank("count", 10, 0.1, 5)
    with pytest.raises(BadSpecification, match="56 bits"):
        Bank("sum", 2**40, 0.1, 2**60)
    bank = Bank("sum", 10, 0.1, 5)
    with pytest.raises(BadValue, match="key 8, row 1"):
        bank.insert_many([7, 8], [5, 6])
    assert len(bank) == 0
    with pytest.raises(BadValue, match="one for each"):
        bank.insert_many([7, 8], [5])
    with pytest.raises(BadValue, match="stable hash"):
        bank.insert_many(["a"], [5])
    with pytest.raises(BadValue, match=r"2\*\*63"):
        bank.insert_many(np.array([2**63], np.uint64), [5])
    bank.insert_many([])
    assert bank.query([]).tolist() == []
