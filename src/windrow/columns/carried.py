"""The state of a stopped stream as rows, from which buckets of another begin.

    rows            rows of the log, and rows that wait
    window WINDOW   the last rows of every key, of a rows window
    total WINDOW    what a key's rows amount to, of a window that no row leaves
    after WINDOW    rows of the log that are not in these totals yet
    firing RULE     keys that a rule fires for
    last            the last values of the columns that conditions name

One column says which of these a row is, another its place in its cell: a cell's rows are in order,
and rows of equal time and key are always in one cell, so that order survives the way through Spark.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.columns.cells import decoded
from windrow.columns.column import array_of
from windrow.columns.stream_plan import Head

SOURCE = "__windrow_source"
PLACE = "__windrow_place"
ROWS = "rows"
LAST = "last"
_FIRING = "firing "
_TOTAL = "total "
_TOTAL_COLUMN = "__windrow_total_"

TEXT, PAIRS, LAST_VALUES = range(3)
"""The cells of rules: their text, pairs of rule and key that fire, the keys' last values."""
RULE = "__windrow_rule"


def is_carried(column: str) -> bool:
    """Whether a column is not one of the stream's."""
    return column in (SOURCE, PLACE) or column.startswith(_TOTAL_COLUMN)


def of_window(window: str) -> str:
    """What the last rows of a rows window are called."""
    return f"window {window}"


def after_total(window: str) -> str:
    """What rows are called that are not in a window's totals yet."""
    return f"after {window}"


@dataclass(frozen=True)
class Totals:
    """A window that no row leaves, and the columns that its totals have besides the key."""

    label: str
    window: str
    place: int
    kinds: dict[str, pa.DataType]

    @property
    def source(self) -> str:
        """What a row with totals is called: all that it takes to know its columns again."""
        return f"{_TOTAL}{json.dumps([self.window, self.place, list(self.kinds)])}"

    def fields(self) -> list[pa.Field]:
        """The columns, under names that no others have."""
        kinds = enumerate(self.kinds.values())
        return [pa.field(f"{_TOTAL_COLUMN}{self.place}_{i}", kind) for i, kind in kinds]


def totals_of(heads: Iterable[Head], cell: Callable[[Head, int], bytes]) -> list[Totals]:
    """The windows that have totals; ``cell`` reads one, to see its columns."""
    found: dict[str, Totals] = {}
    for head in heads:
        for label, sight in head.sights.items():
            if sight.totals.count and label not in found:
                schema = decoded(cell(head, sight.chunk(0)), f"totals of {label}").table.schema
                kinds = {f.name: f.type for f in schema if not f.name.startswith("key.")}
                window = head.contract["windows"][label]
                found[label] = Totals(label, window, len(found), kinds)
    return list(found.values())


def total_in(found: dict[str, pa.Table], window: str, key: Sequence[str]) -> pa.Table | None:
    """The totals of a window, with their own names of columns again."""
    for source, table in found.items():
        if source.startswith(_TOTAL):
            known, place, names = json.loads(source.removeprefix(_TOTAL))
            if known == window:
                own = {f"key.{i}": table[name] for i, name in enumerate(key)}
                columns = (table[f"{_TOTAL_COLUMN}{place}_{i}"] for i in range(len(names)))
                return pa.table(own | dict(zip(names, columns, strict=True)))
    return None


def taken_out(
    name: str,
    number: int,
    data: bytes,
    head: Head,
    wanted: pa.Schema,
    totals: Sequence[Totals] = (),
) -> pa.Table:
    """The rows of a cell, of the space of that name; none where they are folded, or there twice."""
    table = decoded(data, f"{name} {number}").table
    if totals:
        wanted = pa.schema([*wanted, *(field for one in totals for field in one.fields())])
    if name == "waiting" or (name == "log" and head.oldest <= number < head.next):
        if name == "waiting" and head.frontier is not None:
            times = table[head.contract["time"]].cast(pa.int64())
            table = table.filter(pa.compute.greater_equal(times, head.frontier))
        sources = [ROWS]
        if name == "log":
            behind = (one for one in totals if number >= head.sights[one.label].borders.e)
            sources += [after_total(one.window) for one in behind]
        return pa.concat_tables(
            _labelled(table, wanted, [source] * len(table)) for source in sources
        )
    for one in totals if name == "log" else ():
        if number in head.sights[one.label].chunks():
            return _totals(table, wanted, one, head.contract["key"])
    if name == "rules" and number == PAIRS:
        rules = [f"{_FIRING}{rule}" for rule in table[RULE].to_pylist()]
        return _labelled(table, wanted, rules)
    if name == "rules" and number == LAST_VALUES:
        return _labelled(table, wanted, [LAST] * len(table))
    for label, sight in head.sights.items():
        if name == "log" and sight.filled and number == sight.recent:
            found = of_window(head.contract["windows"][label])
            return _labelled(table, wanted, [found] * len(table))
    return _labelled(table.slice(0, 0), wanted, [])


def _totals(table: pa.Table, wanted: pa.Schema, one: Totals, key: list[str]) -> pa.Table:
    """Totals of keys, under the names that they travel by; an old cell may have more columns."""
    columns = {name: table[f"key.{i}"] for i, name in enumerate(key)}
    for name, field in zip(one.kinds, one.fields(), strict=True):
        known = name in table.column_names
        columns[field.name] = table[name] if known else pa.nulls(len(table), field.type)
    return _labelled(pa.table(columns), wanted, [one.source] * len(table))


def _labelled(table: pa.Table, wanted: pa.Schema, sources: list[str]) -> pa.Table:
    """With the columns of the stream, what the rows are, and their places."""
    size = table.num_rows
    arrays = [
        table[f.name].cast(f.type) if f.name in table.column_names else pa.nulls(size, f.type)
        for f in wanted
    ]
    arrays += [pa.array(sources, pa.string()), array_of(np.arange(size))]
    return pa.table(arrays, names=[*wanted.names, SOURCE, PLACE])


def parts(tables: Sequence[pa.Table]) -> dict[str, pa.Table]:
    """Rows by what they are, in order; rows of a table are just rows."""
    found = [table for table in tables if table.num_rows]
    if not found:
        return {}
    whole = pa.concat_tables(found)
    if SOURCE not in whole.column_names:
        return {ROWS: whole}
    whole = whole.sort_by(PLACE)
    return {
        name: whole.filter(pa.compute.equal(whole[SOURCE], name)).drop_columns([SOURCE, PLACE])
        for name in whole[SOURCE].unique().to_pylist()
    }


def firing(found: dict[str, pa.Table]) -> list[tuple[str, pa.Table]]:
    """Rules, and the keys that each fires for."""
    names = [name for name in found if name.startswith(_FIRING)]
    return [(name.removeprefix(_FIRING), found[name]) for name in names]
