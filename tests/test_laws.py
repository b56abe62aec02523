"""Flags are promises: every registered aggregate keeps its own; broken ones are found and shown."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow as wr
from tests.pairs import AGGREGATES, GeoMean
from windrow.aggregates import REGISTRY
from windrow.errors import BadSpecification, BadValue, LawBroken, Refused
from windrow.testing import check_laws
from windrow.testing.strategies import values


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


def test_promises_not_made_are_not_kept() -> None:
    """Each flag is off because it must be: switching it on is found."""
    for name, kind in REGISTRY.items():
        for flag in ("commutative", "selective"):
            if getattr(kind, flag):
                continue

            liar = type(name, (kind,), {flag: True})
            values: list[Any] = [1.5, 2.5, 2.5]
            if name == "ArgMax":
                values = [("a", 1), ("b", 2), ("c", 2)]
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
