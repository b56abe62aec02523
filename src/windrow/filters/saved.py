"""Values and arrays, one after the other, behind the frame of the partial's schema."""

from typing import Any

import numpy as np

from windrow.aggregates.codec import Reader, block, decode, encode
from windrow.columns.ranges import Array
from windrow.errors import BadBytes


class Saved:
    """Written to when made without a reader, read from when made with one."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader
        self._parts: list[bytes] = []

    def value(self, value: Any) -> None:
        """Write a plain value."""
        self._parts.append(encode(value))

    def array(self, array: Array) -> None:
        """Write integers or floats of 64 bits."""
        kind = "<i8" if array.dtype == np.int64 else "<f8"
        self._parts.append(block(array.astype(kind).tobytes()))

    def written(self) -> bytes:
        """Everything so far."""
        return b"".join(self._parts)

    def read(self) -> Any:
        """The next plain value."""
        assert self._reader is not None
        return decode(self._reader)

    def read_array(self, kind: str, length: int | None = None) -> Array:
        """The next array, of ``int64`` or ``float64``, of a length that is known."""
        assert self._reader is not None
        data = self._reader.take(self._reader.count())
        if len(data) % 8 or (length is not None and len(data) != 8 * length):
            raise BadBytes(f"an array of {len(data)} bytes, where {length} numbers were expected")
        return np.frombuffer(data, "<i8" if kind == "int64" else "<f8").astype(kind)
