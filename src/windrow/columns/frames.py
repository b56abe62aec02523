"""The tables people have, in and out: each becomes Arrow columns, answers go back as it came."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns import as_of, engine
from windrow.columns.column import array_of, numbers_of, valid_of
from windrow.errors import BadSpecification, BadValue
from windrow.rolling import Rolling, window_columns


def apply(spec: Rolling, table: Any) -> Any:
    """The table with its answers, in its own type."""
    if isinstance(table, pa.RecordBatch):
        result = apply(spec, pa.Table.from_batches([table])).combine_chunks()
        batches = result.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=result.schema)
    if isinstance(table, pa.Table):
        answers = engine.run(spec, table)
        if spec.every is not None:
            return pa.table(answers)
        for name, array in answers.items():
            table = table.append_column(_field(spec, name, array), array)
        return table
    if _is(table, "pandas", "DataFrame"):
        return _pandas(spec, table)
    if _is(table, "polars", "LazyFrame"):
        return apply(spec, table.collect())
    if _is(table, "polars", "DataFrame"):
        polars = sys.modules["polars"]
        answers = engine.run(spec, table.select(_needed(spec, table.columns)).to_arrow())
        made = polars.from_arrow(pa.table(answers))
        return made if spec.every is not None else table.hstack(made)
    if isinstance(table, Mapping):
        return _arrays(spec, table)
    raise _unknown(table)


def _field(spec: Rolling, name: str, array: pa.Array) -> pa.Field:
    """An answer's field, with what is known of it: the error bound, where it has one."""
    known = spec.metadata(name)
    texts = None if known is None else {key: str(value) for key, value in known.items()}
    return pa.field(name, array.type, metadata=texts)


def as_of_frames(spec: Rolling, events: Any, labels: Any, on: Any, strict: bool) -> Any:
    """See ``Rolling.as_of``; the answer is of the labels' type."""
    answers = as_of.run(spec, as_arrow(spec, events), whole_as_arrow(labels), on, strict)
    if _is(labels, "pandas", "DataFrame"):
        return labels.assign(
            **{n: a.to_pandas().set_axis(labels.index) for n, a in answers.items()}
        )
    if _is(labels, "polars", "DataFrame"):
        return labels.hstack(sys.modules["polars"].from_arrow(pa.table(answers)))
    if isinstance(labels, Mapping):
        return {**labels, **{name: _numpy(array) for name, array in answers.items()}}
    table = whole_as_arrow(labels)
    for name, array in answers.items():
        table = table.append_column(name, array)
    return table


def whole_as_arrow(table: Any) -> pa.Table:
    """All columns of a table, as Arrow."""
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    if _is(table, "pandas", "DataFrame"):
        return pa.table({n: _from_pandas(n, table[n]) for n in table.columns})
    if _is(table, "polars", "DataFrame"):
        return table.to_arrow()
    if isinstance(table, Mapping):
        return pa.table({name: _array(name, x) for name, x in table.items()})
    raise _unknown(table)


def _unknown(table: Any) -> BadSpecification:
    kind = f"{type(table).__module__}.{type(table).__name__}".removeprefix("builtins.")
    return BadSpecification(
        f"a {kind} is not a table windrow knows: use a pyarrow Table or RecordBatch, a pandas or "
        "Polars DataFrame, or a dict of NumPy arrays"
    )


def as_arrow(spec: Rolling, table: Any) -> pa.Table:
    """Just the columns the specification needs, as Arrow."""
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    if _is(table, "pandas", "DataFrame"):
        _check_index(spec, table)
        names = _needed(spec, list(table.columns))
        return pa.table({name: _from_pandas(name, table[name]) for name in names})
    if _is(table, "polars", "LazyFrame"):
        table = table.collect()
    if _is(table, "polars", "DataFrame"):
        arrow: pa.Table = table.select(_needed(spec, table.columns)).to_arrow()
        return arrow
    return pa.table({name: _array(name, x) for name, x in table.items()})


def _is(table: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(table, getattr(loaded, name))


def _needed(spec: Rolling, names: list[str]) -> list[str]:
    spec.check_columns(names)
    used = {*spec.key, *spec.tie, spec.time}
    used |= {column for aggregate in spec.aggregates for column in aggregate.columns}
    for window in spec.windows.values():
        used |= {*window_columns(window)}
    return [name for name in names if name in used] or names[:1]


def _pandas(spec: Rolling, frame: Any) -> Any:
    pandas = sys.modules["pandas"]
    answers = engine.run(spec, as_arrow(spec, frame))
    if spec.every is not None:
        return pandas.DataFrame({name: array.to_pandas() for name, array in answers.items()})
    made = {name: array.to_pandas().set_axis(frame.index) for name, array in answers.items()}
    return frame.assign(**made)


def _from_pandas(name: str, column: Any) -> Any:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadValue(
            f"column {name!r} has values of several types: {error}. Convert it first, with "
            "pandas.to_numeric or .astype(str), say"
        ) from error


def _check_index(spec: Rolling, frame: Any) -> None:
    """The index is no column, though what is wanted often stands there."""
    for name in (spec.time, *spec.key):
        if name is None or name in frame.columns:
            continue
        if name in frame.index.names:
            raise BadSpecification(
                f"{name!r} is the index of this DataFrame, not a column: give frame.reset_index()"
            )
        if name == spec.time and frame.index.names == [None] and frame.index.dtype.kind == "M":
            raise BadSpecification(
                f"there is no column {name!r}, but the index of this DataFrame holds times: give "
                f"frame.reset_index(names={name!r})"
            )


def _array(name: str, values: Any) -> pa.Array:
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.asarray(values)
    if array.ndim != 1:
        raise BadSpecification(f"column {name!r} has {array.ndim} dimensions; a column has one")
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative:
        return array_of(array, mask)
    return pa.array(array, mask=mask)


def _arrays(spec: Rolling, table: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: _array(name, values) for name, values in table.items()}
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise BadSpecification(f"columns have different lengths: {sizes}")
    answers = engine.run(spec, pa.table(columns))
    made = {name: _numpy(array) for name, array in answers.items()}
    return made if spec.every is not None else {**table, **made}


def _numpy(array: pa.Array) -> Any:
    """NumPy with NaN for null floats, a masked array for other nulls."""
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return array.to_numpy(zero_copy_only=False)
    numbers, valid = numbers_of(array), valid_of(array)
    if valid is None:
        return numbers
    if pa.types.is_floating(kind):
        return np.where(valid, numbers, np.nan)
    return np.ma.MaskedArray(np.where(valid, numbers, numbers.dtype.type(0)), mask=~valid)


def explain(spec: Rolling, table: Any, count_combines: bool) -> str:
    """See ``Rolling.explain``."""
    from windrow.columns.explain import explain_columns

    return explain_columns(spec, as_arrow(spec, table), count_combines)
