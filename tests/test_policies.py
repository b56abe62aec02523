"""Policies on columns and on Spark tables keep the rows that ``Sliding`` keeps, row by row."""

# mypy: disable-error-code="misc,operator,index,arg-type"

import math
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.spark_session import assert_same, frame, spark  # noqa: F401
from windrow.columns import kept_functions
from windrow.columns.carry import Carry
from windrow.columns.kept_text import Dimension
from windrow.columns.ordered import ORDER, TIME_BITS
from windrow.errors import BadSpecification, BadValue, NotMonotone, Refused
from windrow.windows.compare import equal

FOUR = 4


class Spread(wr.Aggregate):
    """The largest less the smallest, as a user writes it."""

    identity = (math.inf, -math.inf)
    commutative = True
    reproducible = True

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (x, x)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (min(a[0], b[0]), max(a[1], b[1]))

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return p[1] - p[0]


class Most(wr.Aggregate):
    """A maximum of a user's that says what is useless; without an identity."""

    reproducible = True

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return max(a, b)

    @staticmethod
    def useless(total: Any, oldest: Any) -> bool:
        return bool(oldest < total)


def at_most_four(total: Any, oldest: Any) -> Any:
    return total - oldest >= FOUR


recent = wr.policy(lambda total, old: total - old >= 5, over=wr.Max("t"), name="recent")
light = wr.policy(  # the sum of the others, and of the last of the oldest, is above 10
    lambda total, old: total[0] - old[0] + old[1] > 10,
    over=[wr.Sum("n"), wr.Last("n")],
    name="light",
)

COMPILED: dict[str, Any] = {
    "count": wr.at_most(wr.Count(), 3),
    "count of a column": wr.at_most(wr.Count("i"), 2.5),
    "integers": wr.at_most(wr.Sum("i"), 10),
    "integers, time": wr.at_most(wr.Sum("i"), Decimal("7.5")) & wr.time(4),
    "floats": wr.at_most(wr.Sum("f"), 1.5),
    "floats, without NaN": wr.at_most(wr.Sum("f", nan="missing"), 1e16) & wr.rows(5),
    "floats, any": wr.at_most(wr.Sum("f"), math.inf),
    "floats, none": wr.at_most(wr.Sum("f"), 0),
    "largest": wr.at_most(wr.Max("s"), 1),
    "largest integer": wr.at_most(wr.Max("i"), 6) & wr.time(6, closed="both"),
    "travelling": wr.at_most(wr.Count(), "limit"),
    "travelling, integers": wr.at_most(wr.Sum("i"), "limit") & wr.rows(6, within=7),
    "travelling, floats": wr.at_most(wr.Sum("f"), "far"),
    "travelling, integers for floats": wr.at_most(wr.Sum("f"), "limit"),
    "travelling, largest": wr.at_most(wr.Max("s"), "far") & wr.rows(7),
    "useful": wr.useful(wr.Max("s")),
    "useful, rows": wr.useful(wr.Max("s")) & wr.rows(3),
    "useful, least": wr.useful(wr.Min("i")) & wr.time(5) & wr.rows(6),
    "useful, texts": wr.useful(wr.Max("word")) & wr.rows(5),
    "two limits": wr.at_most(wr.Sum("i"), 12) & wr.at_most(wr.Max("n"), 7),
    "useful, and light": wr.useful(wr.Max("s")) & wr.at_most(wr.Sum("i"), 9) & wr.time(9),
    "function": recent,
    "function, named": wr.policy(at_most_four, over=wr.Count()),
    "function of several": light & wr.rows(5),
    "function, limit": wr.policy(
        lambda t, o: t[0] - o[0] >= t[1], over=[wr.Count(), wr.Last("n")], name="f"
    ),
    "function of ends": wr.policy(
        lambda t, o: t[0] - o[1] > 3, over=(wr.Last("t"), wr.First("t")), name="f"
    )
    & wr.at_most(wr.Sum("i"), 20),
    "missing, told": wr.policy(
        lambda t, o: o is None or t is None or t - o > 4, over=wr.Max("i"), name="f"
    ),
    "own": wr.policy(lambda t, o: t - o > 4, over=Spread("n"), name="f") & wr.rows(6),
}
INTERPRETED: dict[str, Any] = {
    "decimals": wr.at_most(wr.Sum("d"), 10),
    "longest run": wr.at_most(wr.LongestRun("n"), 2),
    "texts": wr.at_most(wr.Max("word"), "word"),
    "useful, own": wr.useful(Most("n")) & wr.rows(6),
    "a limit of limits": wr.at_most(wr.Sum("i"), "far"),
    "a sum of floats": wr.policy(
        lambda t, o: o is None or t - o > 4, over=wr.Sum("f", nan="missing"), name="f"
    ),
    "debug": wr.at_most(wr.Sum("i"), 10, debug=True),
    "loops": wr.policy(lambda t, o: sum([t, -o]) >= 2, over=wr.Count(), name="f"),
}
FLOATS = [0.0, -0.0, 0.1, 0.2, 1 / 3, 1.0, 0.5, 5e-324, 1e16, 1e308, math.inf, math.nan, None]
SIGNED = [-3.0, -0.5, -0.0, 0.0, 1.0, 1.5, 2.0, 7.0, math.inf, math.nan, None]
LIMITS = [0.0, 0.5, 1.0, 1.5, 1e16, 1e308, -1.0, math.inf, math.nan, None]
SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "t": pa.int64(),
        "id": pa.int64(),
        "n": pa.int64(),
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.float64(),
        "limit": pa.int64(),
        "far": pa.float64(),
        "word": pa.string(),
        "d": pa.decimal128(8, 2),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Several keys in no order, with ties in time and missing values."""
    small = st.integers(0, 9)
    row = st.fixed_dictionaries(
        {
            "k": st.integers(0, 2),
            "t": st.integers(0, 12),
            "n": small,
            "i": st.one_of(small, st.none()),
            "f": st.sampled_from(FLOATS),
            "s": st.sampled_from(SIGNED),
            "limit": st.sampled_from([0, 1, 2, 3, 9, 1 << 62, -1, None]),
            "far": st.sampled_from(LIMITS),
            "word": st.sampled_from(["", "a", "ab", "é", None]),
            "d": st.one_of(small.map(Decimal), st.just(Decimal("0.25")), st.none()),
        }
    )
    rows = draw(st.lists(row, max_size=30))
    order = draw(st.permutations(range(len(rows))))
    return pa.Table.from_pylist(
        [r | {"id": i} for r, i in zip(rows, order, strict=True)], schema=SCHEMA
    )


AGGREGATES: list[Any] = [wr.Count(), wr.Max("s"), wr.Last("n")]


def specification(window: Any, **more: Any) -> wr.Rolling:
    options: dict[str, Any] = {"key": "k", "time": "t", "tie": "id", "aggregates": AGGREGATES}
    return wr.Rolling(windows={"w": window}, **(options | more))


def slid(table: pa.Table, spec: wr.Rolling) -> dict[str, list[Any]]:
    """Every answer by ``Sliding``, fed row by row, each key on its own."""
    rows = table.to_pylist()
    keys = defaultdict(list)
    for place, row in enumerate(rows):
        keys[tuple(row[k] for k in spec.key)].append(place)
    out: dict[str, list[Any]] = {name: [None] * len(rows) for name, _, _ in spec.outputs}
    for places in keys.values():
        if spec.time is not None:
            places.sort(key=lambda p: (rows[p][str(spec.time)], *(rows[p][t] for t in spec.tie)))
        for name, aggregate, label in spec.outputs:
            window = wr.Sliding(spec.windows[label], aggregate)
            for place in places:
                at = None if spec.time is None else rows[place][spec.time]
                out[name][place] = window.insert(rows[place], at=at)
    return out


def check(table: pa.Table, spec: wr.Rolling) -> None:
    found = spec(table)
    for name, wanted in slid(table, spec).items():
        got = found[name].to_pylist()
        assert all(map(equal, got, wanted)), f"{name}: {got}, expected {wanted}"


def how(spec: wr.Rolling, table: Any) -> str:
    """What ``explain`` says about the rows kept."""
    lines = [line for line in spec.explain(table).splitlines() if "rows kept" in line]
    return "; ".join(line.partition("rows kept: ")[2] for line in lines)


def plain_table(size: int = 40, keys: int = 3, seed: int = 0) -> pa.Table:
    """Nothing missing, nothing odd."""
    generator = np.random.default_rng(seed)
    whole = generator.integers(0, 9, (5, size))
    columns = {
        "k": generator.integers(0, keys, size),
        "t": generator.integers(0, size, size),
        "id": generator.permutation(size),
        "n": whole[0],
        "i": whole[1].astype(np.int32),
        "f": generator.random(size),
        "s": generator.standard_normal(size),
        "limit": whole[2],
        "far": whole[3] + 0.5,
        "word": [chr(97 + n) for n in whole[4].tolist()],
        "d": [Decimal(n) / 4 for n in whole[4].tolist()],
    }
    return pa.table({n: pa.array(c, SCHEMA.field(n).type) for n, c in columns.items()})


# --- columns equal Sliding -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [*COMPILED, *INTERPRETED])
@examples(12)
@given(table=tables())
def test_columns_equal_sliding(name: str, table: pa.Table) -> None:
    window = (COMPILED | INTERPRETED)[name]
    spec = specification(window)
    check(table, spec)
    forced = specification(window, algorithm="recalc")
    assert_same(forced(table), spec(table), spec)


@pytest.mark.parametrize("name", [*COMPILED, *INTERPRETED])
def test_what_is_compiled_and_what_is_not(name: str) -> None:
    spec, table = specification((COMPILED | INTERPRETED)[name]), plain_table()
    if name == "a limit of limits":
        table = table.set_column(table.column_names.index("far"), "far", [[math.nan] * 40])
    said = how(spec, table)
    assert said.startswith("compiled" if name in COMPILED else "interpreted, by a tree"), said
    check(table, spec)


def test_many_rows_without_a_key_or_a_time() -> None:
    table = plain_table(3000, seed=5)
    for name in ("integers", "floats", "travelling", "useful", "own", "function of several"):
        check(table, specification(COMPILED[name], key=None, time=None, tie=None))


def test_all_threads_share_the_keys() -> None:
    table = plain_table(70_000, keys=50, seed=6)
    windows = {n: COMPILED[n] for n in ("integers", "floats", "useful, rows", "own")}
    spec = {t: specification(windows["own"], threads=t) for t in (1, 3)}
    assert spec[1](table).equals(spec[3](table))
    for window in windows.values():
        one, three = (specification(window, threads=t)(table) for t in (1, 3))
        assert one.equals(three)


@pytest.mark.parametrize("algorithm", ["two_stacks_lite", "daba_lite", "greedy", "b_int"])
def test_every_algorithm_takes_empty_windows(algorithm: str) -> None:
    window = wr.at_most(wr.Sum("n"), 6)
    check(plain_table(), specification(window, algorithm=algorithm, aggregates=[wr.Max("s")]))


@pytest.mark.parametrize("by_number", [False, True])
def test_rows_that_come_sorted_in_pieces(by_number: bool) -> None:
    """As in Spark's workers: all rows of a key are kept until it is done."""
    table = plain_table(200, keys=3, seed=8).sort_by([(c, "ascending") for c in ("k", "t", "id")])
    spec = specification(COMPILED["function of several"])
    rows = table
    if by_number:
        numbers = [
            (k << TIME_BITS) + t for k, t in zip(*(table[c].to_pylist() for c in "kt"), strict=True)
        ]
        rows = table.append_column(ORDER, [numbers])
    carry = Carry(spec, by_number=by_number)
    found = []
    for start in range(0, 200, 40):
        found.append(carry.push(rows.slice(start, 40), last=start == 160))
        assert carry.rows_kept <= 100
    assert_same(pa.concat_tables(found), spec(table), spec)


def test_every_kind_of_table() -> None:
    import pandas
    import polars

    table = plain_table().select(["k", "t", "id", "n", "s", "f", "limit"])
    window = wr.at_most(wr.Sum("n"), "limit") & wr.rows(9)
    spec = specification(window, aggregates=[wr.Count()])
    wanted = spec(table)["count_w"].to_pylist()
    assert spec(table.to_batches()[0])["count_w"].to_pylist() == wanted
    frames: list[Any] = [table.to_pandas(), polars.from_arrow(table)]
    assert isinstance(frames[0], pandas.DataFrame)
    for given_as in frames:
        assert spec(given_as)["count_w"].to_list() == wanted
    arrays = {name: np.asarray(table[name]) for name in table.column_names}
    assert spec(arrays)["count_w"].tolist() == wanted


# --- the papers' examples ------------------------------------------------------------------------


def answers(values: list[Any], window: Any, *aggregates: Any) -> list[list[Any]]:
    table = pa.table({"x": values})
    spec = wr.Rolling(windows={"w": window}, aggregates=list(aggregates))
    check(table, spec)
    found = spec(table)
    return [found[f"{a.output_name}_w"].to_pylist() for a in aggregates]


@pytest.mark.parametrize("number", [int, float])
def test_the_running_example(number: Any) -> None:
    values = [number(x) for x in (2, 2, 3, 3, 4)]
    largest, sizes, sums = answers(
        values, wr.at_most(wr.Sum("x"), 10), wr.Max("x"), wr.Count(), wr.Sum("x")
    )
    assert largest == [2, 2, 3, 3, 4]
    assert sizes == [1, 2, 3, 4, 3]
    assert sums[-1] == 10


@pytest.mark.parametrize(("values", "kept"), [([1, 3, 8], 1), ([3, 1, 8], 2)])
def test_sums_alone_do_not_decide(values: list[int], kept: int) -> None:
    window = wr.policy(
        lambda total, old: total[0] - old[0] + old[1] > 10,
        over=[wr.Sum("x"), wr.Last("x")],
        name="light",
    )
    assert answers(values, window, wr.Count())[0][-1] == kept
    assert answers(values, wr.at_most(wr.Sum("x"), 10), wr.Count())[0][-1] == kept


def test_figure_2() -> None:
    window = wr.policy(lambda total, old: total - old >= 4, over=wr.Max("x"))
    assert answers([1, 2, 3, 4, 8], window, wr.Count()) == [[1, 2, 3, 4, 1]]


def test_limits_travel_in_the_rows() -> None:
    table = pa.table({"x": [1, 2, 3, 4, 5, 6], "most": [3, None, None, 1, None, 2]})
    spec = wr.Rolling(windows={"w": wr.at_most(wr.Count(), "most")}, aggregates=[wr.Count()])
    check(table, spec)
    # the limit 1 leaves with its row; a row without a limit is then alone
    assert spec(table)["count_w"].to_pylist() == [1, 2, 3, 1, 1, 2]


def test_a_row_above_the_limit_leaves_an_empty_window() -> None:
    sizes, largest = answers([3, 11, 4], wr.at_most(wr.Sum("x"), 10), wr.Count(), wr.Max("x"))
    assert sizes == [1, 0, 1]
    assert largest == [3, None, 4]


# --- numbers at the edge -------------------------------------------------------------------------


@examples(60)
@given(
    st.lists(
        st.sampled_from([2.0**-53, 2.0**-54, 1.0, 2.0**-52, 1.0 - 2.0**-53, 3.0]), max_size=20
    ),
    st.sampled_from([1.0, 1.0 + 2.0**-52, 2.0, 2.0 + 2.0**-51]),
)
def test_float_sums_are_rounded_once_before_they_are_compared(
    values: list[float], limit: float
) -> None:
    spec = wr.Rolling(windows={"w": wr.at_most(wr.Sum("x"), limit)}, aggregates=[wr.Count()])
    table = pa.table({"x": pa.array(values, pa.float64())})
    check(table, spec)
    assert "interpreted" not in how(spec, table)


def test_many_rows_at_half_a_unit() -> None:
    values = np.where(np.arange(3000) % 1000, 2.0**-63, 1.0)  # sums end near 1 + half a unit
    table = pa.table({"x": values})
    for limit in (1.0, 1.0 + 2.0**-52):
        spec = wr.Rolling(windows={"w": wr.at_most(wr.Sum("x"), limit)}, aggregates=[wr.Count()])
        check(table, spec)
        assert how(spec, table).startswith("compiled")


def test_floats_too_large_to_add() -> None:
    table = pa.table({"x": [1e308, 1e308, 1.0, 1.7976931348623157e308, 1e291]})
    for limit in (1.7976931348623157e308, math.inf, 10**400, 1e308):
        spec = wr.Rolling(windows={"w": wr.at_most(wr.Sum("x"), limit)}, aggregates=[wr.Count()])
        check(table, spec)


def test_integers_beyond_64_bits() -> None:
    table = pa.table({"x": [1 << 62, 1 << 62, 1, 5]})
    window = wr.at_most(wr.Sum("x", overflow="null"), 1 << 62)
    spec = wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])
    check(table, spec)
    assert "more than 64 bits" in how(spec, table)
    fits = wr.Rolling(windows={"w": wr.at_most(wr.Sum("x"), 10**30)}, aggregates=[wr.Count()])
    assert fits(table)["count_w"].to_pylist() == [1, 2, 3, 4]  # no sum is asked for
    limits = [1 << 62, (1 << 62) - 1, (1 << 53) + 1, 3]
    far = table.append_column("l", [limits]).append_column("y", [[float(1 << 53), 1.0, 1.0, 2.0]])
    for window in (wr.at_most(wr.Sum("y"), "l"), wr.at_most(wr.Sum("y"), (1 << 53) + 1)):
        check(far, wr.Rolling(windows={"w": window}, aggregates=[wr.Count()]))


def test_functions_whose_integers_might_overflow_are_interpreted() -> None:
    table = pa.table({"x": [3 << 50, 5 << 50, 7 << 50]})
    for function, reason in (
        (lambda t, o: t * t * t > o, "too long"),
        (lambda t, o: t - o**2 > 4, "uses **"),
        (lambda t, o: bin(t) > bin(o), "calls bin"),
        (lambda t, o: t - o > AGGREGATES, "refers to AGGREGATES"),
    ):
        dimension = Dimension(0, wr.Max("x"), "max", bits=53)
        said = kept_functions.why_not_compiled(function, [dimension])
        assert said is not None
        assert reason in said
    window = wr.policy(lambda t, o: t * t > o * o + 5, over=wr.Max("x"), name="f")
    spec = wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])
    check(table, spec)
    assert "too long" in how(spec, table)


def test_a_function_is_compiled_anew_when_what_it_refers_to_changes() -> None:
    table = pa.table({"x": [1, 2, 3, 4, 5, 6]})

    def sizes(least: int) -> Any:
        window = wr.policy(lambda t, o: t - o >= least, over=wr.Count(), name="f")
        return wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])(table)["count_w"][-1]

    assert [sizes(n).as_py() for n in (2, 4, 2)] == [2, 4, 2]


def test_own_aggregates_that_answer_with_several_numbers_are_interpreted() -> None:
    class Ends(Spread):
        def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
            return (p[0], p[1])

    table = pa.table({"x": [1.0, 5.0, 2.0, 9.0, 8.0]})
    window = wr.policy(lambda t, o: t[1] - o[1] > 3, over=Ends("x"), name="f")
    spec = wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])
    check(table, spec)
    assert "lower makes" in how(spec, table)
    found = wr.Rolling(windows=wr.rows(2), aggregates=[Ends("x")])(table)
    assert found["x_ends_2rows"].to_pylist()[1] == [1.0, 5.0]


# --- refusals ------------------------------------------------------------------------------------


def test_negative_numbers_are_named() -> None:
    for kind in (pa.int64(), pa.float64()):
        table = pa.table({"k": [1, 0, 1], "t": [2, 1, 1], "x": pa.array([1, 2, -3], kind)})
        spec = wr.Rolling(
            key="k", time="t", windows=wr.at_most(wr.Sum("x"), 10), aggregates=[wr.Count()]
        )
        with pytest.raises(BadValue, match=r"column 'x' is -3.* in row 2"):
            spec(table)
    decimals = pa.table({"x": [Decimal(1), Decimal(-1)]})
    spec = wr.Rolling(windows=wr.at_most(wr.Sum("x"), 10), aggregates=[wr.Count()])
    with pytest.raises(BadValue, match=r"row 1: at_most\(Sum\('x'\), 10\).*not negative"):
        spec(decimals)
    with pytest.raises(BadValue, match="column 'x' has type string"):
        spec(pa.table({"x": ["a"]}))


def test_policies_that_are_not_monotone() -> None:
    window = wr.policy(lambda t, o: o == 2, over=wr.Count(), name="odd", debug=True)
    spec = wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])
    with pytest.raises(NotMonotone, match=r"window 'w', row 1: policy 'odd' is not monotone"):
        spec(pa.table({"x": [1, 2, 3]}))


def test_errors_of_functions_name_the_row() -> None:
    table = pa.table({"x": [1, 0, 2]})
    window = wr.policy(lambda t, o: 1 // o > t, over=wr.Last("x"), name="f")
    with pytest.raises(ZeroDivisionError) as caught:
        wr.Rolling(windows={"w": window}, aggregates=[wr.Count()])(table)
    assert caught.value.__notes__[-1] == "in the window 'w' of row 1"
    unknown = wr.policy(lambda t, o: t > o, over=wr.Max("x"), name="f")
    with pytest.raises(TypeError):  # None, as Python sees it
        wr.Rolling(windows=unknown, aggregates=[wr.Count()])(pa.table({"x": [None, 1]}))


def test_refused_when_built_or_called() -> None:
    at_most = wr.at_most(wr.Sum("x"), 10)
    with pytest.raises(BadSpecification, match=r"window 'w': Sum\(\) needs a column here"):
        wr.Rolling(windows={"w": wr.at_most(wr.Sum(), 10)}, aggregates=[wr.Count()])
    with pytest.raises(BadSpecification, match="is about time"):
        wr.Rolling(windows=at_most & wr.time(3), aggregates=[wr.Count()])
    with pytest.raises(BadSpecification, match="every= needs windows of time"):
        wr.Rolling(time="t", windows=at_most, aggregates=[wr.Count()], every=2)
    spec = wr.Rolling(time="t", windows={"w": at_most}, aggregates=[wr.Count()])
    table = pa.table({"t": [1, 2], "y": [1, 2]})
    with pytest.raises(BadSpecification, match="window 'w': there is no column 'x'"):
        spec(table)
    with pytest.raises(Refused, match=r"as_of\(\): window 'w' is kept by policies"):
        spec.as_of(table, table)
    with pytest.raises(BadSpecification, match=r"stream\(\): windows of rows, of time and of"):
        spec.stream()


# --- Spark ---------------------------------------------------------------------------------------


def spark_check(session: Any, spec: wr.Rolling, table: pa.Table, **options: Any) -> None:
    found = spec(frame(session, table, 4), **options).toArrow()
    assert_same(found, spec(table), spec)


def test_spark_tables_equal_columns(spark: Any) -> None:  # noqa: F811
    table = plain_table(400, keys=7, seed=1)
    names = ("integers, time", "travelling, floats", "own", "debug")
    windows = {n: (COMPILED | INTERPRETED)[n] for n in names}
    spec = wr.Rolling(
        key="k", time="t", tie="id", windows=windows, aggregates=[wr.Count(), Spread("s")]
    )
    found = spec(frame(spark, table, 4), partitions=3).toArrow()
    assert_same(found, spec(table), spec)
    for key in range(7):
        own = table.filter(pa.compute.equal(table["k"], key))
        wanted = slid(own, spec)
        mine = found.filter(pa.compute.equal(found["k"], key))
        place = {i: p for p, i in enumerate(mine["id"].to_pylist())}
        for name, values in wanted.items():
            got = mine[name].to_pylist()
            for i, value in zip(own["id"].to_pylist(), values, strict=True):
                assert equal(got[place[i]], value)


def test_spark_with_hot_keys_and_without_a_key(spark: Any) -> None:  # noqa: F811
    table = plain_table(300, keys=2, seed=2)
    spec = specification(COMPILED["integers"])
    spark_check(spark, spec, table, hot_rows=10)
    alone = specification(light, key=None)
    spark_check(spark, alone, table)
    assert alone(frame(spark, table)).rdd.getNumPartitions() == 1
    said = alone.explain(frame(spark, table))
    assert "one task (no key, and policies, which decide row by row: all rows" in said
    assert "kept in a worker: all rows of one key" in said
    by_key = spec.explain(frame(spark, table))
    assert "keyed" in by_key
    assert "native: window 'w' is not a rows window" in by_key
    assert "all rows of one key" in by_key


def test_spark_refuses_before_any_job(spark: Any) -> None:  # noqa: F811
    df = frame(spark, plain_table(10))
    with pytest.raises(Refused, match=r"kept by policies.*say tie="):
        specification(COMPILED["integers"], tie=None)(df)
    assert specification(COMPILED["integers"], tie="any")(df).count() == 10
    with pytest.raises(Refused, match=r'engine="native"'):
        specification(COMPILED["integers"], engine="native")(df)
    with pytest.raises(BadSpecification, match="there is no column 'price'"):
        specification(wr.at_most(wr.Sum("price"), 10))(df)
    with pytest.raises(BadValue, match="column 'word' has type"):
        specification(wr.at_most(wr.Sum("word"), 10))(df)
    with pytest.raises(Refused, match=r"as_of\(\): window 'w' is kept by policies"):
        specification(COMPILED["integers"]).as_of(df, df)
    stream = spark.readStream.format("rate").load()
    spec = wr.Rolling(
        time="timestamp",
        tie="value",
        windows=wr.at_most(wr.Sum("value"), 10),
        aggregates=[wr.Count()],
        lateness="1s",
    )
    with pytest.raises(Refused, match="a policy may keep rows for ever"):
        spec(stream)
