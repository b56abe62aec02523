"""The monoid trees: the paper's figures, its searches, its counts; FiBA behind Sliding."""

import random
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import BadSpecification, NotMonotone, OutOfOrder, Refused
from windrow.testing import CombineCounter
from windrow.windows import Amta, LogMta, MonoidTree, Recalc
from windrow.windows import levels as chunks

TREES = (Amta, LogMta)


class Add(wr.Aggregate):
    """Plain numbers, as in the paper's figures."""

    def combine(a: int, b: int) -> int:  # type: ignore[misc]  # noqa: N805
        return a + b


@pytest.fixture(params=[1, 9])
def chunk_bits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Chunks of two elements, so that few rows make many; and the usual ones."""
    bits: int = request.param
    small_chunks(monkeypatch, bits)
    return bits


def small_chunks(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    from windrow import durable
    from windrow.windows import amta, log_mta, monoid_tree, stored_levels

    for module in (chunks, amta, log_mta, monoid_tree, stored_levels, durable):
        for name, value in (("BITS", bits), ("MASK", (1 << bits) - 1), ("SIZE", 1 << bits)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def filled(tree: type[MonoidTree], aggregate: Any, values: Any) -> Any:
    window = tree(aggregate)
    for value in values:
        window.insert(value)
    return window


def level(window: MonoidTree, number: int) -> list[Any]:
    found = window._levels.chunks[number]
    return [element for name in sorted(found) for element in found[name]]


def test_figure_1_log_mta() -> None:
    window = filled(LogMta, Add(), [1, 2, 1, 2, 1, 2])
    assert level(window, 0) == [1, 2, 1, 2, 1, 2]
    assert level(window, 1) == [3, 3, 3]
    assert level(window, 2) == [6, 3]
    assert window.query() == 9


@pytest.mark.parametrize("tree", TREES)
def test_figure_2_bulk_eviction(tree: type[MonoidTree]) -> None:
    """Timestamps; the window is four time units long; 8 makes all others leave."""
    window = filled(tree, wr.Max(), [1, 2, 3, 4])
    assert window.enforce(lambda total, old: total - old >= 4) == 0
    window.insert(8)
    assert window.enforce(lambda total, old: total - old >= 4) == 4
    assert window.rows() == [8]


def test_figure_4_amta() -> None:
    window = filled(Amta, Add(), [1, 2, 1, 2, 1, 2, 1, 2])
    assert [level(window, i) for i in range(3)] == [[1, 2, 1, 2, 1, 2, 1, 2], [3, 3, 3], [6]]
    window._split_anew(0)
    assert (window._R0, window._R1, window._stacked()) == (6, 6, [5, 3])
    window.insert(1)
    assert window._R1 == 7
    window.evict()
    assert (window._R0, window.query()) == (5, 12)


def test_figure_5_single_evictions() -> None:
    """A real 0 among the rows is a row, not an empty half of a pair."""
    window = filled(Amta, Add(), [1, 3, 2, 1, 2, 1, 1, 0, 3, 1])
    window._split_anew(0)
    assert (window.query(), window._R0, window._R1, window._stacked()) == (15, 7, 8, [6, 3])
    window.evict()
    assert (window.query(), window._R0, window._R1) == (14, 6, 8)
    window.evict()
    assert (window.query(), window._stacked()) == (11, [1])


def test_running_example() -> None:
    light = wr.Sliding(wr.at_most(wr.Sum(), 10), wr.Max())
    assert [light.insert(x) for x in (2, 2, 3, 3)] == [2, 2, 3, 3]
    assert len(light) == 4
    assert light.insert(4) == 4
    assert len(light) == 3
    for rows, kept in (([1, 3, 8], 1), ([3, 1, 8], 2)):  # equal sums, other answers
        window = wr.Sliding(wr.at_most(wr.Sum(), 10), wr.Count())
        assert [window.insert(x) for x in rows][-1] == kept
    assert light.insert(11) is None  # alone too much: nothing is left
    assert len(light) == 0


def test_listings_2_and_3_a_limit_that_travels_in_the_rows() -> None:
    def too_many(total: Any, old: Any) -> bool:
        return bool(total[0] - old[0] >= total[1])

    told = wr.policy(too_many, over=[wr.Count(), wr.Last("most")])
    kept = wr.Sliding(told, wr.Sum("x"))
    rows = [(1, 2), (2, 2), (3, 2), (4, 3), (5, 3), (6, 1)]
    assert [kept.insert({"x": x, "most": most}) for x, most in rows] == [1, 3, 5, 9, 12, 6]
    same = wr.Sliding(wr.at_most(wr.Count(), "most"), wr.Sum("x"))
    assert [same.insert({"x": x, "most": most}) for x, most in rows] == [1, 3, 5, 9, 12, 6]


values = st.lists(st.integers(0, 9), max_size=70)


@pytest.mark.parametrize("tree", TREES)
@given(values, st.integers(0, 40), st.integers(0, 60))
def test_searches_equal_asking_row_by_row(
    tree: type[MonoidTree], rows: list[int], gone: int, limit: int
) -> None:
    first = filled(tree, Add(), rows)
    gone = min(gone, len(rows))
    first.bulk_evict(gone)
    rows = rows[gone:]
    second = tree.from_bytes(first.to_bytes(), Add())
    leave = 0
    while leave < len(rows) and sum(rows) - sum(rows[: leave + 1]) >= limit:
        leave += 1
    assert first.enforce(lambda total, old: total - old >= limit) == leave
    first.check_invariants(rows[leave:])
    keep = len(rows)
    while keep and sum(rows[len(rows) - keep :]) > limit:
        keep -= 1
    assert second.evict_until(lambda total: total <= limit) == len(rows) - keep
    second.check_invariants(rows[len(rows) - keep :])


@pytest.mark.parametrize("tree", TREES)
def test_programs_with_chunks_of_any_size(tree: type[MonoidTree], chunk_bits: int) -> None:
    generator = random.Random(chunk_bits)
    window, oracle = tree(wr.Concat()), Recalc(wr.Concat())
    for step in range(1500):
        if generator.random() < 0.55:
            letter = generator.choice("abc")
            window.insert(letter)
            oracle.insert(letter)
        else:
            gone = min(len(oracle), generator.choice((1, 1, 1, 2, 7, 40)))
            window.bulk_evict(gone)
            oracle.bulk_evict(gone)
        assert window.query() == oracle.query()
        if step % 25 == 0:
            window.check_invariants(list(oracle._rows))


def test_dead_chunks_are_freed() -> None:
    window = Amta(wr.Max())
    for i in range(20_000):
        window.insert(i)
    window.bulk_evict(19_000)
    for i in range(20_000):
        window.insert(i)
        window.evict()
    assert window.stored_partials() < 2 * 1000 + 12 * 2 * chunks.SIZE
    for _ in range(1000):
        window.evict()
    assert window.query() is None


def test_combines_of_amta() -> None:
    """Average 4 for insert, evict and query, whatever n; every operation O(log n)."""
    averages = []
    for bits in (6, 9, 12):
        counter = CombineCounter(wr.Max())
        window = filled(Amta, counter.aggregate, range(1 << bits))
        counter.take()
        worst = {"insert": 0, "evict": 0, "query": 0}
        total = 0
        rounds = 4 << bits
        for i in range(rounds):
            for operation in ("insert", "evict", "query"):
                if operation == "insert":
                    window.insert(i)
                else:
                    getattr(window, operation)()
                combines = counter.take()
                worst[operation] = max(worst[operation], combines)
                total += combines
        averages.append(total / rounds)
        assert worst["query"] <= 1
        assert worst["insert"] <= 1 + bits + 1
        assert worst["evict"] <= 4 * bits
    assert averages[0] < 4.3
    assert averages[-1] <= averages[0] * 1.1
    assert averages[-1] < 4.01


@pytest.mark.parametrize(("tree", "factor"), [(Amta, 4), (LogMta, 1)])
@given(st.data())
def test_combines_of_bulk_evictions(tree: type[MonoidTree], factor: int, data: Any) -> None:
    counter = CombineCounter(wr.Max())
    before, rows = data.draw(st.integers(0, 300)), data.draw(st.integers(2, 600))
    window = filled(tree, counter.aggregate, range(before + rows))
    window.bulk_evict(before)
    counter.take()
    window.bulk_evict(data.draw(st.integers(1, rows)))
    assert counter.take() <= factor * (before + rows).bit_length()


@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_combines_of_searches(rows: int, before: int, gone: int) -> None:
    counter = CombineCounter(Add())
    window = filled(Amta, counter.aggregate, [1] * (before + rows))
    window.bulk_evict(before)
    gone = min(gone, rows)
    counter.take()
    assert window.count_while(lambda old: old <= gone) == gone
    assert counter.take() <= 3 * gone.bit_length() + 2  # of what leaves, not of what is there
    window.evict_until(lambda total: total <= rows - gone)
    assert counter.take() <= 12 * rows.bit_length() + 12


def test_one_recomputation_for_each_insert_and_enforce(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    split_anew = Amta._split_anew

    def counted(window: Amta, first: int) -> None:
        made.append(first)
        split_anew(window, first)

    monkeypatch.setattr(Amta, "_split_anew", counted)
    window = Amta(wr.Max())
    generator = random.Random(2)
    for time in sorted(generator.randrange(4000) for _ in range(3000)):
        made.clear()
        window.insert(time)
        window.enforce(lambda total, old: total - old >= 300)
        assert len(made) <= 1


# --- policies, one value at a time ----------------------------------------------------------------


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=40), st.integers(1, 12))
def test_what_is_useless_is_not_missed(rows: list[int | None], most: int) -> None:
    """Max and Min over what is useful are the same as over all of it, with fewer rows."""
    for aggregate in (wr.Max, wr.Min):
        useful = wr.Sliding(wr.useful(aggregate()) & wr.rows(most), aggregate())
        everything: list[int | None] = []
        for row in rows:
            everything.append(row)
            assert len(useful) <= most
            answer = useful.insert(row)
            present = [x for x in everything if x is not None]
            if len(everything) <= most and present:
                assert answer == (max if aggregate is wr.Max else min)(present)


def test_several_policies_in_turn() -> None:
    joined = wr.at_most(wr.Sum(), 10) & wr.rows(3) & wr.at_most(wr.Max(), 5)
    window = wr.Sliding(joined, wr.Count())
    assert [window.insert(x) for x in (1, 1, 1, 1, 5, 5, 4, 6, 2)] == [1, 2, 3, 3, 3, 2, 2, 0, 1]


def test_rows_and_time_together() -> None:
    assert (wr.rows(3) & wr.time(10)) == wr.rows(3, within=10)
    assert (wr.time("1h") & wr.rows(3)).label == "3rows_within_1h"
    both = wr.rows(3) & wr.time(10, closed="both")
    window = wr.Sliding(both, wr.Count())
    assert [window.insert(0, at=t) for t in (0, 1, 2, 10, 12, 23)] == [1, 2, 3, 3, 3, 1]
    for wrong in (wr.rows(3, ending=1), wr.time(5, closed="left"), wr.bounds("a", "b")):
        with pytest.raises(BadSpecification, match="end at the current row"):
            wr.rows(2) & wrong


def test_a_policy_that_is_not_monotone_is_found() -> None:
    def odd(total: int, old: int) -> bool:
        return old % 2 == 0

    window = wr.Sliding(wr.policy(odd, over=wr.Count(), debug=True), wr.Sum())
    window.insert(5)
    with pytest.raises(NotMonotone, match=r"'odd' is not monotone over these 2 rows.*\.x"):
        window.insert(6)
    assert (len(window), window.query()) == (1, 5)

    class Middle(wr.Aggregate):
        def lift(x: float) -> tuple[float, int]:  # type: ignore[misc]  # noqa: N805
            return (x, 1)

        def combine(a: Any, b: Any) -> Any:  # noqa: N805
            return (a[0] + b[0], a[1] + b[1])

        def lower(p: Any) -> Any:  # noqa: N805
            return p[0] / p[1]

    shrinking = wr.Sliding(wr.at_most(Middle(), 5, debug=True), wr.Sum())
    shrinking.insert(1)
    with pytest.raises(NotMonotone):  # 1 and 9 would stay, 9 alone would not
        shrinking.insert(9)


def test_a_row_that_is_refused_changes_nothing() -> None:
    def policy(total: int, old: int) -> bool:
        if total == 13:
            raise ValueError("thirteen")
        return total - old >= 10

    window = wr.Sliding(wr.policy(policy, over=wr.Sum()) & wr.rows(4), wr.Count())
    for _ in range(3):
        window.insert(4)
    before = window.window.to_bytes()
    with pytest.raises(ValueError, match="thirteen"):
        window.insert(1)
    assert window.window.to_bytes() == before
    assert window.insert(3) == 3
    with pytest.raises(wr.errors.BadValue, match="not negative"):
        wr.Sliding(wr.at_most(wr.Sum(), 3), wr.Count()).insert(-1)


def test_what_was_refused_decides_nothing() -> None:
    light = wr.Sliding(wr.at_most(wr.Sum(), 3), wr.Sum())
    with pytest.raises(wr.errors.BadValue, match="not negative"):
        light.insert(-1)
    assert light.insert(Decimal(1)) == Decimal(1)

    def no_sevens(total: int, old: int) -> bool:
        if total == 7:
            raise ValueError("seven")
        return False

    window = wr.Sliding(wr.policy(no_sevens, over=wr.Max()), wr.Count())
    with pytest.raises(ValueError, match="seven"):
        window.insert(7, at=1)
    assert window.insert(1, at=datetime(2024, 5, 1)) == 1  # another kind of time
    waits = wr.Sliding(wr.policy(no_sevens, over=wr.Max()), wr.Count(), lateness=2)
    waits.insert(1, at=0)
    waits.insert(7, at=1)
    with pytest.raises(ValueError, match="seven") as caught:
        waits.insert(2, at=10)
    assert "is left out" in str(caught.value.__notes__)
    waits.insert(2, at=10)
    assert waits.drain() == 2


def test_a_sum_too_large_for_its_type_is_above_the_limit() -> None:
    for overflow in ("error", "null"):
        bounded = wr.at_most(wr.Sum(overflow=overflow), 2**62)
        window = wr.Sliding(bounded, wr.Count())
        assert [window.insert(x) for x in (2**62, 2**62, 1, 2**70, 5)] == [1, 1, 1, 0, 1]
        table = pa.table({"x": [2**62, 2**62, 1, 5]})
        bounded = wr.at_most(wr.Sum("x", overflow=overflow), 2**62)
        features = wr.Rolling(windows={"w": bounded}, aggregates=[wr.Count()])
        assert features(table)["count_w"].to_pylist() == [1, 1, 1, 2]


def test_sums_that_depend_on_grouping_let_nothing_go_too_much() -> None:
    class Plain(wr.Aggregate):
        identity = 0.0

        def combine(a: float, b: float) -> float:  # type: ignore[misc]  # noqa: N805
            return a + b

    generator = random.Random(5)
    for _ in range(300):
        rows = [generator.choice((0.1, 0.2, 0.3, 0.7)) for _ in range(generator.randrange(1, 200))]
        limit = round(generator.uniform(0, 60), 1)
        window = filled(Amta, Plain(), rows)
        window.evict_until(limit.__ge__)
        kept = len(window)
        assert sum(rows[len(rows) - kept :]) <= limit + 1e-6
        assert kept == len(rows) or sum(rows[len(rows) - kept - 1 :]) > limit - 1e-6


def test_mistakes_with_policies() -> None:
    with pytest.raises(BadSpecification, match="function of two answers"):
        wr.policy(3, over=wr.Sum())
    with pytest.raises(BadSpecification, match="does not say which rows"):
        wr.useful(wr.Sum())
    with pytest.raises(BadSpecification, match="limit"):
        wr.at_most(wr.Sum(), None)
    with pytest.raises(BadSpecification, match="at least one"):
        wr.policy(lambda a, b: True, over=[])
    with pytest.raises(Refused, match="Amta can"):
        wr.Sliding(wr.at_most(wr.Sum(), 3), wr.Max(), algorithm="DabaLite")
    for arguments in ((wr.Mean(), 3), (wr.Min(), 3), (wr.Several(wr.Sum()), 3)):
        with pytest.raises(BadSpecification, match="does not grow"):
            wr.at_most(*arguments)
    for limit in (True, [1], np.array([1, 2]), float("nan")):
        with pytest.raises(BadSpecification, match="the limit is a value"):
            wr.at_most(wr.Sum(), limit)
    with pytest.raises(BadSpecification, match=r"at_most\(\): expected an aggregate"):
        wr.at_most(10, wr.Sum())
    with pytest.raises(wr.errors.BadValue, match="cannot be compared with the limit"):
        wr.Sliding(wr.at_most(wr.Max(), 3), wr.Count()).insert("x")
    with pytest.raises(BadSpecification, match="with &"):
        bool(wr.at_most(wr.Sum(), 3))
    with pytest.raises(TypeError) as caught:
        wr.Sliding(wr.policy(lambda t, o: t - o > 3, over=wr.Sum()), wr.Max()).insert(None)
    assert "in policy 'policy', told None and None" in str(caught.value.__notes__)
    assert (
        "4·log2 n" in wr.Sliding(wr.at_most(wr.Sum(), 3), wr.Max(), latency="worst_case").explain()
    )
    assert "AMTA" in wr.Sliding(wr.at_most(wr.Sum(), 3), wr.Max()).explain()


# --- rows that come late ------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=60),
    st.sampled_from([wr.time(7), wr.time(7, closed="both"), wr.rows(4), wr.rows(5, within=6)]),
    st.sampled_from([0, 5, 40]),
)
def test_late_rows_enter_at_their_place(
    rows: list[tuple[int, int]], window: Any, lateness: int
) -> None:
    sliding = wr.Sliding(window, wr.Concat(), lateness=lateness, late="insert")
    held: list[tuple[int, int, int]] = []
    seen = -1
    for arrival, (time, value) in enumerate(rows):
        if time < seen - lateness:
            with pytest.raises(OutOfOrder):
                sliding.insert(str(value), at=time)
            continue
        seen = max(seen, time)
        held.append((time, arrival, value))
        held.sort()
        if isinstance(window, wr.slides.Time):
            start = seen - 7 + (window.closed != "both")
            held = [row for row in held if row[0] >= start]
        else:
            if window.within is not None:
                held = [row for row in held if row[0] > seen - 6]
            held = held[-window.n :]
        expected = "".join(str(row[2]) for row in held) or None
        assert sliding.insert(str(value), at=time) == expected
        assert len(sliding) == len(held)
        if held:
            assert (sliding.oldest, sliding.youngest) == (held[0][0], held[-1][0])


def test_mistakes_with_late_rows() -> None:
    with pytest.raises(BadSpecification, match="needs lateness="):
        wr.Sliding(wr.time(5), wr.Max(), late="insert")
    with pytest.raises(BadSpecification, match='"wait" or "insert"'):
        wr.Sliding(wr.time(5), wr.Max(), lateness=1, late="drop")  # type: ignore[arg-type]
    for window in (
        wr.time(5, ending=2),
        wr.time(5, closed="left"),
        wr.time(5, closed="neither"),
        wr.at_most(wr.Sum(), 5),
    ):
        with pytest.raises(Refused, match="order"):
            wr.Sliding(window, wr.Max(), lateness=1, late="insert")
    with pytest.raises(Refused, match="Fiba takes late ones"):
        wr.Sliding(wr.time(5), wr.Max(), "DabaLite", lateness=1, late="insert")
