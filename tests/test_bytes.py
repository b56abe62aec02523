"""Bytes: what was written is read, anything else is refused and never decoded into an answer."""

import copy
import math
import pickle
import struct
import zlib
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.pairs import PAIRS, accepted, pair_name
from windrow.aggregates import EMPTY, codec
from windrow.aggregates.codec import Reader
from windrow.errors import BadBytes, BadValue
from windrow.testing import CombineCounter
from windrow.windows import DabaLite, Window
from windrow.windows.compare import equal

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


@given(VALUES)
def test_every_value_survives(value: Any) -> None:
    reader = Reader(codec.encode(value))
    assert equal(codec.decode(reader), value)
    assert reader.remaining() == 0


def test_numpy_times_survive() -> None:
    for text, unit in (("2024-01-01T00:00:00.000000001", "ns"), ("2024-01-01", "D")):
        value = np.datetime64(text, unit)  # type: ignore[call-overload]
        back = codec.decode(Reader(codec.encode(value)))
        assert back == value
        assert back.dtype == value.dtype


def test_what_has_no_bytes_says_so() -> None:
    window = DabaLite(wr.Last())
    window.insert([1, 2])
    with pytest.raises(BadValue, match=r"\[1, 2\] is a list, which has no byte form"):
        window.to_bytes()
    deep: Any = ()
    for _ in range(40):
        deep = (deep,)
    with pytest.raises(BadValue, match="nested"):
        codec.encode(deep)


def filled(algorithm: type[Window], aggregate: wr.Aggregate) -> Window:
    window = algorithm(aggregate)
    kinds = aggregate.input_kinds or ("any",)
    texts = kinds[-1] in ("text", "string")
    for i in range(11):
        value: Any = f"w{i}" if texts else 1.5 * i + 0.1
        value = {"integer": 3 * i + 1, "boolean": i % 3 == 0}.get(kinds[-1], value)
        first = i if kinds[0] == "number" else f"row {i}"
        window.insert((first, value) if len(kinds) == 2 else value)
    window.bulk_evict(3)
    window.query()
    return window


@pytest.mark.parametrize(("algorithm", "aggregate"), PAIRS, ids=pair_name)
def test_round_trip_and_every_damage_is_found(
    algorithm: type[Window], aggregate: wr.Aggregate
) -> None:
    window = filled(algorithm, aggregate)
    data = window.to_bytes()
    again = algorithm.from_bytes(data, aggregate)
    assert equal(again.query(), window.query())
    assert again.to_bytes() == data
    again.evict()
    window.evict()
    assert equal(again.query(), window.query())
    for position in range(0, len(data), max(1, len(data) // 60)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(BadBytes):
            algorithm.from_bytes(bytes(flipped), aggregate)
    for cut in (0, 3, 21, len(data) // 2, len(data) - 1):
        with pytest.raises(BadBytes):
            algorithm.from_bytes(data[:cut], aggregate)
    with pytest.raises(BadBytes):
        algorithm.from_bytes(data + b"\0", aggregate)


def test_messages() -> None:
    data = filled(DabaLite, wr.Max()).to_bytes()
    with pytest.raises(BadBytes, match="not written by windrow"):
        DabaLite.from_bytes(b"x" * 100, wr.Max())
    with pytest.raises(BadBytes, match="expected bytes, got str"):
        DabaLite.from_bytes("x", wr.Max())  # type: ignore[arg-type]
    newer = bytearray(data)
    newer[4] = 99
    with pytest.raises(BadBytes, match="format version 99, this windrow reads version 1"):
        DabaLite.from_bytes(bytes(newer), wr.Max())
    damaged = bytearray(data)
    damaged[-10] ^= 4
    with pytest.raises(BadBytes, match="checksum"):
        DabaLite.from_bytes(bytes(damaged), wr.Max())
    with pytest.raises(BadBytes, match=r"DabaLite\(Min\(\)\).*something else"):
        DabaLite.from_bytes(data, wr.Min())
    with pytest.raises(BadBytes, match="another algorithm"):
        wr.windows.Daba.from_bytes(data, wr.Max())
    with pytest.raises(BadBytes, match="something else"):
        DabaLite.from_bytes(filled(DabaLite, wr.Variance()).to_bytes(), wr.Variance(ddof=0))


def reframed(data: bytes, payload: bytes) -> bytes:
    """Another payload behind the same header, with a checksum that fits."""
    data = data[:14] + struct.pack("<Q", len(payload)) + payload
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize("algorithm", accepted(wr.Max()), ids=pair_name)
@given(st.data())
def test_damage_behind_a_right_checksum_never_becomes_an_answer(
    algorithm: type[Window], data: Any
) -> None:
    """Bytes changed, cut, or made up: a window that keeps its invariants, or BadBytes."""
    good = filled(algorithm, wr.Max()).to_bytes()
    payload = bytearray(good[22:-4])
    kind = data.draw(st.sampled_from(["change", "cut", "more", "new"]))
    if kind == "change":
        for _ in range(data.draw(st.integers(1, 3))):
            payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    elif kind == "cut":
        del payload[data.draw(st.integers(0, len(payload) - 1)) :]
    elif kind == "more":
        payload += data.draw(st.binary(min_size=1, max_size=5))
    else:
        payload = bytearray(data.draw(st.binary(max_size=60)))
    try:
        window = algorithm.from_bytes(reframed(good, bytes(payload)), wr.Max())
    except BadBytes:
        return
    assert kind != "more"
    window.check_invariants()
    window.query()
    assert len(window) >= 0


def test_a_broken_structure_is_not_loaded() -> None:
    """The sizes are wrong though every byte is well formed: only check_invariants can see it."""
    window = DabaLite(wr.Max())
    for i in range(4):
        window.insert(i)
    window._B.append(7)
    with pytest.raises(BadBytes, match="size invariant"):
        DabaLite.from_bytes(window.to_bytes(), wr.Max())


def test_another_kind_of_bytes_is_refused() -> None:
    partial = wr.Max().to_bytes(3)
    with pytest.raises(BadBytes):
        DabaLite.from_bytes(partial, wr.Max())


@pytest.mark.parametrize(("algorithm", "aggregate"), PAIRS, ids=pair_name)
def test_copies_and_pickles_are_windows_of_their_own(
    algorithm: type[Window], aggregate: wr.Aggregate
) -> None:
    window = filled(algorithm, aggregate)
    before = window.query()
    for other in (copy.copy(window), copy.deepcopy(window), pickle.loads(pickle.dumps(window))):
        assert equal(other.query(), before)
        other.bulk_evict(len(other) - 1)
        other.evict()
        assert equal(window.query(), before)
        window.check_invariants()


def test_a_sliding_window_can_be_copied() -> None:
    sliding = wr.Sliding("1h", wr.Max())
    sliding.insert(3, at=datetime(2024, 1, 1))
    for other in (copy.deepcopy(sliding), pickle.loads(pickle.dumps(sliding))):
        assert other.insert(5, at=datetime(2024, 1, 1, 0, 30)) == 5
        assert sliding.query() == 3


@pytest.mark.parametrize(
    ("first", "second"), [(Decimal(1), 3.0), (3.0, Decimal(1)), (1, Decimal(2))], ids=str
)
def test_the_kind_of_values_survives_a_reload(first: Any, second: Any) -> None:
    for aggregate in (wr.Sum(), wr.Mean(), wr.Several(wr.Sum(), wr.Count())):
        window = DabaLite(aggregate)
        window.insert(first)
        for again in (
            DabaLite.from_bytes(window.to_bytes(), aggregate),
            copy.deepcopy(window),
        ):
            with pytest.raises(BadValue, match="cannot be combined"):
                again.insert(second)


def test_zones_survive_by_name() -> None:
    value = datetime(2024, 7, 1, tzinfo=ZoneInfo("America/New_York"))
    back = codec.decode(Reader(codec.encode(value)))
    assert back.tzinfo == value.tzinfo
    with pytest.raises(BadValue, match="not valid Unicode"):
        codec.encode("\ud800")


def test_loading_is_linear() -> None:
    """Counted, not timed: combines per row to load a window do not grow with it."""
    for algorithm in (wr.windows.TwoStacks, wr.windows.Daba, DabaLite):
        spent = []
        for size in (200, 800):
            counter = CombineCounter(wr.Max())
            window = algorithm(counter.aggregate)
            for i in range(size):
                window.insert(i)
            data = window.to_bytes()
            counter.take()
            algorithm.from_bytes(data, counter.aggregate)
            spent.append(counter.take() / size)
        assert spent[1] <= 1.5 * spent[0] + 1


def test_partials_alone() -> None:
    total = wr.Mean.combine(wr.Mean.lift(0.1), wr.Mean.lift(math.inf))
    assert wr.Mean().from_bytes(wr.Mean().to_bytes(total)) == total
    assert wr.Mean().from_bytes(wr.Mean().to_bytes(EMPTY)) is EMPTY
    with pytest.raises(BadBytes, match="something else"):
        wr.Sum().from_bytes(wr.Mean().to_bytes(total))


def test_an_exact_total_is_small() -> None:
    """A sum of ordinary floats takes a few bytes more than a float, not 270."""
    total = wr.Sum.lift(0.1)
    for i in range(1000):
        total = wr.Sum.combine(total, wr.Sum.lift(i * 0.7))
    frame = len(wr.Sum().to_bytes(EMPTY))
    assert len(wr.Sum().to_bytes(total)) - frame <= 24


def test_kinds_of_values_survive_a_reload() -> None:
    for values in (
        [Decimal("1.5"), Decimal(2)],
        [date(2024, 1, 1), date(2024, 1, 2)],
        [time(1), time(2)],
        [timedelta(1), timedelta(2)],
        [datetime(2024, 1, 1), datetime(2024, 1, 2)],
        [(1, "a"), (1, "b")],
    ):
        window = DabaLite(wr.Max())
        for value in values:
            window.insert(value)
        assert DabaLite.from_bytes(window.to_bytes(), wr.Max()).query() == values[-1]


def test_times_of_pandas_are_written_as_python_has_them() -> None:
    for value in (pd.Timestamp("2024-01-31 17:05", tz="Europe/Berlin"), pd.Timedelta("1h")):
        assert codec.decode(Reader(codec.encode((value, 1)))) == (value, 1)
        window = DabaLite(wr.Max())
        window.insert(value)
        again = DabaLite.from_bytes(window.to_bytes(), wr.Max())
        again.insert(value * 2 if isinstance(value, timedelta) else value + timedelta(1))
        assert again.query() > value
    with pytest.raises(BadValue, match="finer than microseconds"):
        codec.encode(pd.Timestamp(1, unit="ns"))


def test_a_hub_takes_times_of_pandas_and_is_written() -> None:
    hub = wr.Hub()
    query = hub.register(wr.Count(), wr.time("1h"))
    hub.insert(1, at=pd.Timestamp("2024-01-01", tz="UTC"))
    again = wr.Hub.from_bytes(hub.to_bytes())
    again.insert(1, at=pd.Timestamp("2024-01-01 00:30", tz="UTC"))
    assert again.lookup(again.queries[query.number]) == 2
