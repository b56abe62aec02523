"""The first rows of the data, looked at before anything runs: what is likely to be a mistake."""

from typing import Any

import numpy as np

from windrow.errors import WindrowError
from windrow.pipeline.building import Pipeline
from windrow.pipeline.lines import Path
from windrow.pipeline.reading import Document
from windrow.pipeline.types import EPOCH_UNITS

_EARLY, _LATE = np.datetime64("1980-01-01", "us"), np.datetime64("2200-01-01", "us")
MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", "-", "?", "missing")
"""What people write where there is no value."""


def check_data(document: Document, pipeline: Pipeline, rows: int) -> Any:
    """The first rows, with what looks wrong noted; None where they cannot be read."""
    from windrow.pipeline.files import rows_of

    try:
        table = rows_of(pipeline.source, pipeline.columns, rows, pipeline.features.time)
    except WindrowError as error:
        column = next((n for n in pipeline.columns if f"column {n!r}" in str(error)), None)
        document.say(("source", "path") if column is None else ("columns", column), str(error))
        return None
    if pipeline.source.format == "csv" and len(table.column_names) == 1:
        signs = [sign for sign in (",", ";", "\t", "|") if sign in table.column_names[0]]
        if signs:
            document.say(
                ("source", "options", "sep"),
                f"there is one column, {table.column_names[0]!r}: another sign seems to separate "
                f"them, sep = {signs[0]!r}",
            )
            return None
    if not table.num_rows:
        document.say(
            ("source", "path"), "there are columns but no rows: answers will be empty", warning=True
        )
        return table
    _check_values(document, pipeline, table)
    _check_time(document, pipeline, table)
    return table


def _check_values(document: Document, pipeline: Pipeline, table: Any) -> None:
    """Columns of aggregates without any value, or with a word for a missing one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, aggregate in enumerate(pipeline.features.aggregates):
        path: Path = ("features", "aggregates", place)
        for name in aggregate.columns:
            if name not in table.column_names:
                continue
            column = table[name]
            if column.null_count == len(column):
                document.say(
                    path,
                    f"column {name!r} has no value in the first {len(column):,} rows: its answers "
                    "will be null. Is it the right column, and the right source.options.nullValue?",
                    warning=True,
                )
            elif pa.types.is_string(column.type) and pipeline.source.format == "csv":
                words = set(pc.unique(column).to_pylist()) & set(MISSING_WORDS)
                if words:
                    word = sorted(words)[0]
                    document.say(
                        path,
                        f"column {name!r} is read as text, for some rows hold {word!r}. If that "
                        f'means missing, say source.options.nullValue = "{word}"',
                        warning=not _numeric(aggregate),
                    )


def _numeric(aggregate: Any) -> bool:
    return "number" in aggregate.input_kinds or "positive" in aggregate.input_kinds


def _check_time(document: Document, pipeline: Pipeline, table: Any) -> None:
    """Times that are missing, or that lie where a wrong unit would put them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name = pipeline.features.time
    if name is None or name not in table.column_names:
        return
    column, path = table[name], ("features", "time")
    if column.null_count:
        document.say(
            path,
            f"column {name!r} has no time in {column.null_count:,} of the first {len(column):,} "
            "rows: drop or fill these rows first, for a row without a time has no window",
            warning=pipeline.streaming,  # where such rows are counted as late ones
        )
    if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
        return
    ends = pc.min_max(column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()))
    low, high = (np.datetime64(ends[end].as_py(), "us") for end in ("min", "max"))
    declared = pipeline.columns.get(name, "")
    if high >= _EARLY and low <= _LATE:
        return
    way = _other_unit(declared, up=bool(low > _LATE))
    days = (moment.astype("datetime64[D]") for moment in (low, high))
    document.say(path, f"times lie between {' and '.join(map(str, days))}{way}", warning=True)


def _other_unit(declared: str, up: bool) -> str:
    units = list(EPOCH_UNITS)
    if declared not in units:
        return ": is the column right, and the unit it was made from?"
    others = units[units.index(declared) + 1 :] if up else units[: units.index(declared)]
    if not others:
        return ": is the column right?"
    wanted = others[0] if up else others[-1]
    words = {
        "timestamp[s]": "seconds",
        "timestamp[ms]": "milliseconds",
        "timestamp[us]": "microseconds",
    }
    return f': does the column count {words[wanted]}? Then say "{wanted}" under [columns]'
