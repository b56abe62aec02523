"""Banks: each key's answer is that of a counter of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from windrow.approx import Bank, Count, OverTime, Sum
from windrow.errors import BadBytes, BadSpecification, BadValue, OutOfOrder

LAYOUTS = [
    ("count", 50, 0.1, 1),
    ("count", 53, 0.013, 1),
    ("count", 30, 1e-9, 1),
    ("sum", 30, 0.07, 1500),
    ("sum", 100, 0.008, 100),
    ("sum", 30, 0.001, 1500),
    ("sum", 40, 0.003, 10**6),
    ("sum", 64, 1 / 73, 1500),
    ("sum", 5, 0.1, 1500),
]


@examples(40)
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
        assert bank.query([key])[0] == one.query()
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
    with pytest.raises(BadValue, match="whole numbers"):
        bank.insert_many(["a"], [5])
    with pytest.raises(BadValue, match=r"2\*\*63"):
        bank.insert_many(np.array([2**63], np.uint64), [5])
    bank.insert_many([])
    assert bank.query([]).tolist() == []


NAMES: dict[str, list[Any]] = {
    "text": [f"user {n}é" * (n % 4) + str(n) for n in range(40)],
    "bytes": [b"\0" * n for n in range(40)],
    "integer": [n * n * 7919 - 400 for n in range(40)],
}


@examples(15)
@given(
    st.sampled_from(LAYOUTS),
    st.sampled_from(sorted(NAMES)),
    st.integers(1, 4),
    st.sampled_from([3, 40, 900]),
    st.integers(0, 2**32),
)
def test_every_key_has_a_window_of_time(
    layout: Any, names: str, tick: int, span: int, seed: int
) -> None:
    kind, window, epsilon, _ = layout
    maximum = 2000
    rng = np.random.default_rng(seed)
    bank = Bank(kind, window, epsilon, maximum, tick=tick)
    keys = [NAMES[names][n] for n in rng.integers(0, 40, 600)]
    values = rng.integers(0, 1 if kind == "count" else 40, 600, endpoint=True)
    at = np.sort(rng.integers(-span, span, 600))
    cut = int(rng.integers(0, 600))
    bank.insert_many(keys[:cut], values[:cut], at=at[:cut])
    bank = Bank.from_bytes(bank.to_bytes())
    bank.insert_many(
        np.array(keys[cut:], object) if names != "integer" else keys[cut:],
        values[cut:],
        at=at[cut:],
    )
    later = int(at[-1]) + int(rng.integers(0, 2 * window * tick))
    assert len(bank) == len(set(keys)) == len(bank.keys())
    assert set(bank.keys().tolist()) == set(keys)
    for key in sorted(set(keys))[:8]:
        one = OverTime(Sum(window, maximum, epsilon), tick)
        mine = [(int(v), int(t)) for k, v, t in zip(keys, values, at, strict=True) if k == key]
        for value, time in mine:
            one.insert(value, at=time)
        now = mine[-1][1]
        for moment in (int(at[-1]), later):
            truth = sum(v for v, t in mine if t > moment - window * tick)
            found = bank.query([key], at=moment)[0]
            assert found == one.query(at=moment) or moment // tick - now // tick >= window
            assert abs(found - truth) <= bank.error_bound
        assert key in bank
    heavy, estimates = bank.heavy(0, at=later)
    assert dict(zip(heavy.tolist(), estimates.tolist(), strict=True)) == {
        key: bank.query([key], at=later)[0] for key in set(keys)
    }


def test_texts_grow_are_saved_and_dropped(tmp_path: Path) -> None:
    bank = Bank("sum", 30, 0.07, 1500)
    names = [f"user-{n}" for n in range(20_000)]
    bank.insert_many(names, np.arange(20_000) % 1500)
    numbers = Bank("sum", 30, 0.07, 1500)
    numbers.insert_many(np.arange(20_000), np.arange(20_000) % 1500)
    assert np.array_equal(bank.query(names), numbers.query(np.arange(20_000)))
    characters = sum(map(len, names)) / len(names)
    assert bank.nbytes <= len(bank) * (1.25 * (bank.bits() / 8 + characters) + 16)
    bank.save(tmp_path / "bank")
    again = Bank.load(tmp_path / "bank")
    assert again.to_bytes() == bank.to_bytes()
    assert again.drop_idle() == 0
    again.insert_many(names[::100])
    assert again.drop_idle() == 19_800
    assert again.keys().tolist() == names[::100]
    assert again.query(names[:101]).tolist()[1:100] == [0.0] * 99
    again.insert_many(["new"])
    assert "new" in again
    assert "user-1" not in again
    assert 7 not in again


def test_refusals_over_time_leave_everything_as_it_was() -> None:
    bank = Bank("sum", 10, 0.1, 50, tick="1s")
    when = np.array(["2026-01-01T00:00:00.5", "2026-01-01T00:00:01"], "datetime64[ms]")
    bank.insert_many(["a", "b"], [20, 30], at=when)
    before = bank.to_bytes()
    with pytest.raises(OutOfOrder, match="key 'b'"):
        bank.insert_many(["a", "new", "b"], [1, 1, 1], at=when[[1, 1, 0]])
    with pytest.raises(BadValue, match="key 'b': the values of the tick"):
        bank.insert_many(["a", "b"], [1, 21], at=when[[1, 1]])
    assert bank.to_bytes() == before
    assert "new" not in bank
    with pytest.raises(OutOfOrder, match="latest tick"):
        bank.query(["a"], at=when[0])
    with pytest.raises(BadSpecification, match="at="):
        bank.insert_many(["a"], [1])
    with pytest.raises(BadSpecification, match="at="):
        Bank("sum", 10, 0.1, 50).insert_many(["a"], [1], at=[5])
    with pytest.raises(BadValue, match="all texts or all bytes"):
        bank.insert_many([b"a"], [1], at=when[1:])
    with pytest.raises(BadValue, match="missing"):
        bank.insert_many(["a", None], [1, 1], at=when)
    with pytest.raises(BadValue, match="whole numbers"):
        Bank("sum", 10, 0.1, 50).insert_many([0.5], [1])
    clamped = Bank("count", 10, 1e-9, 3, tick=1, clamp=True)
    clamped.insert_many([1] * 5, at=[7] * 5)
    assert clamped.query([1]).tolist() == [3.0]
