"""The adversarial corpus: rows that have broken sliding windows before.

Every case is a run of values for one input kind. Cases for pairs of inputs are made by pairing a
case with row numbers. Tests run all of them against every aggregate, algorithm and engine.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from windrow.aggregates import Aggregate

_INF = float("inf")
_NAN = float("nan")


@dataclass(frozen=True)
class Case:
    """A named run of values; ``kind`` is the input kind they are for."""

    name: str
    kind: str
    values: tuple[Any, ...]


def _case(name: str, kind: str, *values: Any) -> Case:
    return Case(name, kind, values)


CASES: tuple[Case, ...] = (
    _case("nothing", "number"),
    _case("one row", "number", 1.5),
    _case("all missing", "number", None, None, None),
    _case("missing between", "number", None, 1.0, None, 2.0, None, None, 3.0),
    _case("zeros and identities", "number", 0, 0.0, -0.0, 0, 1, -1, 0),
    _case("negative zero alone", "number", -0.0, -0.0, 1.0, -0.0),
    _case("outlier 1e15", "number", 1.1, 1e15, 1.3, 1.7, 0.1, 0.2, 0.3),
    _case("outlier 1e18", "number", 0.1, 0.2, -1e18, 0.3, 0.4, 0.5),
    _case("massive cancellation", "number", 1e20, 1.0, 1e-20, -1e20, -1.0),
    _case("sum overflows and recovers", "number", 1.7e308, 1.7e308, -1.7e308, 1.0, 2.0),
    _case("offset 1e8", "number", 1e8 + 0.25, 1e8 + 0.5, 1e8 + 0.75, 1e8 + 1.25),
    _case("subnormals", "number", 5e-324, 1e-310, -5e-324, 2.2250738585072014e-308),
    _case("20 decades", "number", 1e-10, 1e10, -1e5, 1e-5, 3.3e9, -1e10, 7e-10),
    _case("NaN in and out", "number", 1.0, _NAN, 2.0, 3.0, _NAN, _NAN, 4.0),
    _case("infinities in and out", "number", 1.0, _INF, 2.0, -_INF, 3.0, _INF, -_INF, 4.0),
    _case("all odd values", "number", _NAN, _INF, -_INF, None, 0.0, 1.0, 1e308, 1e308),
    _case("near 2**54", "number", 2**54, 1, 2**54 + 1, -(2**54), 3),
    _case("int64 edges", "number", 2**63 - 1, -(2**63), 2**63 - 1, -1, -(2**63), 1),
    _case("integers with floats", "number", 1, 0.5, 2, True, 0.25, False),
    _case("decimals", "number", Decimal("0.1"), Decimal("0.20"), Decimal("-3.005"), Decimal(10)),
    _case("falling", "number", *range(9, 0, -1)),
    _case("all equal", "number", 2, 2, 2, 2, 2),
    _case("the paper's trace", "number", 4, 5, 3, 4, 0, 4, 4, 2, 6),
    _case("positive decades", "positive", 1e-300, 1e300, 2.0, 1.0, 3, 5e-324, 1.7e308),
    _case("positive and zero", "positive", 4.0, 0.0, 2.0, 8.0, 1.0),
    _case("bits", "integer", 6, 3, None, -1, 0, 2**63 - 1, -(2**63), 5, 5, 1),
    _case("booleans", "boolean", True, True, False, None, True, True, None, False),
    _case("strings", "orderable", "b", "a", "", "ä", "a", None, "z"),
    _case("bytes", "orderable", b"b", b"a", b"", b"\xff", b"a"),
    _case("dates", "orderable", date(2024, 2, 29), date(1970, 1, 1), date(9999, 12, 31)),
    _case(
        "zones",
        "orderable",
        datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
        datetime(2024, 3, 31, 2, 0, tzinfo=timezone(timedelta(hours=2))),
        datetime(2024, 3, 30, 23, 59, tzinfo=UTC),
    ),
    _case("texts", "string", "a", "", "bc", None, "d", "éß", "e"),
    _case("byte strings", "bytes", b"a", b"", b"\x00", None, b"bc"),
)


@dataclass(frozen=True)
class TimedCase:
    """Rows as (key, time, value), in order of arrival, with the lateness they are for."""

    name: str
    rows: tuple[tuple[Any, int, float | None], ...]
    lateness: int = 0


TIMED_CASES: tuple[TimedCase, ...] = (
    TimedCase("no rows", ()),
    TimedCase("all at one time", tuple(("a", 5, float(x)) for x in range(6))),
    TimedCase(
        "ties at every border", tuple(("a", t, float(t)) for t in (0, 0, 10, 10, 10, 20, 20))
    ),
    TimedCase(
        "a gap longer than any window", (("a", 0, 1.0), ("a", 10**12, 2.0), ("a", 10**12, 3.0))
    ),
    TimedCase(
        "a key without values, and one that is missing",
        (("a", 1, None), ("b", 1, 2.0), (None, 2, 3.0), ("a", 3, None), (None, 4, 5.0)),
    ),
    TimedCase("negative times", (("a", -(10**9), 1.0), ("a", -1, 2.0), ("a", 0, 3.0))),
    TimedCase("disorder within the lateness", (("a", 5, 1.0), ("a", 3, 2.0), ("a", 9, 3.0)), 10),
    TimedCase("wholly late", (("a", 100, 1.0), ("a", 200, 2.0), ("a", 1, 3.0), ("a", 2, 4.0)), 10),
)
"""Rows in time: ties, gaps, empty keys, disorder and rows that come too late."""

_ACCEPTS = {
    "number": ("number", "positive"),
    "positive": ("positive", "number"),
    "orderable": ("number", "positive", "orderable"),
    "integer": ("integer",),
    "boolean": ("boolean",),
    "string": ("string",),
    "bytes": ("bytes",),
    "text": ("string", "bytes"),
    "any": ("number", "positive", "integer", "boolean", "orderable", "string", "bytes"),
}


def choosy_input(kinds: tuple[str, ...]) -> int:
    """The place of the last input that does not take anything, which cases are about."""
    return max((i for i, kind in enumerate(kinds) if kind != "any"), default=len(kinds) - 1)


def cases(aggregate: Aggregate) -> list[Case]:
    """The cases for an aggregate; with several inputs, rows are tuples."""
    kinds = aggregate.input_kinds or ("any",)
    place = choosy_input(kinds)
    chosen = [case for case in CASES if case.kind in _ACCEPTS[kinds[place]]]
    if len(kinds) == 1:
        return chosen
    if set(kinds) == {"number"}:
        return [
            Case(f"{case.name}, {name}", case.kind, rows)
            for case in chosen
            for name, rows in (
                ("as both", tuple(zip(case.values, case.values[::-1], strict=True))),
                ("with its place", tuple((value, i) for i, value in enumerate(case.values))),
            )
        ]
    return [
        Case(
            case.name,
            case.kind,
            tuple(
                (*[f"row {i}"] * place, value, *[f"row {i}"] * (len(kinds) - 1 - place))
                for i, value in enumerate(case.values)
            ),
        )
        for case in chosen
    ]
