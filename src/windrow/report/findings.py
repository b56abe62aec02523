"""What is odd about the data, how much of it, an example, and what it means for the answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from windrow.looks.facts import ColumnFacts, DataFacts, Example, OrderFacts
from windrow.rolling import Rolling

_FEW_ROWS = 5
"""Rows in a stretch on average, below which an empty one says nothing."""


@dataclass(frozen=True)
class Finding:
    """One odd thing."""

    check: str
    what: str
    count: int | None
    of: int | None
    example: str
    meaning: str
    serious: bool = False
    """Whether answers are likely to be other than expected."""

    @property
    def share(self) -> float | None:
        """Of all that was looked at."""
        return None if self.count is None or not self.of else self.count / self.of


CHECKS = {
    "empty": "an empty input",
    "nulls": "nulls",
    "nans": "NaN",
    "infinities": "infinite values",
    "constant": "constant columns",
    "equal": "equal times within a key",
    "disordered": "rows out of order",
    "pauses": "pauses longer than a window",
    "silence": "stretches of time without any row",
    "late": "late rows",
    "timeless": "rows without a time",
    "overflows": "overflows",
    "waiting": "rows that still wait",
}


@dataclass
class Findings:
    """All that was found, what was looked for and not found, and what was not looked for."""

    found: list[Finding]
    clean: list[str]
    unchecked: list[str]


def findings(
    spec: Rolling, data: DataFacts | None, batches: list[dict[str, Any]] | None
) -> Findings:
    """Everything odd, the serious first."""
    found: list[Finding] = []
    looked: set[str] = set()
    unchecked: list[str] = []
    if data is not None:
        looked |= {"empty", "nulls", "nans", "infinities", "constant"}
        found += _of_columns(spec, data)
        if data.order is None and data.axis is not None:
            unchecked.append("how rows follow each other: the table is large and has no key")
        if data.order is not None and data.order.rows:
            looked.add("equal")
            found += _of_order(spec, data, data.order)
            looked |= {"pauses"} if data.order.pauses else set()
            if data.order.disordered is None:
                unchecked.append("rows out of order: tables of Spark have no order of rows")
            else:
                looked.add("disordered")
        if data.rows >= _FEW_ROWS * len(data.stretches) > 0 and data.first != data.last:
            looked.add("silence")
            found += _silence(data)
    else:
        unchecked.append("the input: its rows are not among the answers, and were not read again")
    if batches is not None:
        looked |= {"late", "timeless", "overflows", "waiting"}
        found += _of_batches(batches)
    names = {finding.check for finding in found}
    clean = [CHECKS[check] for check in CHECKS if check in looked and check not in names]
    return Findings(sorted(found, key=lambda f: not f.serious), clean, unchecked)


def _of_columns(spec: Rolling, data: DataFacts) -> Iterator[Finding]:
    if not data.rows:
        yield Finding(
            "empty",
            "There are no rows",
            0,
            None,
            "",
            "The input has columns but no rows, so there are no answers. Is it the right file, and "
            "was it written when this ran?",
            True,
        )
        return
    for column in data.columns:
        if column.nulls:
            yield _nulls(column, data)
        for check, word, meaning in _odd_values(spec, column):
            count = getattr(column, check)
            if count:
                example = _text(column.examples.get(check))
                what = f"{column.name} is {word}"
                yield Finding(check, what, count, data.rows, example, meaning)
        if column.constant is not None:
            yield _constant(column, data)


def _nulls(column: ColumnFacts, data: DataFacts) -> Finding:
    whole = column.nulls == data.rows
    meaning = {
        "key": "Null is a key of its own: all these rows share one window.",
        "time": "A row without a time is in no window, and has no answer.",
        "tie": "Among rows of equal time, those come first.",
        "value": "Skipped, as in SQL: a window with nothing but nulls answers null, and counts 0.",
    }[column.role]
    if whole and column.role == "value":
        meaning = (
            "There is no value at all, so every answer about it is null. Is it the right column?"
        )
    what = f"{column.name} is null" + (" in every row" if whole else "")
    example = _text(column.examples.get("nulls"))
    serious = whole or column.role in ("key", "time")
    return Finding("nulls", what, column.nulls, data.rows, example, meaning, serious)


def _odd_values(spec: Rolling, column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    users = [a for a in spec.aggregates if column.name in a.columns]
    if column.role == "key":
        yield "nans", "NaN", "NaN is a key of its own: all these rows share one window."
        yield "infinities", "infinite", "Infinite is a key of its own."
        return
    if any(aggregate.nan == "value" for aggregate in users):
        nan = (
            "NaN counts as a value: sums and means are NaN while it is in the window, and it is "
            'larger than every number for min, max and quantiles. nan = "missing" skips it.'
        )
    else:
        nan = "Skipped like null, as the specification says."
    yield "nans", "NaN", nan
    yield (
        "infinities",
        "infinite",
        "Sums and means are infinite, or NaN, while such a row is in the window, and only then.",
    )


def _constant(column: ColumnFacts, data: DataFacts) -> Finding:
    meaning = {
        "key": "There is one key: every row is in the same windows.",
        "time": "All rows have one time: they are all in each other's windows.",
        "tie": "It does not order rows of equal time.",
        "value": "Its means, minima and maxima are all this value, and its variance is 0.",
    }[column.role]
    what = f"{column.name} is always {column.constant}"
    count = data.rows - column.nulls
    return Finding("constant", what, count, data.rows, "", meaning, column.role == "time")


def _of_order(spec: Rolling, data: DataFacts, order: OrderFacts) -> Iterator[Finding]:
    part = "" if order.share_of_keys == 1 else f" (of {order.share_of_keys:.2%} of the keys)"
    if order.equal:
        if spec.tie:
            rest = f"windows of rows follow {', '.join(spec.tie)}."
        else:
            rest = "windows of rows take them in the order in which they come, or need tie."
        yield Finding(
            "equal",
            f"Rows have the key and time of another{part}",
            order.equal,
            order.rows,
            _text(order.examples.get("equal")),
            f"They are in each other's time windows, and get the same answers; {rest} "
            "Rows that are there twice count twice.",
        )
    if order.disordered:
        yield Finding(
            "disordered",
            "Rows come after a later one of their key",
            order.disordered,
            order.rows,
            _text(order.examples.get("disordered")),
            "A table is sorted first, so answers are right. A stream would need a lateness that "
            "covers this.",
        )
    pauses = {label: count for label, count in order.pauses.items() if count}
    if pauses:
        shown = ", ".join(f"{label} {count:,}" for label, count in pauses.items())
        longest = f"longest {order.longest}, up to {_text(order.examples.get('longest'))}"
        yield Finding(
            "pauses",
            f"Pauses longer than a window{part}: {shown}",
            max(pauses.values()),
            order.rows,
            longest,
            "After such a pause a window begins anew, with this row. Its line is broken there.",
        )


def _silence(data: DataFacts) -> Iterator[Finding]:
    assert data.axis is not None
    empty = data.stretches.count(0)
    if empty:
        step = (data.last - data.first) / len(data.stretches)
        first = data.stretches.index(0)
        yield Finding(
            "silence",
            f"Stretches of {data.axis.span(step)} without a row of any key",
            empty,
            len(data.stretches),
            f"from {data.axis.shown(type(data.first)(data.first + first * step))}",
            "Nothing happened, or rows are missing: windows shrink there though the world went on.",
            empty > len(data.stretches) / 10,
        )


def _of_batches(batches: list[dict[str, Any]]) -> Iterator[Finding]:
    rows = sum(batch["rows"] for batch in batches)
    meanings = {
        "late_rows": (
            "late",
            "Late rows",
            "They came later than others by more than the lateness and are in no window. A larger "
            "lateness would keep them; answers would wait longer.",
        ),
        "rows_without_time": (
            "timeless",
            "Rows without a time",
            "They are in no window and have no answer. Messages that cannot be read have no time.",
        ),
        "overflows": (
            "overflows",
            "Answers too large for their type",
            "They are null instead of wrong.",
        ),
    }
    for name, (check, what, meaning) in meanings.items():
        count = sum(batch[name] for batch in batches)
        if count:
            worst = max(batches, key=lambda batch: batch[name])
            example = f"batch {worst['batch']} has {worst[name]:,}"
            yield Finding(check, what, count, rows, example, meaning, True)
    waiting = batches[-1]["waiting_rows"] if batches else 0
    if waiting:
        yield Finding(
            "waiting",
            "Rows still waited at the end",
            waiting,
            rows,
            f"frontier {batches[-1]['frontier']}",
            "They have no answer yet: it comes when rows follow that are later by the lateness.",
        )


def _text(example: Example | None) -> str:
    return "" if example is None else str(example)
