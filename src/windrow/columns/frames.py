"""The tables people have, in and out: each becomes Arrow columns, answers go back as it came."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns import as_of, engine
from windrow.columns.column import array_of, numbers_of, valid_of
from windrow.errors import BadSpecification, BadValue
from windrow.rolling import Rolling, window_columns

_NO_COLUMN = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
_FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"))
_WHOLE_IN_FLOATS = 1 << 53


def apply(spec: Rolling, table: Any) -> Any:
    """The table with its answers, in its own type."""
    if isinstance(table, pa.RecordBatch):
        result = apply(spec, pa.Table.from_batches([table])).combine_chunks()
        batches = result.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=result.schema)
    table = _collected(table)
    answers = engine.run(spec, as_arrow(spec, table))
    if spec.every is not None:
        return _made(table, answers)
    return _beside(table, answers, spec)


def as_of_frames(spec: Rolling, events: Any, labels: Any, on: Any, strict: bool) -> Any:
    """See ``Rolling.as_of``; the answer is of the labels' type."""
    as_of.refuse(spec)
    events, labels = _collected(events), _collected(labels)
    names = as_of.label_names(spec, on)
    as_of.check_labels(spec, names, _names_of(labels))
    hidden = {name for name, _, _ in spec.outputs}
    asked = _some(labels, dict.fromkeys(names.values()))
    known = _some(events, _needed(spec, [n for n in _names_of(events) if n not in hidden]))
    return _beside(labels, as_of.run(spec, known, asked, on, strict))


def explain(spec: Rolling, table: Any, count_combines: bool) -> str:
    """See ``Rolling.explain``."""
    from windrow.columns.explain import explain_columns

    return explain_columns(spec, as_arrow(spec, table), count_combines)


def whole_as_arrow(table: Any) -> pa.Table:
    """All columns of a table, as Arrow."""
    table = _collected(table)
    names = _names_of(table)
    return _some(table, list(table.columns) if _is(table, "pandas", "DataFrame") else names)


def as_arrow(spec: Rolling, table: Any) -> pa.Table:
    """The columns that the specification needs, as Arrow."""
    table = _collected(table)
    if _is(table, "pandas", "DataFrame"):
        _check_index(spec, table)
    return _some(table, _needed(spec, _names_of(table)))


def _check_index(spec: Rolling, frame: Any) -> None:
    """An index without a name is no column, though what is wanted often stands there."""
    if spec.time is None or spec.time in _names_of(frame):
        return
    if frame.index.names == [None] and frame.index.dtype.kind == "M":
        raise BadSpecification(
            f"there is no column {spec.time!r}, but the index of this DataFrame holds times: give "
            f"frame.reset_index(names={spec.time!r})"
        )


# --- in ------------------------------------------------------------------------------------------


def _is(table: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(table, getattr(loaded, name))


def _collected(table: Any) -> Any:
    """The table itself where its type is known; a table of Arrow's of what gives itself so."""
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if _is(table, "polars", "LazyFrame"):
        return table.collect()
    known = isinstance(table, pa.Table) or any(_is(table, *kind) for kind in _FRAMES)
    if known or hasattr(table, "to_frame") or not hasattr(table, "__arrow_c_stream__"):
        return table
    try:
        return pa.table(table)
    except (TypeError, ValueError) as error:  # one column, say
        raise _no_table(table, f"; what it gives to Arrow is none: {error}") from error


def _names_of(table: Any) -> list[str]:
    """The columns of a table; of a pandas frame also the levels of its index that have names."""
    if isinstance(table, pa.Table):
        return list(table.column_names)
    if _is(table, "pandas", "DataFrame"):
        columns = list(table.columns)
        return columns + [n for n in table.index.names if n is not None and n not in columns]
    if _is(table, "polars", "DataFrame"):
        return list(table.columns)
    if isinstance(table, Mapping):
        return list(table)
    more = ""
    if hasattr(table, "to_frame"):
        more = "; to_frame() makes one of it"
    elif isinstance(table, list):
        more = "; pyarrow.Table.from_pylist(...) makes one of rows"
    raise _no_table(table, more)


def _no_table(table: Any, more: str) -> BadSpecification:
    kind = f"{type(table).__module__}.{type(table).__name__}".removeprefix("builtins.")
    return BadSpecification(
        f"a {kind} is not a table windrow knows: use a pyarrow Table or RecordBatch, a pandas or "
        "Polars DataFrame, a dict of NumPy arrays, or anything that gives itself to Arrow, as a "
        f"DuckDB relation{more}"
    )


def _needed(spec: Rolling, names: list[str]) -> list[str]:
    spec.check_columns(names)
    used = {*spec.key, *spec.tie, spec.time}
    used |= {column for aggregate in spec.aggregates for column in aggregate.reads}
    for window in spec.windows.values():
        used |= {*window_columns(window)}
    return [name for name in names if name in used]


def _some(table: Any, names: Iterable[str]) -> pa.Table:
    """Some columns of a table that is no Spark table."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        size = _size(table)
        columns = {name: _array(name, table[name]) for name in names}
    elif _is(table, "pandas", "DataFrame"):
        size = len(table)
        columns = {name: _array(name, _series(table, name)) for name in names}
    else:
        size = table.height
        columns = {name: _array(name, table[name]) for name in names}
    return pa.table(columns or {"": pa.nulls(size)})


def _size(table: Mapping[str, Any]) -> int:
    for name, values in table.items():
        single = type(values) is str or not hasattr(values, "__len__")
        dimensions = 0 if single else getattr(values, "ndim", 1)
        if dimensions != 1:
            raise BadSpecification(f"column {name!r} has {dimensions} dimensions; a column has one")
    sizes = {name: len(values) for name, values in table.items()}
    if len(set(sizes.values())) > 1:
        raise BadSpecification(f"columns have different lengths: {sizes}")
    return next(iter(sizes.values()), 0)


def _series(frame: Any, name: str) -> Any:
    return frame[name] if name in frame.columns else frame.index.get_level_values(name).to_series()


def _array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if _is(values, "pandas", "Series"):
            return pa.array(values, from_pandas=True)
        if _is(values, "polars", "Series"):
            return values.to_arrow()
        return _of_numpy(name, values)
    except _NO_COLUMN as error:
        kind = getattr(values, "dtype", type(values).__name__)
        raise BadValue(
            f"column {name!r} ({kind}) cannot be taken: {error}. Convert it to one type that Arrow "
            "has"
        ) from error


def _of_numpy(name: str, values: Any) -> pa.Array:
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.asarray(values)
    if array.ndim != 1:
        raise BadSpecification(f"column {name!r} has {array.ndim} dimensions; a column has one")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        return array_of(array, mask)
    if array.dtype.kind in "mM":
        array = array.astype(_arrow_unit(array.dtype))
    return pa.array(array, mask=mask)


def _arrow_unit(kind: Any) -> Any:
    """The coarsest unit of times that Arrow has and that holds those of NumPy's."""
    unit, _ = np.datetime_data(kind)
    if kind.kind == "M" and unit in ("Y", "M", "W", "D"):
        unit = "D"
    elif unit in ("W", "D", "h", "m"):
        unit = "s"
    return np.dtype(f"{kind.kind}8[{unit}]")


# --- out -----------------------------------------------------------------------------------------


def _beside(table: Any, answers: dict[str, pa.Array], spec: Rolling | None = None) -> Any:
    """The table with answers as further columns."""
    if _is(table, "pandas", "DataFrame"):
        # all at once: assign() puts in one by one, and warns of every one from the hundredth on
        pandas = sys.modules["pandas"]
        made = pandas.DataFrame({n: _pandas(a).array for n, a in answers.items()}, table.index)
        if table.columns.nlevels > 1:
            below = ("",) * (table.columns.nlevels - 1)
            made.columns = pandas.MultiIndex.from_tuples([(name, *below) for name in answers])
        both = pandas.concat([table, made], axis=1)
        both.columns.names = table.columns.names
        return both.__finalize__(table, method="copy")
    if _is(table, "polars", "DataFrame"):
        return table.hstack(sys.modules["polars"].from_arrow(pa.table(answers)))
    if isinstance(table, Mapping):
        return {**table, **_made(table, answers)}
    for name, array in answers.items():
        table = table.append_column(name if spec is None else _field(spec, name, array), array)
    return table


def _made(table: Any, answers: dict[str, pa.Array]) -> Any:
    """Answers alone, as a table of the same type."""
    if _is(table, "pandas", "DataFrame"):
        pandas = sys.modules["pandas"]
        return pandas.DataFrame({name: _pandas(array) for name, array in answers.items()})
    if _is(table, "polars", "DataFrame"):
        return sys.modules["polars"].from_arrow(pa.table(answers))
    if isinstance(table, Mapping):
        return {name: _numpy(array) for name, array in answers.items()}
    return pa.table(answers)


def _field(spec: Rolling, name: str, array: pa.Array) -> pa.Field:
    """An answer's field, with what is known of it: the error bound, where it has one."""
    known = spec.metadata(name)
    texts = None if known is None else {key: str(value) for key, value in known.items()}
    return pa.field(name, array.type, metadata=texts)


def _pandas(array: pa.Array) -> Any:
    """As pandas has it: integers with missing ones are floats, unless these would change them."""
    if pa.types.is_integer(array.type) and array.null_count:
        ends = pc.min_max(array).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > _WHOLE_IN_FLOATS:
            pandas = sys.modules["pandas"]
            kind = pandas.UInt64Dtype() if pa.types.is_uint64(array.type) else pandas.Int64Dtype()
            return array.to_pandas(types_mapper=lambda _: kind)
    return array.to_pandas()


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
