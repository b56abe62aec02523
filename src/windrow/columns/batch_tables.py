"""What ``stream()`` takes as a batch, as a table of Arrow."""

from typing import Any

import pyarrow as pa

from windrow.columns.column import plain_column
from windrow.errors import BadSpecification


def as_table(batch: Any) -> pa.Table:
    """A batch as a table: of Arrow, or what gives itself to Arrow (frames of pandas and Polars)."""
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    if hasattr(batch, "__arrow_c_stream__"):
        return pa.table(batch)
    raise BadSpecification(
        "stream() takes tables of Arrow, and what gives itself to Arrow as frames of pandas and "
        f"Polars do, not {type(batch).__name__}; of dicts make one with "
        "pyarrow.Table.from_pylist(rows, schema=...)"
    )


def without_views(table: pa.Table) -> pa.Table:
    """Without views, from which Arrow cannot choose rows: Polars' texts, say."""
    for place, field in enumerate(table.schema):
        kind = _plain(field.type)
        if kind == field.type:
            continue
        column = table.column(place)
        if pa.types.is_dictionary(field.type) or pa.types.is_run_end_encoded(field.type):
            if pa.types.is_dictionary(field.type):
                column = column.cast(pa.dictionary(pa.int64(), kind))
            column = pa.chunked_array([plain_column(column)])
        table = table.set_column(place, field.name, column.cast(kind))
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    if types.is_dictionary(kind) and _plain(kind.value_type) != kind.value_type:
        return _plain(kind.value_type)
    if types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        plain = _plain(kind.value_type)
        return kind if plain == kind.value_type else pa.large_list(plain)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind
