"""Flags are promises: every registered aggregate keeps its own; broken ones are found and shown."""

import math
import operator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import windrow as wr
from tests.pairs import AGGREGATES, GeoMean
from windrow.aggregates import REGISTRY
from windrow.errors import BadBytes, BadSpecification, BadValue, LawBroken, Refused
from windrow.testing import CountedWindow, check_laws
from windrow.testing.strategies import values, window_machine


@pytest.mark.parametrize("name", AGGREGATES)
def test_promises_hold_on_the_corpus(name: str) -> None:
    check_laws(AGGREGATES[name])


@pytest.mark.parametrize("name", AGGREGATES)
@given(data=st.data())
def test_promises_hold_on_random_values(name: str, data: Any) -> None:
    aggregate = AGGREGATES[name]
    source = data.draw(values(aggregate))
    run = data.draw(st.lists(source, min_size=1, max_size=6))
    lift = aggregate.lifter()
    assume(any(lift(value) is not wr.aggregates.EMPTY for value in run))
    check_laws(aggregate, run, rounds=10)


def test_a_users_aggregate_keeps_its_promises() -> None:
    check_laws(GeoMean(), [0.5, 2.0, 3.0])


def test_a_float_sum_is_tried_on_floats() -> None:
    class Plus(wr.Aggregate):
        identity = 0.0
        commutative = True
        combine = operator.add

    class Both(wr.Aggregate):
        identity = (0.0, 0)

        @staticmethod
        def lift(x: float) -> tuple[float, int]:
            return (x, 1)

        @staticmethod
        def combine(a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
            return (a[0] + b[0], a[1] + b[1])

    check_laws(Plus())
    check_laws(Both())


@pytest.mark.parametrize("flag", ["commutative", "selective", "invertible"])
@pytest.mark.parametrize("name", REGISTRY)
def test_promises_not_made_are_not_kept(name: str, flag: str) -> None:
    """Each flag is off because it must be: switching it on is found."""
    kind = REGISTRY[name]
    if getattr(kind, flag):
        return
    members: dict[str, Any] = {flag: True}
    if flag == "invertible":
        members["inverse"] = staticmethod(lambda total, oldest: total)
    liar = type(name, (kind,), members)
    values: list[Any] = [1.5, 2.5, 2.5]
    if name in ("ArgMax", "ArgMin"):
        values = [("a", 2), ("b", 1), ("c", 2), ("d", 1)]
    elif name == "M4":
        values = [(1, "a"), (2, "b"), (2, "c")]
    elif len(liar().input_kinds) > 1:
        values = [(1.5, 2), (2.5, 1), (2.5, 4)]
    elif liar().input_kinds == ("integer",):
        values = [1, 2, 6]
    elif liar().input_kinds == ("boolean",):
        values = [True, False, False]
    elif name == "Concat":
        values = ["a", "b"]
    with pytest.raises(LawBroken, match=f"promises {flag}"):
        check_laws(liar(), values)


class Average(wr.Aggregate):
    """The classic mistake: an average of averages."""

    identity = 0.0

    @staticmethod
    def combine(a: float, b: float) -> float:
        return (a + b) / 2


def test_not_associative() -> None:
    with pytest.raises(LawBroken, match="Average is not associative") as caught:
        check_laws(Average(), [1.0, 2.0, 4.0])
    message = str(caught.value)
    for part in ("a = ", "b = ", "c = ", "(a ⊕ b) ⊕ c = ", "a ⊕ (b ⊕ c) = ", "rows = "):
        assert part in message


def broken(**members: Any) -> wr.Aggregate:
    plain: dict[str, Any] = {"identity": 0.0, "combine": lambda a, b: a + b}
    return type("Broken", (wr.Aggregate,), plain | members)()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (broken(identity=1.0), "wrong identity: identity ⊕ identity"),
        (broken(identity=0.0, combine=max, lift=lambda x: -x), "wrong identity: identity ⊕ a"),
        (broken(combine=lambda a, b: b, identity=wr.aggregates.EMPTY, commutative=True), "commut"),
        (broken(invertible=True, inverse=lambda total, a: total), "promises invertible"),
        (broken(invertible=True, inverse=lambda total, a: total - a), "promises invertible"),
        (broken(selective=True), "promises selective"),
        (broken(reproducible=True), "is not associative"),
    ],
)
def test_broken_promises_are_shown(aggregate: wr.Aggregate, message: str) -> None:
    with pytest.raises(LawBroken, match=message):
        check_laws(aggregate, [0.1, 0.2, 0.3, 1e16])


def test_wrong_schema_is_found() -> None:
    with pytest.raises(BadValue, match=r"declared int64, but holds [0-9.]+: .*identity"):
        check_laws(broken(identity=0), [0.5])


def test_nothing_to_check_is_an_error() -> None:
    with pytest.raises(BadSpecification, match="no value was given"):
        check_laws(wr.Sum(), [None])


def test_specification_mistakes() -> None:
    with pytest.raises(BadSpecification, match=r"has no combine\(a, b\)"):
        type("NoCombine", (wr.Aggregate,), {})()
    with pytest.raises(BadSpecification, match="has no inverse"):
        broken(invertible=True)
    with pytest.raises(BadSpecification, match='"bounded", "holistic" or "sequential"'):
        broken(kind="big")
    with pytest.raises(BadSpecification, match="takes 1 column"):
        wr.Sum("a", "b")
    with pytest.raises(BadSpecification, match="values are given to insert"):
        wr.Sum(3)  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="ddof"):
        wr.StdDev(ddof=2)
    with pytest.raises(BadSpecification, match='nan= is "value" or "missing"'):
        wr.Sum(nan="skip")  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="overflow="):
        wr.Sum(overflow="wrap")  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="alias"):
        wr.Sum().alias("")
    with pytest.raises(BadSpecification, match="rename one with"):
        wr.Several(wr.Sum("a"), wr.Sum("a"))
    with pytest.raises(BadSpecification, match="at least one"):
        wr.Several()
    with pytest.raises(BadSpecification, match="separator"):
        wr.Concat(separator=1)  # type: ignore[arg-type]


def test_sequential_aggregates_are_refused_by_windows() -> None:
    sequential = type("Steps", (wr.Aggregate,), {"kind": "sequential"})
    with pytest.raises(Refused, match="sequential"):
        wr.windows.DabaLite(sequential())


def test_names() -> None:
    assert wr.Max("amount").output_name == "amount_max"
    assert wr.Count().output_name == "count"
    assert wr.StdDev("x").output_name == "x_std"
    assert wr.ArgMax("item", "price").output_name == "item_arg_max"
    assert GeoMean("x").output_name == "x_geo_mean"
    assert wr.Max("amount").alias("peak").output_name == "peak"
    assert repr(wr.Variance("x", ddof=0)) == "Variance('x', ddof=0)"


def test_several_takes_mappings_and_skips_per_part() -> None:
    window = wr.windows.DabaLite(
        wr.Several(wr.Sum("a"), wr.ArgMax("name", "b"), wr.Count("a"), wr.Count())
    )
    empty = {"a_sum": None, "name_arg_max": None, "a_count": 0, "count": 0}
    assert window.query() == empty
    window.insert({"a": None, "b": 2, "name": "x"})
    window.insert({"a": 1, "b": None, "name": "y"})
    assert window.query() == {"a_sum": 1, "name_arg_max": "x", "a_count": 1, "count": 2}
    with pytest.raises(BadValue, match="the row has no 'b'; it has 'a', 'name'"):
        window.insert({"a": 1, "name": "z"})
    with pytest.raises(BadValue, match="expected a mapping"):
        window.insert(3)
    assert len(window) == 2
    window.bulk_evict(2)
    assert window.query() == empty


def test_several_inputs_need_a_tuple() -> None:
    window = wr.windows.DabaLite(wr.ArgMax())
    with pytest.raises(BadValue, match="tuple of 2 values"):
        window.insert(3)
    window.insert((None, 3))
    window.insert(("a", None))
    assert window.query() is None


def test_a_combine_that_changes_its_arguments_is_found() -> None:
    class Lists(wr.Aggregate):
        @staticmethod
        def lift(x: int) -> list[int]:
            return [x]

        @staticmethod
        def combine(a: list[int], b: list[int]) -> list[int]:
            a += b
            return a

    with pytest.raises(LawBroken, match="changes its arguments"):
        check_laws(Lists(), [1, 2])


def test_partials_without_bytes_can_be_checked() -> None:
    class Sets(wr.Aggregate):
        commutative = True

        @staticmethod
        def lift(x: int) -> frozenset[int]:
            return frozenset([x])

        @staticmethod
        def combine(a: frozenset[int], b: frozenset[int]) -> frozenset[int]:
            return a | b

    check_laws(Sets(), [1, 2, 3], bytes=False)
    with pytest.raises(BadValue, match="has no byte form"):
        check_laws(Sets(), [1, 2, 3])


def test_small_values_do_not_hide_a_broken_law() -> None:
    with pytest.raises(LawBroken):
        check_laws(Average(), [1e-13, 2e-13, 4e-13])


def test_how_functions_may_be_written() -> None:
    class Logs(wr.Aggregate):
        identity = 0.0
        lift = math.log
        combine = staticmethod(operator.add)

    class Powers(wr.Aggregate):
        @staticmethod
        def lift(x: float, base: float = 2) -> float:
            return float(base**x)

        combine = staticmethod(operator.add)

    class Top(wr.Aggregate):
        identity = ()
        schema = wr.aggregates.Schema.single("value")

        def __init__(self, k: int) -> None:  # without super().__init__()
            self.k = k

        def lift(self, x: int) -> tuple[int, ...]:
            return (x,)

        def combine(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(sorted(a + b, reverse=True)[: self.k])

    for aggregate, given_values, expected in (
        (Logs(), (math.e, 1.0), 1.0),
        (Powers(), (1, 2), 6.0),
        (Top(2), (1, 3, 2), (3, 2)),
    ):
        window = wr.windows.DabaLite(aggregate)
        for value in given_values:
            window.insert(value)
        assert window.query() == expected
    assert repr(Top(2)) == "Top(k=2)"
    data = wr.windows.DabaLite(Top(2)).to_bytes()
    with pytest.raises(BadBytes, match="something else"):
        wr.windows.DabaLite.from_bytes(data, Top(4))
    with pytest.raises(BadSpecification, match="make Top an instance"):
        wr.windows.DabaLite(Top)
    with pytest.raises(BadSpecification, match="first parameter must be called self"):
        type("Wrong", (wr.Aggregate,), {"combine": lambda this, a, b: a})
    with pytest.raises(BadSpecification, match=r"write Several\(...\)"):
        wr.Sliding("1h", [wr.Max(), wr.Sum()])  # type: ignore[arg-type]


def test_counting_a_class_leaves_the_class_alone() -> None:
    counted = CountedWindow(wr.windows.DabaLite, wr.Max)
    counted.insert(1)
    counted.insert(2)
    counted.bulk_evict(1)
    window = wr.windows.DabaLite(wr.Max())
    window.insert(1)
    window.insert(2)
    assert window.query() == 2


def test_a_users_strategy_drives_the_state_machine() -> None:
    machine = window_machine(wr.windows.DabaLite, GeoMean(), st.floats(0.1, 10))
    run_state_machine_as_test(machine, settings=settings(max_examples=10))
