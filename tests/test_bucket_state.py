"""The state of a bucket: it outlives the program and changes of it, and damage is found."""

import json
import re
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import (
    END,
    SCHEMA,
    MemorySpace,
    MemoryStore,
    Stream,
    plan_of,
    small_spec,
    small_table,
    some,
    windows,
)
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, assert_same, random_table
from windrow.aggregates.schema import frame, unframe
from windrow.columns.bucket import Bucket
from windrow.columns.cells import decoded, encoded
from windrow.columns.stream_plan import STATE_VERSION, StreamPlan
from windrow.errors import BadBytes, Refused
from windrow.slides import Rows

# --- the state outlives the program --------------------------------------------------------------


def first_half(table: pa.Table, plan: StreamPlan) -> Stream:
    """A stream in the middle of a table that is in order of time, with rows that wait."""
    stream = Stream(plan)
    half = table.num_rows // 2
    for place in range(0, half, 25):
        last = table["t"][min(place + 24, half)].as_py()
        stream.turn(table.slice(place, min(25, half - place)), last - 10)
    assert stream.head.waiting
    return stream


def continued(stream: Stream, plan: StreamPlan, table: pa.Table) -> pa.Table:
    """The answers of the rest, by another specification over the state of the first."""
    later = Stream(plan, stream.store)
    half = table.num_rows // 2
    for place in range(half, table.num_rows, 25):
        last = table["t"][min(place + 24, table.num_rows - 1)].as_py()
        later.turn(table.slice(place, 25), last - 10)
    later.end()
    return later.found()


def in_order(seed: int = 0, size: int = 240) -> pa.Table:
    table = random_table(size, seed=seed, span=500)
    return table.sort_by([("t", "ascending"), ("id", "ascending")])


OLD: dict[str, Any] = {
    "windows": {"w": wr.time(60), "p": wr.time(40, ending=30), "r": wr.rows(4, within=90)},
    "aggregates": [wr.Sum("x"), wr.Last("s"), wr.Max("i")],
}


def specification(**changed: Any) -> wr.Rolling:
    return wr.Rolling(**({"key": "k", "time": "t", "tie": "id"} | OLD | changed))


CHANGES: dict[str, dict[str, Any]] = {
    "a shorter window": {"windows": OLD["windows"] | {"new": wr.time(35)}},
    "a window as long as any": {"windows": OLD["windows"] | {"new": wr.time(70)}},
    "a closed window": {"windows": OLD["windows"] | {"new": wr.time(69, closed="both")}},
    "a window of the past": {"windows": OLD["windows"] | {"new": wr.time(10, ending=60)}},
    "another length": {"windows": OLD["windows"] | {"w": wr.time(20)}},
    "windows that change names": {
        "windows": {"p": wr.time(60), "w": wr.time(40, ending=30), "r": OLD["windows"]["r"]}
    },
    "a window less": {"windows": {"w": wr.time(60), "r": OLD["windows"]["r"]}},
    "no time windows": {"windows": {"r": OLD["windows"]["r"]}},
    "no rows window": {"windows": {"w": wr.time(60), "p": wr.time(40, ending=30)}},
    "rows window to time window": {"windows": {"r": wr.time(5)}},
    "another aggregate": {"aggregates": [wr.Mean("x"), wr.Last("s"), wr.Max("i")]},
    "other aggregates": {"aggregates": [wr.StdDev("i"), wr.Concat("s"), wr.ArgMax("s", "x")]},
    "another order": {"aggregates": [wr.Max("i"), wr.Last("s"), wr.Sum("x")]},
    "an aggregate less": {"aggregates": [wr.Last("s")]},
    "missing is not a number": {"nan": "missing"},
    "at least two rows": {"min_rows": 2},
    "an own aggregate": {"aggregates": [wr.Count(), GeoMean("p"), wr.Max("p")]},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("segment_rows", [7, 1 << 17])
def test_a_changed_specification_goes_on(change: str, segment_rows: int) -> None:
    table = in_order()
    changed = CHANGES[change]
    before = specification()
    if change == "an own aggregate":
        before = specification(aggregates=[wr.Sum("p")])
    after = specification(**changed)
    stream = first_half(table, plan_of(before, table.schema, segment_rows=segment_rows))
    answered = set(stream.found()["id"].to_pylist())
    plan = plan_of(after, table.schema, segment_rows=segment_rows)
    found = continued(stream, plan, table)
    wanted = after(table)
    later = [number not in answered for number in wanted["id"].to_pylist()]
    assert_same(found, wanted.filter(pa.array(later)), after)


@given(st.integers(0, 10**6), windows(100), st.data())
@examples(25)
def test_any_windows_that_look_back_less(seed: int, chosen: dict[str, Any], data: Any) -> None:
    timed = {"long": wr.time(150)} | {
        label: window for label, window in chosen.items() if window.kind == "time"
    }
    rows = {label: window for label, window in chosen.items() if isinstance(window, Rows)}
    known = data.draw(st.sets(st.sampled_from(sorted(timed))))
    after_windows = {label: w for label, w in timed.items() if label not in known} | rows
    if not after_windows:
        after_windows = {"other": wr.time(15)}
    aggregates = [a for a in AGGREGATES if a.columns]
    before = specification(windows=timed | rows, aggregates=aggregates)
    after = specification(windows=after_windows, aggregates=data.draw(some(aggregates)))
    table = in_order(seed, 150)
    stream = first_half(table, plan_of(before, table.schema, segment_rows=9))
    answered = set(stream.found()["id"].to_pylist())
    found = continued(stream, plan_of(after, table.schema, segment_rows=9), table)
    wanted = after(table)
    later = [number not in answered for number in wanted["id"].to_pylist()]
    assert_same(found, wanted.filter(pa.array(later)), after)


def test_segments_go_with_the_last_time_window() -> None:
    table = in_order()
    stream = first_half(table, plan_of(specification(), table.schema))
    later = Stream(plan_of(specification(**CHANGES["no time windows"]), table.schema), stream.store)
    half = table.num_rows // 2
    later.turn(table.slice(half), table["t"][-1].as_py())
    assert len(stream.store.log.held) == 1


def refused(spec: wr.Rolling, table: pa.Table, other: Any, **options: Any) -> str:
    """Why a specification is refused over the state of another; the state stays as it is."""
    stream = first_half(table, plan_of(spec, table.schema))
    store = stream.store
    before = (store.head, dict(store.log.held), dict(store.waiting.held))
    schema = options.pop("schema", table.schema)
    with pytest.raises(Refused) as caught:
        Bucket(plan_of(other, schema, **options), store)
    assert before == (store.head, store.log.held, store.waiting.held)
    return str(caught.value)


LONGER: list[Any] = [
    wr.time(71),
    wr.time(70, closed="both"),
    wr.time(70, closed="left"),
    wr.time(1, ending=70),
]


@pytest.mark.parametrize("window", LONGER, ids=lambda window: window.label)
def test_a_longer_window_is_refused(window: Any) -> None:
    other = specification(windows=OLD["windows"] | {"new": window})
    text = refused(specification(), in_order(), other)
    assert text.startswith("window 'new' looks back further than any time window of the checkpoint")
    assert "the state has 69 ticks" in text


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"key": ["k", "b"]}, "the key cannot change .* written with k, the query says k, b"),
    "no key": ({"key": None}, "the key cannot change .* the query says none"),
    "time": ({"time": "id", "tie": "t"}, "the time column cannot change .* t, the query says id"),
    "tie": ({"tie": ["id", "x"]}, "the tie columns cannot change"),
    "column": ({"aggregates": [wr.Sum("x"), wr.Min("d")]}, "the state has no column 'd'"),
    "rows window": (
        {"windows": OLD["windows"] | {"r": wr.rows(5, within=90)}},
        "window 'r': a rows window cannot be added or changed",
    ),
    "horizon": (
        {"windows": OLD["windows"] | {"r": wr.rows(4, within=80)}},
        "window 'r': a rows window cannot be added or changed",
    ),
    "new rows window": (
        {"windows": OLD["windows"] | {"new": wr.rows(1, within=1)}},
        "window 'new': a rows window cannot be added or changed",
    ),
    "time window to rows window": (
        {"windows": {"w": wr.rows(1, within=1)}},
        "window 'w': a rows window cannot be added or changed",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_change_is_refused(what: str) -> None:
    changed, reason = REFUSALS[what]
    text = refused(specification(), in_order(), specification(**changed))
    assert re.search(reason, text), text
    assert "new checkpoint" in text


def test_other_buckets_are_refused() -> None:
    text = refused(specification(), in_order(), specification(), buckets=4)
    assert "the number of buckets cannot change" in text
    assert "written with 1, the query says 4" in text


def test_other_types_are_refused() -> None:
    table = in_order()
    place = table.schema.get_field_index("i")
    other = table.schema.set(place, pa.field("i", pa.int64()))
    text = refused(specification(), table, specification(), schema=other)
    assert "the stream's columns and their types cannot change" in text
    assert "i int32" in text
    assert "i int64" in text


def test_columns_that_are_made_come_and_go_with_their_aggregates() -> None:
    """Those of where(), which are none of the stream's."""
    table = in_order()
    wide = table.append_column("made", table["x"])
    both = specification(aggregates=[wr.Sum("x"), wr.Max("made")])
    one = specification(aggregates=[wr.Sum("x")])
    stream = first_half(wide, plan_of(both, wide.schema, made=("made",)))
    answered = set(stream.found()["id"].to_pylist())
    found = continued(stream, plan_of(one, table.schema), table)
    wanted = one(table)
    later = [number not in answered for number in wanted["id"].to_pylist()]
    assert_same(found, wanted.filter(pa.array(later)), one)
    text = refused(one, table, both, schema=wide.schema, made=("made",))
    assert "the state has no column 'made'" in text
    text = refused(one, table, both, schema=wide.schema)
    assert "the stream's columns and their types cannot change" in text


def test_a_new_time_window_where_there_was_none_is_refused() -> None:
    only_rows = specification(windows={"r": OLD["windows"]["r"]})
    text = refused(only_rows, in_order(), specification())
    assert "looks back further than any time window of the checkpoint" in text


def edited(head: bytes, **changes: Any) -> bytes:
    reader = unframe(b"H", b"windrow\0", head, "")
    content = json.loads(reader.take(reader.remaining()))
    content["contract"] |= changes.pop("contract", {})
    return frame(b"H", b"windrow\0", json.dumps(content | changes).encode())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"added": 1},
    ],
    ids=["same fields", "another field"],
)
def test_another_version_is_refused(changes: dict[str, Any]) -> None:
    plan = plan_of(small_spec(), SCHEMA)
    stream = Stream(plan)
    stream.turn(small_table([(0, 1)]), 2)
    assert stream.store.head is not None
    other = {"version": STATE_VERSION + 1}
    stream.store.head = edited(stream.store.head, contract=other, **changes)
    with pytest.raises(Refused, match=f"the checkpoint's state is of version {STATE_VERSION + 1}"):
        Bucket(plan, stream.store)


def test_version_2_is_read() -> None:
    """It had no word for when answers come out: for every row."""
    plan = plan_of(small_spec(), SCHEMA)
    stream = Stream(plan)
    stream.turn(small_table([(0, 1)]), 2)
    assert stream.store.head is not None
    reader = unframe(b"H", b"windrow\0", stream.store.head, "")
    content = json.loads(reader.take(reader.remaining()))
    del content["contract"]["emit"], content["active"], content["rules"], content["rules_sizes"]
    content["contract"]["version"] = 2
    stream.store.head = frame(b"H", b"windrow\0", json.dumps(content).encode())
    turn = stream.turn(small_table([(0, 3)], 1), 9)
    assert turn.answered is not None
    assert turn.answered["x_sum_w"].to_pylist() == [3.0]
    assert stream.head.contract["version"] == STATE_VERSION


@pytest.mark.parametrize("emit", ["rows", "immediately"])
@pytest.mark.parametrize("place", [0, 1, 130, 240])
def test_a_stream_that_begins_with_a_history(emit: Any, place: int) -> None:
    """Rows before a time were answered elsewhere; later ones of the history wait."""
    table = in_order()
    spec = specification(emit=emit)
    plan = plan_of(spec, table.schema, segment_rows=16)
    until = END if place == 240 else table["t"][place].as_py()
    answered = [t < until for t in table["t"].to_pylist()]
    stream = Stream(plan)
    bucket = Bucket(plan, stream.store)
    bucket.seed(
        [table.slice(0, 100), table.slice(100, max(0, place - 100))][: 1 + (place > 100)], until
    )
    bucket.close()
    with pytest.raises(Refused, match="there is a state already"):
        Bucket(plan, stream.store).seed([], until)
    later = table.slice(max(place, 100))
    stream.turn(later, until)
    stream.end()
    if emit == "immediately":  # rows of the history never come out
        answered = [n < max(place, 100) for n in range(240)]
    wanted = wr.Rolling(key="k", time="t", tie="id", **OLD)(table)
    if stream.answered:
        assert_same(stream.found(), wanted.filter(pa.array([not a for a in answered])), spec)


@pytest.mark.parametrize(
    "change",
    [
        "order",
        "nullable",
    ],
)
def test_columns_that_come_otherwise(change: str) -> None:
    """Either it goes on, or it is refused."""
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, 1), (0, 9)]), 5)
    table = small_table([(0, 8)], 2)
    if change == "order":
        table = table.select(["x", "id", "t", "k"])
    else:
        table = table.cast(pa.schema([field.with_nullable(False) for field in SCHEMA]))
    later = Stream(plan_of(small_spec(), table.schema), stream.store)
    try:
        turn = later.turn(table, 10)
    except Refused:
        return
    assert turn.answered is not None
    assert turn.answered["id"].to_pylist() == [2, 1]


# --- damage --------------------------------------------------------------------------------------


@cache
def stored() -> MemoryStore:
    """The state of a stream with segments, folded segments, rows that wait and last rows."""
    stream = Stream(plan_of(small_spec(), SCHEMA, segment_rows=2))
    stream.turn(small_table([(n % 2, n) for n in range(14)]), 9)
    assert len(stream.store.log.held) > 6
    assert stream.store.waiting.held
    return stream.store


def copied() -> MemoryStore:
    store = MemoryStore()
    store.head = stored().head
    store.log.held, store.waiting.held = dict(stored().log.held), dict(stored().waiting.held)
    return store


def gone_on(store: MemoryStore) -> pa.Table:
    """The answers of three more turns."""
    stream = Stream(plan_of(small_spec(), SCHEMA, segment_rows=2), store)
    for frontier in (10, 12, 30):
        stream.turn(small_table([(0, frontier - 1)], 50 + frontier), frontier)
    return stream.found()


def test_most_cells_are_read_again() -> None:
    store = copied()
    held = len(store.log.held) + len(store.waiting.held)
    gone_on(store)
    read = len(store.log.read & stored().log.held.keys())
    assert read + len(store.waiting.read & stored().waiting.held.keys()) >= held - 3


@given(st.data())
@examples(60)
def test_damaged_bytes_are_never_an_answer(data: Any) -> None:
    store = copied()
    places: list[tuple[MemorySpace | None, int]] = [
        (None, 0),
        *((store.log, number) for number in store.log.held),
        *((store.waiting, number) for number in store.waiting.held),
    ]
    space, number = places[data.draw(st.integers(0, len(places) - 1))]
    whole = store.head if space is None else space.held[number]
    assert whole is not None
    how = data.draw(st.sampled_from(["flip", "cut", "longer"]))
    if how == "flip":
        place = data.draw(st.integers(0, len(whole) - 1))
        mask = data.draw(st.integers(1, 255))
        broken = whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
    elif how == "cut":
        broken = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        broken = whole + data.draw(st.binary(min_size=1, max_size=9))
    if space is None:
        store.head = broken
        with pytest.raises(BadBytes):
            Bucket(plan_of(small_spec(), SCHEMA), store)
        return
    space.held[number] = broken
    try:
        Stream.checked = False
        found = gone_on(store)
    except BadBytes:
        return
    finally:
        Stream.checked = True
    assert number not in space.read
    assert found.equals(gone_on(copied()))


def test_a_cell_that_is_missing_is_damage() -> None:
    store = copied()
    store.waiting.held.clear()
    with pytest.raises(BadBytes, match="the checkpoint is damaged"):
        gone_on(store)


_EDGES = (-(1 << 63), -(1 << 32), -1, 0, 1, 255, 256, 1 << 16, 1 << 32, (1 << 63) - 1)
_WIDE = (pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("s"), pa.int32())


@given(
    st.lists(
        st.none() | st.builds(int.__add__, st.sampled_from(_EDGES[1:-1]), st.integers(-300, 300))
    ),
    st.lists(st.sampled_from(_EDGES)),
    st.integers(0, 3),
)
def test_cells_are_read_as_they_were_written(
    near: list[int | None], far: list[int], start: int
) -> None:
    for kind in _WIDE:
        for values in (near, far, [0, 255], [0, 256], [7, 7 + (1 << 32)], [-5, (1 << 32) - 6]):
            numbers: list[int | None] = [*values]
            if kind == pa.int32():
                numbers = [None if n is None else n % 1000 for n in numbers]
            array = pa.array(numbers, pa.int32() if kind == pa.int32() else pa.int64()).view(kind)
            chunks = pa.chunked_array([array[start:], array], kind)
            schema = pa.schema([pa.field("a", kind, metadata={"low": "9"}), ("s", pa.string())])
            table = pa.table([chunks, [str(n) for n in range(len(chunks))]], schema=schema)
            cell = decoded(encoded(table, {"low": -5, "schema": 7}), "cell")
            found = cell.table.replace_schema_metadata(None)
            assert found.equals(table, check_metadata=True)
            assert cell.numbers == {"low": -5, "schema": 7}


def test_integers_take_as_few_bytes_as_they_need() -> None:
    size = 10_000
    sizes = [
        len(encoded(pa.table({"a": pa.array([1 << 50, (1 << 50) + span] * (size // 2))}), {}))
        for span in (0xFF, 0x100, 0xFFFF, 0x10000, 0xFFFFFFFF, 1 << 32)
    ]
    assert [round(found / size) for found in sizes] == [1, 2, 2, 4, 4, 8]
