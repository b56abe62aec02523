"""What a pipeline file may hold: one declaration, for ``--check`` and for the JSON schema."""

import functools
import inspect
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from windrow.aggregates import REGISTRY, SEQUENTIAL, Aggregate
from windrow.aggregates.other_names import meant
from windrow.pipeline.kinds import Either, Key, Kind, Listing, Number, Table, Text, Truth, Whole
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import Problem
from windrow.pipeline.types import TypeName
from windrow.rolling import COLUMN_ALGORITHMS

MODES = ("batch", "stream", "stream-available-now")
AGGREGATES = REGISTRY | SEQUENTIAL
"""What ``Rolling`` runs, by name."""
IN_PROCESS = ("csv", "json", "parquet")
"""Formats that are read and written without Spark."""

NAME = Text(says="the name of a column, in quotes")
NAMES = Either((NAME, Listing(NAME, least=1)))
LENGTH = Either((Text(examples=("1h", "7d"), says='a length of time such as "1h"'), Whole(1)))
SHIFT = Either((Text(examples=("10m",), says='a length of time such as "10m"'), Whole(0)))
SCALAR = Either((Text(), Truth(), Number()))
OPTIONS = Table(others=Either((Text(blank=True), Truth(), Number())), says="a table of options")


def options_of(kind: type[Aggregate]) -> dict[str, Kind]:
    """The options that an aggregate takes, read off its constructors."""
    found: dict[str, Kind] = {}
    for cls in kind.__mro__:
        body = cls.__dict__.get("__init__")
        if body is None or cls is object:
            continue
        parameters = inspect.signature(body).parameters.values()
        hints = typing.get_type_hints(body)
        for parameter in parameters:
            if parameter.kind is parameter.KEYWORD_ONLY:
                found.setdefault(parameter.name, _option(hints.get(parameter.name)))
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found


def _option(hint: Any) -> Kind:
    if get_origin(hint) in (typing.Union, types.UnionType):
        parts = [_option(part) for part in get_args(hint) if part is not type(None)]
        return functools.reduce(_either, parts)
    if get_origin(hint) is Literal and all(isinstance(v, str) for v in get_args(hint)):
        return Text(get_args(hint))
    plain: dict[Any, Kind] = {str: Text(), bool: Truth(), int: Whole(), float: Number()}
    return plain.get(hint, SCALAR)


_SOME_ROWS = 'a table such as { status = "failed" } or { status = ["failed", "refused"] }'
_WINDOW_NAME = Text(examples=("7d",), says='the name of a window, such as "7d" or "100rows"')
_COMMON = {
    "column": Key(NAME, "the column it is about"),
    "columns": Key(Listing(NAME, 1), "the columns it is about, where there are several"),
    "where": Key(
        Either((NAME, Table(others=Either((SCALAR, Listing(SCALAR, 1))), says=_SOME_ROWS))),
        "which rows count: a boolean column, or columns with the values that count",
    ),
    "over": Key(
        Either((_WINDOW_NAME, Listing(_WINDOW_NAME, 1))),
        "the windows that it is computed over, by name, instead of all",
    ),
    "alias": Key(Text(), "the beginning of its answers' names, instead of column and aggregate"),
}
_OWN = Table(
    {
        "aggregate": Key(
            Text(pattern=".+:.+", examples=("my_module:GeoMean",)),
            "a class of yours, module:Class; the module may lie beside this file",
            required=True,
        ),
        **_COMMON,
    },
    others=SCALAR,
)


@dataclass(frozen=True)
class AggregateTable:
    """An aggregate of windrow's with its options, or a class of the user's with any options."""

    says: str = 'a table such as { aggregate = "Mean", column = "amount" }'

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, dict)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        named = value.get("aggregate")
        if isinstance(named, str) and ":" in named:
            yield from _OWN.problems(value, path)
            return
        options = options_of(AGGREGATES[named]) if named in AGGREGATES else _all_options()
        yield from _built_in(options).problems(value, path)
        if "column" in value and "columns" in value:
            yield Problem(path, "give column or columns, not both")

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        return {"anyOf": [_built_in(_all_options()).schema(), _OWN.schema()]}


def _built_in(options: dict[str, Kind]) -> Table:
    keys = {name: Key(kind, _DOCS.get(name, "an option")) for name, kind in options.items()}
    named = Key(
        Text(tuple(AGGREGATES), meant=meant), "which one (see docs/aggregates.md)", required=True
    )
    return Table({"aggregate": named, **_COMMON, **keys})


AGGREGATE = Table(
    {
        "aggregate": Key(
            Text(examples=("Mean",)),
            "windrow's by name, or a class of yours, module:Class",
            required=True,
        ),
        **_COMMON,
    }
)
"""What every aggregate can be told, besides its options; for the page about keys."""


_DOCS = {
    "nan": "whether NaN is a value, or missing",
    "overflow": "what happens where a sum of integers is too large",
    "phi": "which quantile: 0.95 is the 95th percentile",
    "method": "how values are interpolated, or ranks counted",
    "ddof": "1 for samples, 0 for whole populations",
    "pct": "ranks as shares of the window",
    "values": "the distinct values themselves, instead of how many",
    "most": "at most so many values, the most frequent ones",
    "separator": "what stands between texts",
    "epsilon": "approximate: the error, as a share of the largest possible answer",
    "maximum": "approximate: the largest value, or what all rows of a tick come to at most",
    "tick": "approximate: into which lengths time is cut, in windows of time",
    "clamp": "approximate: take a value out of range as the nearest, instead of an error",
}


@functools.cache
def _all_options() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for kind in AGGREGATES.values():
        for name, option in options_of(kind).items():
            found[name] = _either(found.get(name, option), option)
    return found


def _either(a: Kind, b: Kind) -> Kind:
    if a == b:
        return a
    if isinstance(a, Text) and isinstance(b, Text) and a.choices and b.choices:
        return Text(tuple(dict.fromkeys((*a.choices, *b.choices))))
    return SCALAR


_CUT = Table(
    {
        "time": Key(LENGTH, "the last so much time"),
        "rows": Key(Whole(1), "the last so many rows"),
        "session": Key(LENGTH, "the rows since the last pause longer than this"),
    },
    exactly_one=("time", "rows", "session"),
    says="a table such as { rows = 100 }",
)
WINDOW = Table(
    {
        "time": Key(LENGTH, "the last so much time: (t − length, t]"),
        "rows": Key(Whole(1), "the last so many rows"),
        "session": Key(LENGTH, "the rows since the last pause longer than this"),
        "bounds": Key(
            Listing(NAME, 2, 2), "two columns with the times that the window begins and ends at"
        ),
        "at_most": Key(
            Either((Number(), Text(says="the name of a column that has the limit"))),
            "the newest rows over which the aggregate `of` is at most this (not on streams)",
        ),
        "useful": Key(
            AggregateTable(),
            "the rows that can still matter for this aggregate: Max, Min, ... (not on streams)",
        ),
        "policy": Key(
            Text(pattern=".+:.+", examples=("my_module:too_old",)),
            "a function of yours, module:function, of the answers of `of` over all rows and over "
            "some oldest ones: where it is true, these leave (not on streams)",
        ),
        "of": Key(
            Either((AggregateTable(), Listing(AggregateTable(), 1))),
            "at_most: the aggregate, one that grows with the window; policy: the aggregate, or "
            "several, whose answers the function is told",
        ),
        "and": Key(
            Either((Text(examples=("7d",), says='a length of time such as "7d"'), _CUT)),
            "at_most, useful, policy: and of these only the last so much time, or so many rows, or "
            "those of the session",
        ),
        "name": Key(Text(), "the window's part in the names of answers"),
        "closed": Key(
            Text(("right", "left", "both", "neither")), "which ends are included", default="right"
        ),
        "ending": Key(SHIFT, "the window ends so much time, or so many rows, before the row"),
        "after": Key(SHIFT, "the window goes on after the row (not on streams)"),
        "within": Key(LENGTH, "of the last rows, only those within this time"),
    },
    exactly_one=("time", "rows", "session", "bounds", "at_most", "useful", "policy"),
    says="a table such as { rows = 100 }",
)

FEATURES = Table(
    {
        "key": Key(NAMES, "the column, or columns, whose values each have windows of their own"),
        "time": Key(NAME, "the column that orders rows and that time windows are about"),
        "tie": Key(
            NAMES, 'columns that order rows of equal time; "any" accepts any order among them'
        ),
        "windows": Key(
            Listing(Either((Text(examples=("1h",), says='a length such as "1h"'), WINDOW)), 1),
            'the windows: "1h", or tables such as { rows = 100 }',
            required=True,
        ),
        "aggregates": Key(
            Listing(AggregateTable(), 1), "what is computed over every window", required=True
        ),
        "lateness": Key(SHIFT, "streams: how much later than others a row may come"),
        "late": Key(NAME, "streams: pass late rows on, with this column true"),
        "flush": Key(NAME, "streams: a boolean column; a row with true ends the stream"),
        "every": Key(LENGTH, "a row per key and tick instead of one per row"),
        "origin": Key(Either((Text(), Whole())), "where ticks are counted from"),
        "min_rows": Key(Whole(0), "fewer rows give no answer", default=0),
        "nan": Key(Text(("value", "missing")), "whether NaN is a value, or missing"),
        "overflow": Key(Text(("error", "null")), "what a sum too large for its type gives"),
        "unit": Key(Text(("s", "ms", "us", "ns")), "what times count where they are floats"),
        "threads": Key(Whole(1), "threads in process; all cores unless said"),
        "algorithm": Key(Text(COLUMN_ALGORITHMS), "an algorithm by name", default="auto"),
        "engine": Key(
            Text(("auto", "native", "kernel")),
            "on Spark: its own operator, windrow's kernel, or the better of both",
            default="auto",
        ),
    }
)

_PATH = Text(examples=("data/flights.csv",), says="a path in quotes")
SOURCE = Table(
    {
        "format": Key(
            Text(examples=("csv", "json", "parquet", "delta", "kafka", "rate")),
            "csv, json, parquet, or any other format that Spark reads",
        ),
        "path": Key(
            Either((_PATH, Listing(_PATH, 1))),
            "files, folders or patterns, relative to this file; or an address such as s3a://…",
        ),
        "table": Key(Text(), "a table of Spark's catalogue, instead of format and path"),
        "value": Key(Text(("json",)), "Kafka: messages are JSON, with the fields of [columns]"),
        "options": Key(OPTIONS, "options of the format, as Spark names them"),
    }
)
_SINK_KEYS = {
    "format": Key(
        Text(examples=("parquet", "csv", "json", "console", "kafka", "delta")),
        "parquet, csv, json, console, or any other format that Spark writes",
        required=True,
    ),
    "path": Key(_PATH, "where to, relative to this file; or an address such as s3a://…"),
    "table": Key(Text(), "a table of Spark's catalogue, instead of a path"),
    "mode": Key(
        Text(("overwrite", "append", "error", "ignore")),
        "batch: what to do if there is something already",
        default="error",
    ),
    "value": Key(Text(("json",)), "Kafka: rows are written as JSON messages"),
    "options": Key(OPTIONS, "options of the format, as Spark names them"),
}
_STREAM_KEYS = {
    "checkpoint": Key(_PATH, "streams: the folder of the state that restarts go on from"),
    "trigger": Key(Text(examples=("10 seconds",)), "streams: how often a batch is made"),
}
SINK = Table({**_SINK_KEYS, **_STREAM_KEYS})
ALERTS = Table(
    {
        **_SINK_KEYS,
        **_STREAM_KEYS,
        "longest": Key(LENGTH, "streams: how far back any rule may look, now and later"),
    }
)

SPARK = Table(
    {
        "master": Key(
            Text(examples=("local[*]", "spark://host:7077")),
            "where Spark runs",
            default="local[*]",
        ),
        "settings": Key(OPTIONS, "Spark's own settings, by their full names"),
        "packages": Key(
            Listing(Text(examples=("group:artifact:version",))),
            "Maven packages that formats need; Kafka's is added by itself",
        ),
        "partitions": Key(Whole(1), "partitions of the shuffle by key"),
        "hot_rows": Key(Whole(1), "keys from so many rows on are cut into stretches of time"),
        "stretch_rows": Key(Whole(1), "rows of a stretch, where there is no key"),
        "buckets": Key(Whole(1), "streams: shares of the keys, each one task", default=8),
    }
)
_KEY = Either((Text(), Whole()))
REPORT = Table(
    {
        "path": Key(
            Text(examples=("report.html",), says="a path in quotes"),
            "where the report goes, an HTML file; --report names it too",
        ),
        "title": Key(Text(), "what the report is called; the pipeline's name unless said"),
        "keys": Key(
            Listing(Either((*_KEY.kinds, Listing(_KEY, 2))), 1),
            "the keys to draw, instead of the busiest; with several key columns, lists of values",
        ),
    }
)
RULE = Table(
    {
        "name": Key(Text(), "what the rule is called", required=True),
        "when": Key(
            Text(examples=('count("5m") > 100',)),
            "the condition to start by, over columns, answers and windowed aggregates",
            required=True,
        ),
        "until": Key(Text(), "the condition to stop by; not (when) unless said"),
    },
    says="a table with name and when",
)

RULES_FROM = Table(
    {
        "file": Key(
            Text(examples=("rules.toml",), says="a path in quotes"),
            "a file of rules ([[rule]], or JSON lines); a stream reads it again when it changes",
        ),
        "table": Key(
            Text(),
            "streams: a table of Spark's catalogue with columns name, when and perhaps until and "
            "version, read again between batches",
        ),
        "reread": Key(
            Text(examples=("10s",), says='a length of time such as "10s"'),
            "streams: how often the table is read again, at most",
            default="1s",
        ),
    },
    exactly_one=("file", "table"),
    says="a table with file",
)

PIPELINE = Table(
    {
        "name": Key(Text(), "what the pipeline is called"),
        "mode": Key(
            Text(MODES),
            "batch; stream, until it is stopped; or stream-available-now, until all is read",
            default="batch",
        ),
        "engine": Key(
            Text(("spark", "columns")),
            "spark; or columns: in this process, without Spark or Java (batches only)",
            default="spark",
        ),
        "source": Key(SOURCE, "where rows come from", required=True),
        "columns": Key(
            Table(others=TypeName()), "types of columns; those not named stay as they are found"
        ),
        "features": Key(FEATURES, "what is computed", required=True),
        "sink": Key(SINK, "where rows go, with their answers"),
        "rules": Key(
            Either((Listing(RULE, 1), RULES_FROM)),
            "conditions that start and stop for each key: [[rules]], or [rules] with a file",
        ),
        "alerts": Key(ALERTS, "where goes what the rules tell"),
        "spark": Key(SPARK, "Spark: where, and how it is set"),
        "report": Key(REPORT, "a report of the run: one HTML file"),
    }
)


def json_schema() -> dict[str, Any]:
    """The declaration as JSON schema, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "windrow pipeline",
        "description": "Made by `windrow schema`. Texts may hold ${NAME}: environment variables.",
        **PIPELINE.schema(),
    }
