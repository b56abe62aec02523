"""Aggregates with windows of their own, and aggregates of some rows only."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.spark_session import AGGREGATES, STRUCTURES, random_table
from windrow.errors import BadSpecification, WindrowError
from windrow.windows.compare import equal

WINDOWS: dict[str, Any] = {"short": wr.time(20), "long": wr.time(200), "few": wr.rows(5)}
TABLE = random_table(300, seed=3)
STATES = pa.array([None if i % 13 == 0 else "abcd"[i % 4] for i in range(300)])
FLAGS = pa.array([None if i % 11 == 0 else i % 3 == 0 for i in range(300)])
MARKED = TABLE.append_column("state", STATES).append_column("flag", FLAGS)


def blanked(table: pa.Table, keep: Callable[[dict[str, Any]], bool]) -> pa.Table:
    """The columns of values, null in all rows but some."""
    gone = dict.fromkeys("xpfibsd")
    rows = [row if keep(row) else row | gone for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=table.schema)


def answers_of(aggregates: list[Any], table: pa.Table, **more: Any) -> pa.Table:
    spec = wr.Rolling(
        key="k", time="t", tie="id", **{"windows": WINDOWS, "aggregates": aggregates, **more}
    )
    return spec(table).select([name for name, _, _ in spec.outputs])


def assert_equal(found: pa.Table, wanted: pa.Table) -> None:
    assert found.num_columns == wanted.num_columns
    for column, other in zip(found.columns, wanted.columns, strict=True):
        assert column.type == other.type
        pairs = zip(column.to_pylist(), other.to_pylist(), strict=True)
        assert all(equal(got, want) for got, want in pairs)


# --- windows of their own ------------------------------------------------------------------------


@given(st.lists(st.sets(st.sampled_from(list(WINDOWS)), min_size=1), min_size=1, max_size=4))
def test_the_answers_asked_for_and_no_others(choices: list[set[str]]) -> None:
    chosen = [wr.Sum("x"), wr.Max("i"), wr.Distinct("s"), wr.Count()][: len(choices)]
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={n: w for n, w in WINDOWS.items() if any(n in c for c in choices)},
        aggregates=[a.over(*sorted(c)) for a, c in zip(chosen, choices, strict=True)],
    )
    names = {f"{a.output_name}_{w}" for a, c in zip(chosen, choices, strict=True) for w in c}
    assert {name for name, _, _ in spec.outputs} == names
    whole = answers_of(chosen, TABLE)
    found = spec(TABLE)
    for name in names:
        assert_equal(found.select([name]), whole.select([name]))
    line = "\n".join(spec.explain(TABLE).splitlines())
    assert line.count(", compiled") + line.count("lookup") == len(names)


def test_windows_may_be_left_out_and_named() -> None:
    spec = wr.Rolling(
        time="t", aggregates=[wr.Sum("x").over("1h", wr.rows(3)), wr.Count()], windows="1h"
    )
    assert [name for name, _, _ in spec.outputs] == ["x_sum_1h", "count_1h", "x_sum_3rows"]
    spec = wr.Rolling(
        time="t", aggregates=[wr.Sum("x").over("1h"), wr.Max("x").over("2h", wr.time("1h"))]
    )
    assert list(spec.windows) == ["1h", "2h"]
    assert [name for name, _, _ in spec.outputs] == ["x_sum_1h", "x_max_1h", "x_max_2h"]
    spec = wr.Rolling(time="t", windows={"day": "1d"}, aggregates=[wr.Sum("x").over("1d")])
    assert [name for name, _, _ in spec.outputs] == ["x_sum_day"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wr.Sum("x").over(), r"over what\?"),
        (lambda: wr.Sum("x").over(["1h", "7d"]), r"give the windows one by one, \.over\("),
        (lambda: wr.Rolling(aggregates=[wr.Sum("x")]), "has no window"),
        (
            lambda: wr.Rolling(
                time="t", windows={"day": "1d"}, aggregates=[wr.Sum("x").over("dya")]
            ),
            r"Sum\('x'\)\.over\('dya'\): no window has this name \('day'\)",
        ),
        (
            lambda: wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Sum("x").over("2h")]),
            "window '1h' is used by no aggregate",
        ),
        (
            lambda: wr.Rolling(
                time="t",
                windows={"3rows": "1h"},
                aggregates=[wr.Sum("x"), wr.Max("x").over(wr.rows(3))],
            ),
            "another window is called '3rows'",
        ),
        (lambda: wr.Rolling(aggregates=[wr.Sum("x").over("1h")]), "say which column, time="),
        (lambda: wr.Sliding("1h", wr.Sum().over("1h")), "over.. chooses among Rolling's windows"),
        (lambda: wr.windows.DabaLite(wr.Sum().over("1h")), "over.. chooses"),
    ],
)
def test_what_over_refuses(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadSpecification, match=message):
        make()


def test_a_specification_can_be_used_for_another() -> None:
    """Its aggregates come back with windows of the new one."""
    first = wr.Rolling(time="t", aggregates=[wr.Sum("x").over("1h")])
    second = wr.Rolling(time="t", windows=["2h"], aggregates=first.aggregates)
    assert [name for name, _, _ in second.outputs] == ["x_sum_2h"]


def test_counters_have_windows_of_their_own() -> None:
    counter = wr.ApproxCount(epsilon=0.1, maximum=9).over("few")
    two = {"few": WINDOWS["few"], "long": WINDOWS["long"]}
    found = answers_of([counter, wr.Sum("x").over("long")], TABLE, windows=two)
    wanted = answers_of([wr.ApproxCount(epsilon=0.1, maximum=9), wr.Sum("x")], TABLE, windows=two)
    assert found.column_names == ["approx_count_few", "x_sum_long"]
    assert_equal(found, wanted.select(found.column_names))


# --- some rows only ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "aggregate", [a for a in [*AGGREGATES, *STRUCTURES] if a.columns], ids=repr
)
def test_only_rows_that_count(aggregate: wr.Aggregate) -> None:
    for where, keep in (
        (aggregate.where("flag"), lambda row: row["flag"] is True),
        (aggregate.where("state", "a", "c"), lambda row: row["state"] in ("a", "c")),
        (
            aggregate.where("flag", False).where("state", "b"),
            lambda row: row["flag"] is False and row["state"] == "b",
        ),
    ):
        assert_equal(answers_of([where], MARKED), answers_of([aggregate], blanked(MARKED, keep)))


def test_rows_are_counted() -> None:
    found = answers_of([wr.Count().where("state", "a")], MARKED)
    ones = [1 if state == "a" else None for state in STATES.to_pylist()]
    wanted = answers_of([wr.Count("one")], MARKED.append_column("one", pa.array(ones, pa.int64())))
    assert_equal(found, wanted)


@pytest.mark.parametrize(
    ("column", "values", "rows"),
    [
        (pa.array([1, 2, None]), (2,), [1]),
        (pa.array([1, 2, 3], pa.uint8()), (1, 3), [0, 2]),
        (pa.array([0.0, -0.0, float("nan"), 1.0, None]), (0,), [0, 1]),
        (pa.array([0.5, 1.0]), (0.5,), [0]),
        (pa.array(["a", "b", None]).dictionary_encode(), ("b",), [1]),
        (pa.array(["a", "b"], pa.large_string()), ("a",), [0]),
        (pa.array([b"a", b"b"]), (b"b",), [1]),
        (pa.array([True, False, None]), (False,), [1]),
        (
            pa.array([Decimal("1.00"), Decimal("0.13"), Decimal("0.10")], pa.decimal128(10, 2)),
            (1, 0.1),
            [0, 2],
        ),
        (pa.array([0, 2**64 - 1], pa.uint64()), (2**64 - 1,), [1]),
        (pa.array([0.0, 1e20]), (10**20,), [1]),
        (pa.array([0.1, 2.0, None], pa.float16()), (0.1, 7), [0]),
        (pa.array([b"ab", b"cd", None], pa.binary(2)), (b"ab",), [0]),
        (pa.array([1, 2, 3]), (np.int64(1), np.float64(3)), [0, 2]),
        (pa.array([None, None]).dictionary_encode(), ("a",), []),
        (pa.array([None, None]), ("a",), []),
        (pa.array([None, None]), (), []),
        (pa.chunked_array([[True], [], [False, True]]), (), [0, 2]),
    ],
)
def test_values_of_every_type(column: Any, values: tuple[Any, ...], rows: list[int]) -> None:
    table = pa.table({"c": column, "row": range(len(column))})
    spec = wr.Rolling(windows=[wr.rows(9)], aggregates=[wr.Collect("row").where("c", *values)])
    assert (spec(table).column(2)[-1].as_py() or []) == rows


def test_categories_keep_their_order() -> None:
    sizes = pa.DictionaryArray.from_arrays([0, 2, 1, 0], ["small", "large", "huge"], ordered=True)
    table = pa.table({"size": sizes, "ok": [True, False, True, True]})
    spec = wr.Rolling(windows=[wr.rows(9)], aggregates=[wr.Max("size").where("ok")])
    assert spec(table).column(2).to_pylist() == ["small", "small", "large", "large"]


def test_names() -> None:
    spec = wr.Rolling(
        windows=[wr.rows(2)],
        aggregates=[
            wr.Count().where("ok"),
            wr.Sum("x").where("ok", False).where("state", "a b", "c"),
            wr.Sum("x").where("ok").alias("good"),
            wr.Sum("x").alias("best").where("state", "a"),
        ],
    )
    assert [name for name, _, _ in spec.outputs] == [
        "count_where_ok_2rows",
        "x_sum_where_ok_false_where_state_a b_c_2rows",
        "good_2rows",
        "best_2rows",
    ]
    assert repr(spec.aggregates[1]) == "Sum('x').where('ok', False).where('state', 'a b', 'c')"


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (lambda: wr.Count().where("state"), "is neither true nor false: say which values count"),
        (lambda: wr.Count().where("i", "a"), "'i' has type int32, which is never 'a'"),
        (lambda: wr.Count().where("i", 1 << 40), "never 1099511627776"),
        (lambda: wr.Count().where("i", 1.5), "never 1.5"),
        (lambda: wr.Count().where("d", 0.126), "'d' has type decimal.* never 0.126"),
        (lambda: wr.Count().where("d", float("inf")), "never inf"),
        (lambda: wr.Count().where("i", True), "never True: it is of another kind"),
        (lambda: wr.Count().where("flag", 1), "never 1: it is of another kind"),
        (lambda: wr.Count().where("t", "a"), "never 'a'"),
        (lambda: wr.Count().where("flg"), "there is no column 'flg'; did you mean 'flag'"),
        (lambda: wr.Count().where("state", ["a"]), "give the values one by one"),
        (lambda: wr.Count().where("x", float("nan")), "make a boolean column"),
        (lambda: wr.Count().where("x", None), "make a boolean column"),
        (lambda: wr.Count().where(MARKED["x"]), "takes the name of a column"),
    ],
)
def test_what_where_refuses(aggregate: Callable[[], wr.Aggregate], message: str) -> None:
    with pytest.raises(BadSpecification, match=message):
        answers_of([aggregate()], MARKED)


class Rows(wr.Aggregate):
    """Rows, without looking at any column."""

    identity = 0

    def lift() -> int:  # type: ignore[misc]
        return 1

    @staticmethod
    def combine(a: int, b: int) -> int:
        return a + b


@pytest.mark.parametrize(
    "make",
    [
        lambda: wr.Rolling(windows=[wr.rows(2)], aggregates=[Rows().where("ok")]),
        lambda: wr.Sliding("1h", wr.Sum("x").where("ok")),
        lambda: wr.Hub().register(wr.Sum("x").where("ok"), wr.rows(3)),
        lambda: wr.at_most(wr.Sum("x").where("ok"), 3),
        lambda: wr.windows.DabaLite(wr.Sum().where("ok")),
    ],
)
def test_where_there_are_no_columns(make: Callable[[], Any]) -> None:
    with pytest.raises(WindrowError, match=r"where\(\)"):
        make()


def test_other_tables_batches_labels_ticks_and_counters() -> None:
    aggregates = [
        wr.Sum("x").where("flag"),
        wr.Count().where("state", "a").over(wr.time(50)),
        wr.Mean("i").where("state", "b"),
    ]
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(90)], aggregates=aggregates)
    wanted = spec(MARKED)
    names = [name for name, _, _ in spec.outputs]
    import polars as pl

    assert_equal(spec(pl.from_arrow(MARKED)).to_arrow().select(names), wanted.select(names))
    pandas = spec(MARKED.to_pandas(types_mapper={pa.string(): None}.get))
    assert list(pandas.columns) == wanted.column_names
    found = [None if value != value else value for value in pandas[names[1]].tolist()]
    assert found == wanted[names[1]].to_pylist()
    by_time = MARKED.sort_by("t")
    batches = spec.stream()
    parts = [batches.push(by_time.slice(start, 70)) for start in range(0, 300, 70)]
    rows = pa.concat_tables([*parts, batches.finish()])
    assert_equal(rows.sort_by("id"), wanted.sort_by("id"))
    labels = pa.table({"k": [0, 1, 2], "asked": [100, 200, 299]})
    kept = blanked(MARKED, lambda row: row["flag"] is True)
    plain = wr.Rolling(key="k", time="t", windows=[wr.time(90)], aggregates=[wr.Sum("x")])
    assert (
        spec.as_of(MARKED, labels, on="asked")["x_sum_where_flag_90"]
        == plain.as_of(kept, labels, on="asked")["x_sum_90"]
    )
    ticking = wr.Rolling(
        key="k", time="t", every=30, windows=[wr.time(90)], aggregates=aggregates[:1]
    )
    ticked = wr.Rolling(
        key="k", time="t", every=30, windows=[wr.time(90)], aggregates=[wr.Sum("x")]
    )
    assert ticking(MARKED)["x_sum_where_flag_90"] == ticked(kept)["x_sum_90"]
    counter = wr.ApproxCount(epsilon=0.1, maximum=9)
    ones = [True if state == "a" else None for state in STATES.to_pylist()]
    assert_equal(
        answers_of([counter.where("state", "a")], MARKED),
        answers_of(
            [wr.ApproxCount("one", epsilon=0.1, maximum=9)],
            MARKED.append_column("one", pa.array(ones)),
        ),
    )
