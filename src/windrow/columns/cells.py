"""Cells: tables in a store of bytes, read once and written once for each turn.

    cell = frame( arrow stream: columns, and a few numbers as metadata )

The frame names format and version and has a checksum; see ``windrow.aggregates.schema``.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from windrow.aggregates.schema import frame, unframe
from windrow.errors import BadBytes

_KIND = b"C"
_OWNER = b"windrow\0"


class Space(Protocol):
    """Bytes under numbers, as a store keeps them."""

    def get(self, number: int) -> bytes | None:
        """The bytes under a number."""

    def put(self, number: int, data: bytes) -> None:
        """Write bytes under a number."""

    def remove(self, number: int) -> None:
        """Forget a number."""

    def clear(self) -> None:
        """Forget everything."""


class MemorySpace:
    """Bytes in a dict."""

    def __init__(self) -> None:
        self.cells: dict[int, bytes] = {}

    def get(self, number: int) -> bytes | None:
        """The bytes under a number."""
        return self.cells.get(number)

    def put(self, number: int, data: bytes) -> None:
        """Write bytes under a number."""
        self.cells[number] = data

    def remove(self, number: int) -> None:
        """Forget a number."""
        del self.cells[number]

    def clear(self) -> None:
        """Forget everything."""
        self.cells.clear()


@dataclass
class Traffic:
    """How often a store was asked, and how much was moved."""

    calls: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


def encoded(table: pa.Table, numbers: dict[str, int]) -> bytes:
    """A table and some numbers as bytes."""
    texts = {name: str(number) for name, number in numbers.items()}
    schema = table.schema.with_metadata(texts)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table.replace_schema_metadata(texts))
    return frame(_KIND, _OWNER, sink.getvalue().to_pybytes())


def decoded(data: bytes, what: str) -> "Cell":
    """What ``encoded`` wrote."""
    reader = unframe(_KIND, _OWNER, data, what)
    payload = pa.py_buffer(reader.data).slice(reader.position)
    table = pa.ipc.open_stream(payload).read_all()
    metadata = table.schema.metadata or {}
    return Cell(table, {name.decode(): int(text) for name, text in metadata.items()}, len(data))


@dataclass
class Cell:
    """A table with its numbers, and how many bytes it takes in the store."""

    table: pa.Table
    numbers: dict[str, int]
    size: int = 0


class Cells:
    """A store's cells during one turn: changes stay here until ``flush``."""

    def __init__(
        self, space: Space, what: str, traffic: Traffic, sizes: dict[int, int] | None = None
    ) -> None:
        self.space = space
        self.what = what
        self.traffic = traffic
        self.sizes = {} if sizes is None else sizes
        """How many bytes cells take in the store, as far as that is known."""
        self.growth = 0
        """How many bytes more the store holds than before this turn, after ``flush``."""
        self._known: dict[int, Cell] = {}
        self._changed: dict[int, Cell | None] = {}

    def __getitem__(self, number: int) -> Cell:
        if number in self._known:
            return self._known[number]
        data = self._read(number)
        cell = decoded(data, f"{self.what} {number}")
        self._known[number] = cell
        return cell

    def _read(self, number: int) -> bytes:
        self.traffic.calls += 1
        data = self.space.get(number)
        if data is None:
            raise BadBytes(f"{self.what} {number} is not in the state: the checkpoint is damaged")
        self.traffic.bytes_read += len(data)
        self.sizes[number] = len(data)
        return data

    def __setitem__(self, number: int, cell: Cell) -> None:
        self._known[number] = cell
        self._changed[number] = cell

    def remove(self, number: int) -> None:
        """Forget a cell."""
        if number not in self.sizes and self._changed.get(number) is None:
            self._read(number)  # to know how many bytes become free
        self._known.pop(number, None)
        self._changed[number] = None

    def clear(self, size: int) -> None:
        """Forget everything, which took so many bytes in the store."""
        self.traffic.calls += 1
        self.space.clear()
        self.growth -= size
        self.sizes.clear()
        self._known, self._changed = {}, {}

    def flush(self) -> None:
        """Write what was changed."""
        for number, cell in self._changed.items():
            before = self.sizes.get(number, 0)
            after = 0
            if cell is not None:
                data = encoded(cell.table, cell.numbers)
                after = cell.size = len(data)
                self.space.put(number, data)
            elif before:
                self.space.remove(number)
            else:
                continue
            self.traffic.calls += 1
            self.traffic.bytes_written += after
            self.growth += after - before
            self.sizes[number] = after
        self._changed = {}


class Shelf:
    """A window's own numbers among the cells, as a ``SegmentQueue`` wants them."""

    def __init__(self, cells: Cells, shelf: int) -> None:
        self.cells = cells
        self.shelf = shelf

    def number(self, number: int) -> int:
        """Its number among all cells."""
        return (self.shelf << 1 | (number < 0)) << 48 | (number if number >= 0 else ~number)

    def __getitem__(self, number: int) -> Cell:
        return self.cells[self.number(number)]

    def __setitem__(self, number: int, cell: Cell) -> None:
        self.cells[self.number(number)] = cell

    def __delitem__(self, number: int) -> None:
        self.cells.remove(self.number(number))
