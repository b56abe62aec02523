"""The paper's bounds of compiled kernels, counted in the kernels' own texts.

A kernel's text is a Python function as well (``py_func``). Here Python runs it, with a ⊕ that
counts its applications, or over an array that counts how often it is read: nothing in the kernels
is there for the counting.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from windrow.columns.filters import extremes, ordered, stabbing
from windrow.columns.shared import b_int, l_int, r_int
from windrow.filters import CiCount, CiMax

Cells = list[Any]


def counted(module: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Make a module's kernels work on lists, where None is no rows, and count what they apply."""
    applied: Counter[str] = Counter()

    def combine(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        applied["combine"] += 1
        return a + b

    def inverse(total: Any, oldest: Any) -> Any:
        applied["inverse"] += 1
        return total - oldest

    def store(cells: Cells, i: Any, partial: Any) -> None:
        cells[int(i)] = partial

    parts: dict[str, Any] = {
        "combine": combine,
        "inverse": inverse,
        "store": store,
        "load": lambda cells, i: cells[int(i)],
        "lift": lambda cells, items, i: items[int(i)],
        "identity": lambda cells: None,
    }
    for name, part in parts.items():
        monkeypatch.setattr(module, name, part, raising=False)
    return applied


def test_landmarks_cost_three_combines_and_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """L-INT, c = 2: at most 4 combines a row (here 3), one a lookup, for each class of widths.

    Texts that are joined show the order of rows too.
    """
    applied = counted(l_int, monkeypatch)
    for least in (1, 2, 5, 8, 32):
        most, rows = 2 * least, [f"{i}," for i in range(200)]
        elements, backward = [None] * 64, [None] * 128
        forward = [None] * (128 * 2)
        before = applied["combine"]
        l_int.append.py_func(elements, forward, backward, rows, 0, least, 2)
        assert applied["combine"] - before <= 3 * len(rows)
        ranges = [(r - w + 1, r) for r in range(150, 200) for w in range(least, most + 1)]
        out = [None] * len(ranges)
        lefts, rights = np.array(ranges).T
        before = applied["combine"]
        assert l_int.look_up.py_func(forward, backward, lefts, rights, least, 2, out)
        assert applied["combine"] - before <= len(ranges)
        assert out == ["".join(rows[a : b + 1]) for a, b in ranges]


def test_running_intervals_cost_one_combine_and_one_inverse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applied = counted(r_int, monkeypatch)
    totals: Cells = [0] * 64
    rows = [i * i for i in range(200)]
    r_int.append.py_func(totals, rows, 0)
    assert applied == {"combine": len(rows)}
    lefts = np.arange(140, 190)
    rights = lefts + lefts % 10
    out = [0] * len(lefts)
    r_int.subtracted.py_func(totals, lefts, rights, out)
    assert applied == {"combine": len(rows), "inverse": len(lefts)}
    assert out == [sum(rows[a : b + 1]) for a, b in zip(lefts, rights, strict=True)]


def test_base_intervals_cost_one_combine_and_twice_the_logarithm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-INT: amortised one combine a row, 2·log2 W a lookup.

    A lookup fills up with places that hold nothing; these are no partials, and are not counted.
    """
    applied = counted(b_int, monkeypatch)
    words: dict[str, Any] = {
        "leading_zeros": lambda x: 64 - int(x).bit_length(),
        "ones": lambda x: int(x).bit_count(),
        "trailing_zeros_of_half": lambda x: np.uint64(
            ((int(x) & -int(x)).bit_length() - 1) if int(x) & 0xFFFFFFFF else 32
        ),
        "_parts": b_int._parts.py_func,
        "_three": b_int._three.py_func,
        "_combined": b_int._combined.py_func,
    }
    for name, word in words.items():
        monkeypatch.setattr(b_int, name, word)
    rows, capacity = [i * i for i in range(400)], 128
    cells: Cells = [None] * (2 * capacity)
    for start in range(0, len(rows), 60):
        b_int.append.py_func(cells, rows[start : start + 60], start, 7)
    assert applied["combine"] <= len(rows)
    with np.errstate(over="ignore"):
        for left in range(272, 400):
            rights = np.arange(left, 400, 5)
            for right in rights:  # alone, and below all at once
                before = applied["combine"]
                out: Cells = [None]
                one = np.array([right])
                b_int.look_up.py_func(cells, np.array([left]), one, out)
                assert applied["combine"] - before <= 2 * math.log2(right - left + 1)
                assert out == [sum(rows[left : right + 1])]
            before = applied["combine"]
            out = [None] * len(rights)
            b_int.look_up.py_func(cells, np.full(len(rights), left), rights, out)
            most = 2 * np.log2(rights - left + 1).sum()
            assert applied["combine"] - before <= most
            assert out == [sum(rows[left : right + 1]) for right in rights]


class Reads:
    """An array that counts how often it is read."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.count = 0

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, i: Any) -> Any:
        self.count += 1
        return self.array[i]

    def __setitem__(self, i: Any, value: Any) -> None:
        self.array[i] = value


@pytest.mark.parametrize("keys", [100, 10_000])
def test_reading_off_costs_what_it_finds(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI-COUNT: of k keys that are found, their names and 4·k + 1 times; of the others nothing."""
    filter = CiCount(1_000_000)
    order = np.random.default_rng(1).permutation(keys)
    filter.insert_many(np.repeat(order, 3), np.repeat(np.arange(keys), 3))
    filter.candidates(keys, 1, at_least=3)  # from here on the level is indexed
    told = []
    read_off = ordered.read_off.py_func

    def counting(pool: Any, index: Any, border: Any, out: Any) -> int:
        reads = Reads(pool)
        found = int(read_off(reads, index, border, out))
        told.append((found, reads.count))
        return found

    monkeypatch.setattr(ordered, "read_off", counting)
    for wanted in (0, 1, 7, 80):
        found = filter.candidates(keys, wanted + 1, at_least=3)
        assert sorted(found) == sorted(order[keys - wanted :].tolist())
        assert told[-1][0] == wanted
        assert told[-1][1] <= 5 * wanted + 1


@pytest.mark.parametrize("rows", [4_000, 64_000])
def test_stabbing_costs_what_it_finds(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI-MAX: a root for each of log2 N heaps, and at most six reads for each key that is found.

    What a walk meets that is dead is moved to the bottom, once: the second walk does not meet it.
    """
    rng = np.random.default_rng(2)
    filter = CiMax(10 * rows)
    keys, values = rng.integers(0, 500, rows), rng.random(rows)
    filter.insert_many(keys, values, np.arange(rows))
    told = []
    stab, look_up = stabbing.stab.py_func, extremes.lookup.py_func
    for name in ("_walk", "_lower"):
        monkeypatch.setattr(stabbing, name, getattr(stabbing, name).py_func)

    def counting(nodes: Any, ranks: Any, pool: Any, *rest: Any) -> int:
        reads = Reads(pool)
        found = int(stab(nodes, ranks, reads, *rest))
        told.append((found, reads.count))
        return found

    monkeypatch.setattr(stabbing, "stab", counting)
    monkeypatch.setattr(extremes, "lookup", look_up)
    for span in (rows // 2, rows // 3):
        inside = slice(rows - span, None)
        most: dict[int, float] = {}
        for key, value in zip(keys[inside].tolist(), values[inside].tolist(), strict=True):
            most[key] = max(most.get(key, 0.0), value)
        for least in (np.sort(list(most.values()))[-k] for k in (1, 10, 100)):
            for _ in range(2):
                found = filter.lookup(rows - 1, span, at_least=float(least))
                assert sorted(found) == sorted(key for key, v in most.items() if v >= least)
            assert told[-1][1] <= math.log2(rows) + 6 * told[-1][0]
