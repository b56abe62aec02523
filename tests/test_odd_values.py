"""Values that an aggregate cannot take are refused when they come, by name, and change nothing."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from tests.pairs import AGGREGATES
from windrow.errors import BadValue

UNORDERED = [1 + 2j, {"a": 1}, object(), np.array([1, 2]), pa.scalar(3), len]
BY_ORDER = {
    name: a
    for name, a in AGGREGATES.items()
    if a.input_kinds == ("orderable",) and a.family is not None
}
BY_NUMBER = {
    name: a for name, a in AGGREGATES.items() if a.input_kinds in (("number",), ("positive",))
}


@pytest.mark.parametrize("name", BY_ORDER)
@pytest.mark.parametrize("value", UNORDERED, ids=lambda value: type(value).__name__)
def test_what_has_no_order_is_refused_when_it_comes(name: str, value: Any) -> None:
    window = wr.windows.Recalc(BY_ORDER[name])
    with pytest.raises(BadValue, match=r"cannot be (ordered|hashed|counted)|bytes|hash"):
        window.insert(value)
    window.insert(3)
    window.insert(4)
    assert len(window) == 2
    window.query()


@pytest.mark.parametrize("name", [n for n, a in BY_ORDER.items() if n in ("Mode", "Entropy")])
def test_what_cannot_be_hashed_has_no_categories(name: str) -> None:
    with pytest.raises(BadValue, match="cannot be hashed"):
        wr.windows.Recalc(AGGREGATES[name]).insert([1])


@pytest.mark.parametrize("name", BY_NUMBER)
@pytest.mark.parametrize(
    "value", ["5", b"5", timedelta(1), np.timedelta64(5, "s"), np.timedelta64(5, "ns"), [5], 1j]
)
def test_what_is_no_number_is_not_added(name: str, value: Any) -> None:
    window = wr.windows.TwoStacksLite(BY_NUMBER[name])
    with pytest.raises(BadValue):
        window.insert(value)
    assert len(window) == 0


def test_a_decimal_without_value_is_refused_by_name() -> None:
    with pytest.raises(BadValue, match="decimal NaN"):
        wr.windows.TwoStacksLite(wr.GeometricMean()).insert(Decimal("NaN"))


@pytest.mark.parametrize("missing", [pa.scalar(None), pa.scalar(None, pa.int64())], ids=repr)
def test_arrow_s_nothing_is_missing(missing: Any) -> None:
    for aggregate, answer in ((wr.Count("x"), 0), (wr.First(), None), (wr.Sum(), None)):
        window = wr.windows.TwoStacksLite(aggregate)
        window.insert(missing)
        assert window.query() == answer
