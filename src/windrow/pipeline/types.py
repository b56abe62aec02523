"""Types of columns, as a pipeline file names them: Spark's words, and times counted from 1970."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from windrow.pipeline.lines import Path
from windrow.pipeline.problems import Problem, did_you_mean

EPOCH_UNITS = {"timestamp[s]": "s", "timestamp[ms]": "ms", "timestamp[us]": "us"}
"""Numbers that count from the first of January 1970, UTC."""
_ARROW = {
    "string": "string",
    "boolean": "bool_",
    "byte": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date32",
    "binary": "binary",
}
TYPES = (*_ARROW, "decimal(10,2)", "timestamp", "timestamp_ntz", *EPOCH_UNITS)
_OTHER_WORDS = {
    "integer": "int",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "int64": "long",
    "int32": "int",
    "float64": "double",
    "float32": "float",
    "number": "double",
    "numeric": "double",
    "real": "float",
    "str": "string",
    "text": "string",
    "varchar": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "time": "timestamp",
    "bytes": "binary",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True)
class TypeName:
    """The kind of the values in ``[columns]``."""

    says: str = 'the name of a type, as in "double"'

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, str)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        if value in TYPES or _DECIMAL.fullmatch(value):
            return
        other = _OTHER_WORDS.get(value.strip().lower())
        near = f"; write {other!r}" if other else did_you_mean(value, TYPES)
        near = near or f"; types are {', '.join(TYPES)}"
        yield Problem(path, f"there is no type {value!r}{near}")

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        plain = [name for name in TYPES if not name.startswith("decimal")]
        return {
            "anyOf": [
                {"enum": plain},
                {"type": "string", "pattern": r"^decimal\(\s*\d+\s*,\s*\d+\s*\)$"},
            ]
        }


def arrow_type(name: str) -> Any:
    """The type of answers and of columns in process; timestamps are UTC, in microseconds.

    >>> arrow_type("timestamp[ms]"), arrow_type("decimal(8,2)")
    (TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(8, 2)))
    """
    import pyarrow as pa

    decimal = _DECIMAL.fullmatch(name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name in _ARROW:
        return getattr(pa, _ARROW[name])()
    return pa.timestamp("us", None if name == "timestamp_ntz" else "UTC")


def named_type(kind: Any) -> str:
    """The file's word for a type of Arrow, for messages and for starter files."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    for name, arrow in _ARROW.items():
        if kind == getattr(pa, arrow)():
            return name
    return str(kind)
