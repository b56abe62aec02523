"""The state of a stopped stream as rows, from which buckets of another begin.

    rows            rows of the log, and rows that wait
    window WINDOW   the last rows of every key, of a rows window
    firing RULE     keys that a rule fires for
    last            the last values of the columns that conditions name

One column says which of these a row is, another its place in its cell: a cell's rows are in order,
and rows of equal time and key are always in one cell, so that order survives the way through Spark.
"""

from collections.abc import Sequence

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

TEXT, PAIRS, LAST_VALUES = range(3)
"""The cells of rules: their text, pairs of rule and key that fire, the keys' last values."""
RULE = "__windrow_rule"


def of_window(window: str) -> str:
    """What the last rows of a rows window are called."""
    return f"window {window}"


def taken_out(name: str, number: int, data: bytes, head: Head, wanted: pa.Schema) -> pa.Table:
    """The rows of a cell, of the space of that name; none where they are folded, or there twice."""
    table = decoded(data, f"{name} {number}").table
    if name == "waiting" or (name == "log" and head.oldest <= number < head.next):
        if name == "waiting" and head.frontier is not None:
            times = table[head.contract["time"]].cast(pa.int64())
            table = table.filter(pa.compute.greater_equal(times, head.frontier))
        return _labelled(table, wanted, [ROWS] * len(table))
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
