"""Point-in-time features: what a label may know, on columns, carried over batches, and on Spark."""

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.spark_session import spark  # noqa: F401
from tests.tables import session
from windrow.columns.as_of import IS_LABEL, AsOf, joined
from windrow.errors import BadSpecification, Refused, SumOverflow

ON = {"k": "who", "t": "at"}
WINDOWS: dict[str, Any] = {
    "a": wr.time(20),
    "b": wr.time(30, closed="both"),
    "c": wr.rows(5),
    "d": wr.rows(3, ending=2),
    "e": wr.time(10, ending=5),
    "f": wr.session(3),
    "g": wr.session(4, closed="left"),
}


def features(**changed: Any) -> wr.Rolling:
    given: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "windows": WINDOWS,
        "aggregates": [wr.Sum("x"), wr.Count(), wr.Last("x")],
    }
    return wr.Rolling(**(given | changed))


def tables(seed: int) -> tuple[pa.Table, pa.Table]:
    generator = np.random.default_rng(seed)
    events, labels = int(generator.integers(0, 150)), int(generator.integers(1, 80))
    x = pa.array(generator.standard_normal(events), mask=generator.random(events) < 0.1)
    return pa.table(
        {
            "k": pa.array(generator.integers(0, 4, events)),
            "t": pa.array(generator.integers(0, 100, events)),
            "id": pa.array(generator.permutation(events)),
            "x": x,
        }
    ), pa.table(
        {
            "who": pa.array(generator.integers(0, 5, labels)),
            "at": pa.array(generator.integers(0, 120, labels)),
            "y": pa.array(np.arange(labels)),
        }
    )


def expected(events: pa.Table, label: dict[str, Any], strict: bool) -> dict[str, Any]:
    t = label["at"]
    known = [
        (row["t"], row["id"], row["x"])
        for row in events.to_pylist()
        if row["k"] == label["who"] and (row["t"] < t or (not strict and row["t"] == t))
    ]
    known.sort(key=lambda row: row[:2])
    rows = {
        "a": [row for row in known if t - 20 < row[0]],
        "b": [row for row in known if t - 30 <= row[0]],
        "c": known[-5:],
        "d": known[:-2][-3:],
        "e": [row for row in known if t - 15 < row[0] <= t - 5],
    }
    before = [row for row in known if row[0] < t]
    for name, rows_known, gap in (("f", known, 3), ("g", before, 4)):
        count = session([row[0] for row in rows_known], t, gap, True)
        rows[name] = rows_known[len(rows_known) - count :]
    out = dict(label)
    for name, members in rows.items():
        values = [x for _, _, x in members if x is not None]
        out[f"x_sum_{name}"] = math.fsum(values) + 0.0 if values else None
        out[f"count_{name}"] = len(members)
        out[f"x_last_{name}"] = values[-1] if values else None
    return out


@given(st.integers(0, 10**6), st.booleans())
@examples(60)
def test_a_label_knows_the_events_before_it(seed: int, strict: bool) -> None:
    events, labels = tables(seed)
    found = features().as_of(events, labels, on=ON, strict=strict).to_pylist()
    assert found == [expected(events, label, strict) for label in labels.to_pylist()]


@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 40))
@examples(60)
def test_sorted_pieces_equal_one_call(seed: int, strict: bool, size: int) -> None:
    events, labels = tables(seed)
    spec = features()
    order = [(name, "ascending") for name in ("k", "t", IS_LABEL, "id")]
    both = joined(spec, events, labels, ON)
    both = both.append_column(
        "y",
        pa.concat_arrays(
            [pa.nulls(len(events), pa.int64()), pa.array(labels["y"].to_pylist(), pa.int64())]
        ),
    )
    both = both.sort_by(order)
    carry = AsOf(spec, strict)
    pieces = [both.slice(start, size) for start in range(0, len(both), size)]
    found = pa.concat_tables([carry.push(p, last=p is pieces[-1]) for p in pieces]).sort_by("y")
    whole = spec.as_of(events, labels, on=ON, strict=strict)
    for name, _, _ in spec.outputs:
        assert found[name].to_pylist() == whole[name].to_pylist()


def test_only_events_that_a_later_label_can_reach_are_kept() -> None:
    events = pa.table({"k": [1] * 1000, "t": range(1000), "id": range(1000), "x": [1.0] * 1000})
    labels = pa.table({"who": [1], "at": [999]})
    carry = AsOf(features(windows=[wr.time(20)]), strict=True)
    both = joined(carry.spec, events, labels, ON)
    for start in range(0, 1000, 100):
        carry.push(both.slice(start, 100))
        assert carry.rows_kept <= 21


def test_an_answer_that_is_too_large_is_told_with_its_label() -> None:
    events = pa.table({"k": [1, 1], "t": [1, 2], "v": [2**62, 2**62]})
    labels = pa.table({"k": [1, 1, 1, 1], "t": [2, 9, 1, 1]})
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(20)], aggregates=[wr.Sum("v")])
    for some, row in ((labels, 1), (labels[1:], 0), (labels.take([0, 2, 3, 1]), 3)):
        with pytest.raises(SumOverflow, match=f"the window of row {row} sums column 'v'"):
            spec.as_of(events, some)
    before = spec.as_of(events, labels.take([2, 0, 3]))  # the sum with the last is asked by none
    assert before["v_sum_20"].to_pylist() == [None, 2**62, None]


def test_the_answer_is_of_the_labels_type() -> None:
    events, labels = tables(5)
    spec = features(windows=[wr.time(20)], aggregates=[wr.Sum("x")])
    whole = spec.as_of(events, labels, on=ON)["x_sum_20"].to_pylist()
    as_pandas = spec.as_of(events.to_pandas(), labels.to_pandas(), on=ON)
    assert isinstance(as_pandas, pd.DataFrame)
    assert [None if math.isnan(v) else v for v in as_pandas["x_sum_20"]] == whole
    as_polars = spec.as_of(pl.from_arrow(events), pl.from_arrow(labels), on=ON)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars["x_sum_20"].to_list() == whole
    as_arrays = spec.as_of(events, {n: labels[n].to_numpy() for n in labels.column_names}, on=ON)
    assert [None if math.isnan(v) else v for v in as_arrays["x_sum_20"]] == whole


@pytest.mark.parametrize(
    ("changed", "on", "error", "says"),
    [
        ({"windows": [wr.time(5, after=1)]}, ON, Refused, "future"),
        ({"windows": [wr.bounds("t", "id")]}, ON, Refused, "bounds"),
        ({"windows": [wr.time(5)], "every": 1}, ON, Refused, "ticks"),
        ({}, None, BadSpecification, "no column 'k'"),
        ({}, {"x": "y"}, BadSpecification, "neither the key nor the time"),
        ({}, 7, BadSpecification, "on= is"),
        ({"aggregates": [wr.Sum("x").alias("y")], "windows": {"z": wr.rows(1)}}, ON, None, ""),
    ],
)
def test_refusals(changed: dict[str, Any], on: Any, error: Any, says: str) -> None:
    events, labels = tables(1)
    if error is None:
        labels = labels.append_column("y_z", labels["y"])
        error, says = BadSpecification, "hide"
    with pytest.raises(error, match=says):
        features(**changed).as_of(events, labels, on=on)


@pytest.mark.parametrize("strict", [True, False])
def test_on_spark(spark: Any, strict: bool) -> None:  # noqa: F811
    events, labels = tables(11)
    for spec, on in ((features(), ON), (features(key=None), "at")):
        whole = spec.as_of(events, labels, on=on, strict=strict)
        found = spec.as_of(
            spark.createDataFrame(events).repartition(3),
            spark.createDataFrame(labels).repartition(2),
            on=on,
            strict=strict,
        )
        assert found.schema["y"].dataType.simpleString() == "bigint"
        assert not found.schema["count_a"].nullable
        assert found.toArrow().sort_by("y").to_pylist() == whole.to_pylist()


def test_refusals_on_spark(spark: Any) -> None:  # noqa: F811
    events, labels = (spark.createDataFrame(table) for table in tables(12))
    with pytest.raises(Refused, match="tie"):
        features(tie=None).as_of(events, labels, on=ON)
    with pytest.raises(BadSpecification, match="cast one of them"):
        features().as_of(events, labels.withColumn("who", labels["who"].cast("string")), on=ON)
    with pytest.raises(BadSpecification, match="both be Spark tables"):
        features().as_of(events, tables(12)[1], on=ON)
    coming = spark.readStream.format("rate").load()
    for pair in ((events, coming), (coming, labels)):
        with pytest.raises(Refused, match=r"as_of\(\) is for tables"):
            features().as_of(*pair, on=ON)
