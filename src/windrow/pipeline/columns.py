"""Columns and types before anything runs: each that is named must be there, and fit its use."""

from typing import Any

from windrow.aggregates import Count
from windrow.errors import WindrowError
from windrow.pipeline.building import IN_FILES, Pipeline
from windrow.pipeline.data import check_data
from windrow.pipeline.declaration import IN_PROCESS
from windrow.pipeline.ends import check_files, is_address
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import Document
from windrow.pipeline.taking_rules import columns_of
from windrow.pipeline.types import arrow_type
from windrow.rolling import Rolling, window_columns
from windrow.slides import rows as one_row

SPARK_FORMATS = (*IN_FILES, "kafka", "rate", "rate-micro-batch", "socket", "jdbc", "iceberg")


def schema_of(document: Document, pipeline: Pipeline, rows: int) -> Any:
    """The source's columns as an Arrow schema; None where only Spark can tell."""
    import pyarrow as pa

    from windrow.pipeline.files import other_options

    source, columns = pipeline.source, pipeline.columns
    if document.has_mistake(("source", "path"), ("source", "format"), ("source", "value")):
        return None
    declared = {name: arrow_type(kind) for name, kind in columns.items()}
    if source.format == "kafka":
        own = {} if source.value else _KAFKA
        if source.value and not columns:
            document.say(("source", "value"), "say the fields of the messages under [columns]")
            return None
        return pa.schema({**{n: arrow_type(k) for n, k in own.items()}, **declared})
    if source.format == "rate":
        return pa.schema({"timestamp": arrow_type("timestamp"), "value": pa.int64(), **declared})
    if source.format not in IN_PROCESS or any(is_address(path) for path in source.paths):
        if source.format not in SPARK_FORMATS and source.table is None and "." not in source.format:
            hint = did_you_mean(source.format, SPARK_FORMATS)
            if hint:
                document.say(("source", "format"), f"Spark has no format {source.format!r}{hint}")
        return None
    if pipeline.engine == "spark" and other_options(source):
        return None  # read in another way than here
    if not check_files(document, pipeline):
        return pa.schema(declared) if pipeline.streaming and columns else None
    table = check_data(document, pipeline, rows)
    if table is None:
        return None
    for name in columns:
        if name not in table.column_names:
            near = did_you_mean(name, table.column_names)
            near = near or f"; it has {', '.join(map(repr, table.column_names))}"
            document.say(("columns", name), f"the source has no such column{near}")
    return table.schema


_KAFKA = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
}


def check_columns(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """Every column that is named must be there."""
    names, spec = schema.names, pipeline.features
    given = document.data.get("features")
    if not isinstance(given, dict):
        return
    uses: list[tuple[str, Path]] = []
    for word in ("key", "tie", "time", "flush"):
        if word not in given or (word == "tie" and given[word] == "any"):
            continue
        many = isinstance(given[word], list)
        listed = given[word] if many else [given[word]]
        uses += [
            (name, ("features", word, *((i,) if many else ()))) for i, name in enumerate(listed)
        ]
    for place, one in enumerate(given.get("aggregates", [])):
        path: Path = ("features", "aggregates", place)
        if isinstance(one, dict):
            uses += [(one["column"], (*path, "column"))] if "column" in one else []
            several = one.get("columns", [])
            several = several if isinstance(several, list) else []
            uses += [(c, (*path, "columns", i)) for i, c in enumerate(several)]
            where = one.get("where", {})
            uses += [(c, (*path, "where")) for c in ([where] if isinstance(where, str) else where)]
    for place, one in enumerate(given.get("windows", [])):
        if isinstance(one, dict) and "bounds" in one:
            uses += [(c, ("features", "windows", place, "bounds")) for c in one["bounds"]]
        for word in ("of", "useful"):
            about = one.get(word) if isinstance(one, dict) else None
            for part in about if isinstance(about, list) else [about]:
                if isinstance(part, dict):
                    path = ("features", "windows", place, word)
                    uses += [(part["column"], (*path, "column"))] if "column" in part else []
                    uses += [(c, (*path, "columns")) for c in part.get("columns", [])]
        if isinstance(one, dict) and "at_most" in one:
            uses += [(one["at_most"], ("features", "windows", place, "at_most"))]
    for name, path in uses:
        if isinstance(name, str) and name not in names and not document.has_mistake(path):
            document.say(path, _no_column(name, names))
    for output, _, _ in spec.outputs:
        if output in names and spec.every is None:
            document.say(
                ("features",),
                f"the source has a column {output!r} already, which an answer would hide: "
                "rename the answer with alias = …",
            )
    if pipeline.streaming or document.has_mistake(("rules",)):
        return
    for rule, (path, where) in zip(pipeline.rules, pipeline.rule_places, strict=True):
        for name in columns_of(pipeline, rule):
            if name not in names:
                own = path if where else (*path, "when")
                document.say(own, where + _no_column(name, names))


def _no_column(name: str, names: list[str]) -> str:
    near = did_you_mean(name, names) or f"; the source has {', '.join(map(repr, names))}"
    return f"there is no column {name!r}{near}"


def check_types(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """Each window and each aggregate is tried by itself on a table without rows."""
    spec = pipeline.features
    empty = schema.empty_table()
    words: dict[str, Any] = {"time": spec.time, "unit": spec.unit}
    if spec.time is not None and spec.time not in schema.names:
        return
    windows, aggregates = list(spec.windows.items()), spec.aggregates
    given = document.data["features"]
    told = [len(given.get(word, ())) for word in ("windows", "aggregates")]
    if [len(windows), len(aggregates)] != told:
        return  # some are so wrong that the others have other places here than in the file
    for place, (label, window) in enumerate(windows):
        if all(column in schema.names for column in window_columns(window)):
            alone = Rolling(windows={label: window}, aggregates=[Count().alias("rows")], **words)
            if not _runs(document, ("features", "windows", place), alone, empty, schema):
                return  # the same mistake for all
    for place, aggregate in enumerate(aggregates):
        path: Path = ("features", "aggregates", place)
        known = all(column in schema.names for column in aggregate.reads)
        if known and not document.has_mistake(path):
            alone = Rolling(windows=[one_row(1)], aggregates=[aggregate])
            _runs(document, path, alone, empty, schema)


def _runs(document: Document, path: Path, spec: Rolling, empty: Any, schema: Any) -> bool:
    try:
        spec(empty)
    except WindrowError as error:
        message = str(error).removeprefix(f"{spec.aggregates[0]!r}: ")
        document.say(_place(path, message, spec), _in_toml(message, spec, schema))
        return False
    return True


def _place(path: Path, message: str, spec: Rolling) -> Path:
    return ("features", "time") if message.startswith(("time column", "times are")) else path


def _in_toml(message: str, spec: Rolling, schema: Any) -> str:
    """The library's sentence with the file's way out."""
    import pyarrow as pa

    if spec.time in schema.names and "times are integers" in message:
        return (
            f"column {spec.time!r} holds whole numbers, and the window has a unit: say what they "
            f'count under [columns], {spec.time} = "timestamp[s]" (or ms, us), or give the window '
            "as a whole number, { time = 3600 }"
        )
    if spec.time in schema.names and pa.types.is_string(schema.field(spec.time).type):
        return (
            f"column {spec.time!r} is read as text. Under [columns], say {spec.time} = "
            '"timestamp"; it must then look like 2013-01-31 17:05:00'
        )
    for column in spec.aggregates[0].columns:
        if pa.types.is_string(schema.field(column).type) and "Cast it" in message:
            return message.replace(
                "Cast it to a number", f'Say {column} = "double" under [columns]'
            )
    return message
