"""Which rows an aggregate counts: a column that is true, or that has one of some values."""

import re
import zlib
from dataclasses import dataclass
from typing import Any

from windrow.errors import BadSpecification

_KINDS = (str, bool, int, float, bytes)


@dataclass(frozen=True)
class Where:
    """Rows in which a column is true (no values), or one of some values; never where it is null."""

    column: str
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise BadSpecification(
                'where() takes the name of a column, .where("failed"), and perhaps values, '
                f'.where("status", "failed"), not {self.column!r}'
            )
        for value in self.values:
            if type(value) not in _KINDS or value != value:
                hint = ": give the values one by one" if isinstance(value, list | tuple) else ""
                raise BadSpecification(
                    f"where({self.column!r}, {value!r}): values are texts, booleans and numbers"
                    f"{hint}; for anything else make a boolean column"
                )

    @property
    def name(self) -> str:
        """What answers are called after."""
        said = (str(v).lower() if isinstance(v, bool) else str(v) for v in self.values)
        return "_".join((self.column, *said))

    def __str__(self) -> str:
        return f".where({', '.join(map(repr, (self.column, *self.values)))})"


@dataclass(frozen=True)
class Masked:
    """A column, or true (no column), with values only in the rows that count."""

    column: str | None
    where: tuple[Where, ...]

    @property
    def name(self) -> str:
        """A name that says so, in letters that are taken for nothing else by any engine."""
        said = " and ".join(_said(where) for where in self.where)
        text = f"{_word(self.column or 'rows')} where {said}"
        plain = re.sub(r"[^\w \-]", "_", text)
        return plain if plain == text else f"{plain} {zlib.crc32(text.encode()):08x}"


def _said(where: Where) -> str:
    values = " or ".join(map(_value, where.values))
    return _word(where.column) + (f" is {values}" if values else "")


def _value(value: Any) -> str:
    """As it is only in letters that Spark tells apart, which are not capitals."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(r"[0-9a-z_]+", text) else repr(value)


def _word(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else repr(text)
