"""Plain values as bytes: tagged, length-checked, no pickle.

The tag says the type, so that a partial may hold what its rows held. Reading never runs anything
and never trusts a length: whatever does not fit raises ``BadBytes``.
"""

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from windrow.errors import BadBytes, BadValue

_MAX_DEPTH = 32
_MANY = 8
_TAGGED_FLOAT = np.dtype([("tag", "S1"), ("value", "<f8")])


class Reader:
    """A cursor over bytes that refuses to run past their end."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise BadBytes(
                f"the bytes end at {len(self.data)}, but {size} more were expected "
                f"from {self.position} on: they were cut short"
            )
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def count(self) -> int:
        """An unsigned integer of any size, seven bits a byte."""
        if self.position < len(self.data) and self.data[self.position] < 0x80:
            self.position += 1
            return self.data[self.position - 1]
        result = shift = 0
        while True:
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 63:
                raise BadBytes("a length of more than 64 bits: the bytes are damaged")

    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self.data) - self.position


def count_bytes(n: int) -> bytes:
    """An unsigned integer, seven bits a byte, as ``Reader.count`` reads it."""
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def block(data: bytes) -> bytes:
    """Bytes behind their length."""
    return count_bytes(len(data)) + data


def integer_bytes(n: int) -> bytes:
    """A signed integer of any size in the fewest whole bytes."""
    return n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)


def _integer(r: Reader) -> int:
    return int.from_bytes(r.take(r.count()), "little", signed=True)


def _text(r: Reader) -> str:
    return r.take(r.count()).decode("utf-8")


def _encode_datetime(value: datetime) -> bytes:
    """Wall clock, fold, and the zone by name where it has one, else by offset."""
    name = getattr(value.tzinfo, "key", "") or ""
    text = (value.replace(tzinfo=None) if name else value).isoformat()
    return block(text.encode()) + bytes([value.fold]) + block(name.encode())


def _decode_datetime(r: Reader) -> datetime:
    value = datetime.fromisoformat(_text(r)).replace(fold=r.take(1)[0])
    name = _text(r)
    return value.replace(tzinfo=ZoneInfo(name)) if name else value


def _encode_datetime64(value: Any) -> bytes:
    unit, step = np.datetime_data(value.dtype)
    return block(f"{step}{unit}".encode()) + struct.pack("<q", int(value.astype(np.int64)))


def _decode_datetime64(r: Reader) -> np.datetime64:
    unit = _text(r)
    return np.datetime64(struct.unpack("<q", r.take(8))[0], unit)  # type: ignore[call-overload,no-any-return]


_Coding = tuple[bytes, Callable[[Any], bytes], Callable[[Reader], Any]]
_BY_TYPE: dict[type, _Coding] = {
    type(None): (b"n", lambda _: b"", lambda _: None),
    bool: (b"b", lambda v: b"\1" if v else b"\0", lambda r: r.take(1) == b"\1"),
    int: (b"i", lambda v: block(integer_bytes(v)), _integer),
    float: (b"f", lambda v: struct.pack("<d", v), lambda r: struct.unpack("<d", r.take(8))[0]),
    str: (b"s", lambda v: block(v.encode("utf-8")), _text),
    bytes: (b"y", block, lambda r: r.take(r.count())),
    Decimal: (b"d", lambda v: block(str(v).encode()), lambda r: Decimal(_text(r))),
    datetime: (b"t", _encode_datetime, _decode_datetime),
    date: (
        b"a",
        lambda v: struct.pack("<i", v.toordinal()),
        lambda r: date.fromordinal(struct.unpack("<i", r.take(4))[0]),
    ),
    time: (
        b"c",
        lambda v: block(v.isoformat().encode()),
        lambda r: time.fromisoformat(_text(r)),
    ),
    timedelta: (
        b"e",
        lambda v: struct.pack("<iii", v.days, v.seconds, v.microseconds),
        lambda r: timedelta(*struct.unpack("<iii", r.take(12))),
    ),
    np.datetime64: (b"m", _encode_datetime64, _decode_datetime64),
}
_BY_TAG = {tag: decode for tag, _, decode in _BY_TYPE.values()}


def encode(value: Any, depth: int = 0) -> bytes:
    """One value as bytes, tag first.

    >>> decode(Reader(encode((1, "two", None))))
    (1, 'two', None)
    """
    if depth > _MAX_DEPTH:
        raise BadValue(f"a value nested more than {_MAX_DEPTH} deep has no byte form")
    coding = _BY_TYPE.get(type(value))
    if coding is not None:
        try:
            return coding[0] + coding[1](value)
        except UnicodeEncodeError as error:
            raise BadValue(f"{value!r} is not valid Unicode: {error.reason}") from error
    if type(value) is tuple:
        if len(value) >= _MANY and all(type(v) is float for v in value):  # as below, in one call
            floats = np.empty(len(value), _TAGGED_FLOAT)
            floats["tag"], floats["value"] = b"f", value
            return b"(" + count_bytes(len(value)) + floats.tobytes()
        return b"(" + count_bytes(len(value)) + b"".join(encode(v, depth + 1) for v in value)
    if isinstance(value, datetime | timedelta) and type(value).__module__.startswith("pandas"):
        return encode(_of_pandas(value), depth)
    raise BadValue(
        f"{value!r} is a {type(value).__name__}, which has no byte form. Supported: None, bool, "
        "int, float, Decimal, str, bytes, date, time, datetime, timedelta, numpy.datetime64 and "
        "tuples of these"
    )


def _of_pandas(value: Any) -> Any:
    """pandas' Timestamp or Timedelta as Python's."""
    stamp = isinstance(value, datetime)
    if value.nanosecond if stamp else value.nanoseconds:
        raise BadValue(f"{value!r} is finer than microseconds: give numpy.datetime64 in ns instead")
    return value.to_pydatetime() if stamp else value.to_pytimedelta()


def decode(r: Reader, depth: int = 0) -> Any:
    """The value that ``encode`` wrote."""
    tag = r.take(1)
    if tag == b"(":
        if depth > _MAX_DEPTH:
            raise BadBytes("tuples nested too deep: the bytes are damaged")
        size = r.count()
        end = r.position + 9 * size
        if size >= _MANY and end <= len(r.data) and r.data[r.position : end : 9] == b"f" * size:
            return tuple(np.frombuffer(r.take(9 * size), _TAGGED_FLOAT)["value"].tolist())
        return tuple(decode(r, depth + 1) for _ in range(size))
    read = _BY_TAG.get(tag)
    if read is None:
        raise BadBytes(f"unknown tag {tag!r} at byte {r.position - 1}: the bytes are damaged")
    try:
        return read(r)
    except BadBytes:
        raise
    except (ValueError, ArithmeticError, TypeError, LookupError, OSError) as error:
        raise BadBytes(f"unreadable value before byte {r.position}: {error}") from error
