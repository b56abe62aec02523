"""Rules over a batch: what started and stopped firing, for which key, and when."""

from typing import Any

import pyarrow as pa

from windrow.pipeline.building import Pipeline


def change_schema(pipeline: Pipeline, schema: pa.Schema) -> pa.Schema:
    """The columns of what rules tell."""
    spec = pipeline.features
    moment = [] if spec.time is None else [pa.field(spec.time, schema.field(spec.time).type)]
    key = pa.field(spec.key[0], schema.field(spec.key[0]).type)
    return pa.schema([pa.field("rule", pa.string()), key, pa.field("started", pa.bool_()), *moment])


def changes(pipeline: Pipeline, table: pa.Table, until: Any = None) -> pa.Table:
    """What the rules tell of a table, in order of time.

    A key's rules look at its rows only, so keys may be told of one by one; time passes up to
    ``until``, the latest time of all keys, by which rows leave the windows of silent ones.
    """
    spec, rules = pipeline.features, pipeline.watching()
    out = change_schema(pipeline, table.schema)
    needed = dict.fromkeys([spec.key[0], *([spec.time] if spec.time else []), *rules.columns])
    rows = table.select(list(needed))
    if spec.time is not None:
        order = [(spec.time, "ascending")]
        order += [(name, "ascending") for name in spec.tie if name in table.column_names]
        rows = table.sort_by(order).select(list(needed))
    told = rules.insert_many(rows)
    if spec.time is not None and rows.num_rows:
        last = rows[spec.time][-1].as_py() if until is None else until
        told += rules.advance(last)
    columns = [
        [change.rule for change in told],
        [change.key for change in told],
        [change.started for change in told],
        *([[change.at for change in told]] if spec.time is not None else []),
    ]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, out, strict=True)],
        schema=out,
    )
