"""The partial's schema: typed fields, declared once by the aggregate, from which its bytes follow.

A run of partials is written field by field (columns, not rows), behind a frame that names the
format's version, what kind of thing it is and which aggregate wrote it, with a checksum at the end.

    frame = "WNDR" version kind fingerprint(8) length payload crc32

``int64 float64 bool`` are fixed-width columns; ``exact`` is a total of ``windrow.aggregates.exact``
(a few bytes longer than the number it holds); ``value`` is whatever the rows held, tagged.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from windrow.aggregates import codec, exact
from windrow.aggregates.codec import Reader, count_bytes
from windrow.errors import BadBytes, BadSpecification, BadValue

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"WNDR"
_HEAD: Final = struct.Struct("<4sB1s8sQ")


class Empty:
    """The type of ``EMPTY``, which stays itself when copied or pickled."""

    def __repr__(self) -> str:
        return "EMPTY"

    def __reduce__(self) -> str:
        return "EMPTY"


EMPTY: Final = Empty()
"""The partial of no rows: the formal identity, told apart from every value (a real 0 is not it)."""


def frame(kind: bytes, fingerprint: bytes, payload: bytes) -> bytes:
    """Wrap a payload with version, kind, fingerprint and checksum."""
    head = _HEAD.pack(_MAGIC, FORMAT_VERSION, kind, fingerprint, len(payload))
    checksum = zlib.crc32(payload, zlib.crc32(head))
    return b"".join((head, payload, struct.pack("<I", checksum)))


def unframe(kind: bytes, fingerprint: bytes, data: bytes, what: str) -> Reader:
    """Check a frame and return a reader of its payload; ``what`` says who is asking."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise BadBytes(f"{what}: expected bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEAD.size + 4 or not data.startswith(_MAGIC):
        raise BadBytes(f"{what}: these {len(data)} bytes were not written by windrow")
    _, version, found_kind, found_fingerprint, length = _HEAD.unpack_from(data)
    if version != FORMAT_VERSION:
        raise BadBytes(
            f"{what}: the bytes are of format version {version}, this windrow reads version "
            f"{FORMAT_VERSION}; read them with the windrow that wrote them"
        )
    if len(data) != _HEAD.size + length + 4:
        raise BadBytes(
            f"{what}: {len(data)} bytes, but the header says {_HEAD.size + length + 4}: "
            "they were cut short or joined with others"
        )
    if zlib.crc32(memoryview(data)[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise BadBytes(f"{what}: the checksum does not match: the bytes are damaged")
    if found_kind != kind or found_fingerprint != fingerprint:
        raise BadBytes(
            f"{what}: the bytes were written by something else (another aggregate, another of its "
            "options, or another algorithm)"
        )
    return Reader(data[:-4], _HEAD.size)


def _fixed(code: str, size: int) -> tuple[Callable[..., bytes], Callable[..., list[Any]]]:
    def write(values: Sequence[Any]) -> bytes:
        return struct.pack(f"<{len(values)}{code}", *values)

    def read(r: Reader, n: int) -> list[Any]:
        return list(struct.unpack(f"<{n}{code}", r.take(n * size)))

    return write, read


_SAFE: Final = {
    "float64": (float,),
    "int64": (int,),
    "exact": (int,),
    "bool": (bool,),
    "value": (float, int, bool, type(None), bytes),
}
"""Every value of these types has bytes; an int64 within its range."""
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_NO_MARKS: Final = b"\0\0\0\0"
_SMALL: Final = [count_bytes(n) for n in range(1 << 12)]


def _write_exact(values: Sequence[int]) -> bytes:
    out = []
    for value in values:
        marks = value & exact.MARK_MASK
        total = value >> exact.MARK_BITS
        if marks < len(_SMALL):  # only the number of floats: no NaN, no infinity, no decimal
            out.append(_SMALL[marks])
            out.append(_NO_MARKS)
        else:
            out += map(count_bytes, exact.parts(value)[1:])
        zeros = (total & -total).bit_length() - 1 if total else 0
        total >>= zeros
        size = total.bit_length() // 8 + 1
        out.append(_SMALL[zeros] if zeros < len(_SMALL) else count_bytes(zeros))
        out.append(_SMALL[size] if size < len(_SMALL) else count_bytes(size))
        out.append(total.to_bytes(size, "little", signed=True))
    return b"".join(out)


def _read_exact(r: Reader, n: int) -> list[int]:
    values = []
    data, position = r.data, r.position
    usual = len(data) - 8
    for _ in range(n):
        # Nearly always: less than 128 floats, no marks, an exponent of two bytes, a short number.
        if (
            position < usual
            and data[position] < 0x80 <= data[position + 5]
            and data[position + 6] < 0x80 > data[position + 7]
            and data[position + 1 : position + 5] == _NO_MARKS
        ):
            marks = data[position]
            zeros = data[position + 5] & 0x7F | data[position + 6] << 7
            start = position + 8
            position = start + data[position + 7]
            if position > len(data):
                raise BadBytes("an exact total goes on behind the end: the bytes were cut short")
            number = int.from_bytes(data[start:position], "little", signed=True)
        else:
            r.position = position
            marks = sum(r.count() << i * exact.COUNTER_BITS for i in range(5))
            zeros = r.count()
            if zeros > 1 << 20:
                raise BadBytes("an exact total with an impossible exponent: the bytes are damaged")
            number = int.from_bytes(r.take(r.count()), "little", signed=True)
            position = r.position
        values.append((number << zeros + exact.MARK_BITS) + marks)
    r.position = position
    return values


def _write_values(values: Sequence[Any]) -> bytes:
    if all(type(value) is float for value in values):  # as below, in one call
        tagged = [part for value in values for part in (b"f", value)]
        return struct.pack("<" + "cd" * len(values), *tagged)
    return b"".join(map(codec.encode, values))


def _read_values(r: Reader, n: int) -> list[Any]:
    end = r.position + 9 * n
    if n and end <= len(r.data) and r.data[r.position : end : 9] == b"f" * n:
        return list(struct.unpack("<" + "cd" * n, r.take(9 * n))[1::2])
    return [codec.decode(r) for _ in range(n)]


_FIELD_TYPES: dict[str, tuple[Callable[..., bytes], Callable[..., list[Any]]]] = {
    "int64": _fixed("q", 8),
    "float64": _fixed("d", 8),
    "bool": _fixed("?", 1),
    "exact": (_write_exact, _read_exact),
    "value": (_write_values, _read_values),
}


@dataclass(frozen=True)
class Field:
    """One typed field of a partial; the type may be the schema of a partial inside it."""

    name: str
    type: "str | Schema"

    def __post_init__(self) -> None:
        if isinstance(self.type, str) and self.type not in _FIELD_TYPES:
            raise BadSpecification(
                f"field {self.name!r} has type {self.type!r}; known: {', '.join(_FIELD_TYPES)}"
            )

    def checker(self) -> Callable[[Any], None]:
        """A function that raises for a value that has no byte form here."""
        if isinstance(self.type, Schema):
            return self.type.checker()
        safe, integers = _SAFE[self.type], self.type == "int64"
        write = self.write

        def check(value: Any) -> None:
            if type(value) not in safe or (integers and not _LEAST <= value <= _MOST):
                write([value])

        return check

    def write(self, column: Sequence[Any]) -> bytes:
        """This field of a run of partials."""
        if isinstance(self.type, Schema):
            return self.type.write(column)
        try:
            return _FIELD_TYPES[self.type][0](column)
        except (struct.error, OverflowError) as error:
            wrong = next(x for x in column if not _fits(self.type, x))
            raise BadValue(
                f"field {self.name!r} is declared {self.type}, but holds {wrong!r}: declare "
                "`schema`, or give `identity` the type that the partials have"
            ) from error

    def read(self, r: Reader, n: int) -> list[Any]:
        """The ``n`` values that ``write`` wrote."""
        if not isinstance(self.type, Schema):
            return _FIELD_TYPES[self.type][1](r, n)
        column = self.type.read(r)
        if len(column) != n:
            raise BadBytes(f"field {self.name!r}: {len(column)} values where {n} were expected")
        return column


@dataclass(frozen=True)
class Schema:
    """The fields of a partial. A partial of one bare field is that field's value, not a tuple.

    >>> schema = Schema((Field("total", "float64"), Field("rows", "int64")))
    >>> schema.decode(schema.encode([(1.5, 2), EMPTY]))
    [(1.5, 2), EMPTY]
    """

    fields: tuple[Field, ...]
    bare: bool = False
    make: Callable[[Iterable[Any]], Any] | None = field(default=None, compare=False, repr=False)
    """What makes a partial of its fields, where it is no plain tuple."""

    @staticmethod
    def single(type: str, name: str = "partial") -> "Schema":
        """The schema of partials that are one bare value."""
        return Schema((Field(name, type),), bare=True)

    @staticmethod
    def like(identity: Any) -> "Schema":
        """The schema that an identity element shows: float → float64, int → int64, bool, others."""
        names = {bool: "bool", int: "int64", float: "float64"}
        if isinstance(identity, tuple):
            return Schema(
                tuple(Field(f"f{i}", names.get(type(x), "value")) for i, x in enumerate(identity))
            )
        return Schema.single(names.get(type(identity), "value"))

    @property
    def has_floats(self) -> bool:
        """Whether a field is a rounded float, which subtraction cannot take out again exactly."""
        return any(
            field.type.has_floats if isinstance(field.type, Schema) else field.type == "float64"
            for field in self.fields
        )

    def __str__(self) -> str:
        inside = ", ".join(f"{field.name}: {field.type}" for field in self.fields)
        return inside if self.bare else f"({inside})"

    def fingerprint(self, owner: str) -> bytes:
        """Eight bytes that differ when the owner or a field differs."""
        return blake2b(f"{owner} {self}".encode(), digest_size=8).digest()

    def encode(self, partials: Sequence[Any], owner: str = "partials") -> bytes:
        """A run of partials as framed bytes."""
        return frame(b"p", self.fingerprint(owner), self.write(partials))

    def decode(self, data: bytes, owner: str = "partials") -> list[Any]:
        """The partials that ``encode`` wrote."""
        reader = unframe(b"p", self.fingerprint(owner), data, owner)
        partials = self.read(reader)
        if reader.remaining():
            raise BadBytes(f"{owner}: {reader.remaining()} bytes too many")
        return partials

    def checker(self) -> Callable[[Any], None]:
        """A function that raises for a partial that has no byte form."""
        checks = [field.checker() for field in self.fields]
        if self.bare:
            only = checks[0]

            def check_one(partial: Any) -> None:
                if partial is not EMPTY:
                    only(partial)

            return check_one

        def check(partial: Any) -> None:
            if partial is EMPTY:
                return
            if not isinstance(partial, tuple) or len(partial) != len(checks):
                raise BadValue(f"partial {partial!r} does not fit the schema {self}")
            for one, value in zip(checks, partial, strict=True):
                one(value)

        return check

    def write(self, partials: Sequence[Any]) -> bytes:
        """A run of partials, without a frame: count, which are empty, then a column per field."""
        full = [p for p in partials if p is not EMPTY]
        flags = bytes(p is not EMPTY for p in partials)
        out = [count_bytes(len(partials)), flags]
        if self.bare:
            columns: Any = [full]
        else:
            for p in full:
                if not isinstance(p, tuple) or len(p) != len(self.fields):
                    raise BadValue(f"partial {p!r} does not fit the schema {self}")
            columns = list(zip(*full, strict=True)) or [()] * len(self.fields)
        out += [f.write(column) for f, column in zip(self.fields, columns, strict=True)]
        return b"".join(out)

    def read(self, r: Reader) -> list[Any]:
        """The partials that ``write`` wrote."""
        size = r.count()
        flags = r.take(size)
        full = flags.count(1)
        if full + flags.count(0) != size:
            raise BadBytes("a presence flag is neither 0 nor 1: the bytes are damaged")
        columns = [field.read(r, full) for field in self.fields]
        items: Any = iter(columns[0] if self.bare else zip(*columns, strict=True))
        if self.make is not None:
            items = map(self.make, items)
        return [next(items) if flag else EMPTY for flag in flags]


def _fits(type: str, value: Any) -> bool:
    try:
        _FIELD_TYPES[type][0]([value])
    except (struct.error, OverflowError):
        return False
    return True
