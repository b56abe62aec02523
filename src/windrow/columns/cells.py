"""Cells: tables in chunks of a store, read once and written once for each turn.

    cell = frame( arrow stream: columns, and a few numbers as metadata )

The frame names format and version and has a checksum; see ``windrow.aggregates.schema``. Columns of
64-bit integers and times are written as how far each value is above the smallest, in as few bytes
as hold that: a store's bytes cost more than these sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.schema import frame, unframe
from windrow.columns.column import array_of, numbers_of, plain_column, valid_of
from windrow.errors import BadBytes
from windrow.stores.chunks import Space, chunk_number

_KIND = b"C"
_OWNER = b"windrow\0"
_LOW = b"windrow.low"
_SCHEMA = b"windrow.schema"
_WIDTHS = (np.uint8, np.uint16, np.uint32)


@dataclass
class Traffic:
    """How often a store was asked, and how much was moved."""

    calls: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


def encoded(table: pa.Table, numbers: dict[str, int]) -> bytes:
    """A table and some numbers as bytes."""
    texts = {name.encode(): str(number).encode() for name, number in numbers.items()}
    table = _narrowed(table, texts)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return frame(_KIND, _OWNER, sink.getvalue())


def _narrowed(table: pa.Table, texts: dict[bytes, bytes]) -> pa.Table:
    """Integers in fewer bytes; fields say what to add, and metadata which types they had."""
    columns, fields = list(table.columns), list(table.schema)
    wide = table.schema.remove_metadata()
    for place, field in enumerate(wide):
        found = _narrow(columns[place]) if table.num_rows and _is_wide(field.type) else None
        if found is not None:
            columns[place], low = found
            marks = {_LOW: str(low).encode()}
            fields[place] = pa.field(field.name, columns[place].type, field.nullable, marks)
            texts = texts | {_SCHEMA: wide.serialize().to_pybytes()}
    return pa.table(columns, schema=pa.schema(fields, texts))


def _is_wide(kind: pa.DataType) -> bool:
    """Whether values are integers of 64 bits, whatever they mean."""
    times = pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind)
    return bool(times or pa.types.is_int64(kind))


def _narrow(column: pa.ChunkedArray) -> tuple[pa.Array, int] | None:
    array = plain_column(column)
    values = numbers_of(array.view(pa.int64()))
    low = int(values.min())
    span = int(values.max()) - low
    for width in _WIDTHS:
        if span <= np.iinfo(width).max:
            valid = valid_of(array)
            small = np.subtract(values, low, dtype=np.int64).astype(width)
            return array_of(small, None if valid is None else ~valid), low
    return None


def _widened(table: pa.Table, wide: pa.Schema) -> pa.Table:
    """What ``_narrowed`` was given."""
    columns = list(table.columns)
    for place, field in enumerate(table.schema):
        if field.metadata and _LOW in field.metadata:
            array = plain_column(columns[place])
            valid = valid_of(array)
            values = numbers_of(array).astype(np.int64)
            values += int(field.metadata[_LOW])
            whole = array_of(values, None if valid is None else ~valid)
            columns[place] = whole.view(wide.field(place).type)
    return pa.table(columns, schema=wide)


def decoded(data: bytes, what: str) -> "Cell":
    """What ``encoded`` wrote."""
    reader = unframe(_KIND, _OWNER, data, what)
    payload = pa.py_buffer(reader.data[reader.position :])  # a copy, whose numbers are aligned
    table = pa.ipc.open_stream(payload).read_all()
    metadata = dict(table.schema.metadata or {})
    if _SCHEMA in metadata:
        table = _widened(table, pa.ipc.read_schema(pa.py_buffer(metadata.pop(_SCHEMA))))
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
        self._emptied = False

    def saved(self) -> tuple[Any, ...]:
        """What is known and changed, for ``back``: cells themselves never change."""
        return dict(self._known), dict(self._changed), dict(self.sizes), self.growth, self._emptied

    def back(self, saved: tuple[Any, ...]) -> None:
        """As it was."""
        self._known, self._changed, self.sizes, self.growth, self._emptied = saved

    def __contains__(self, number: int) -> bool:
        return number in self._known or bool(self.sizes.get(number))

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
        if number in self.sizes:
            self._changed[number] = None
        else:  # the store never had it
            del self._changed[number]

    def clear(self, size: int) -> None:
        """Forget everything, which took so many bytes in the store."""
        self._emptied = True
        self.growth -= size
        self.sizes.clear()
        self._known, self._changed = {}, {}

    def flush(self) -> None:
        """Write what was changed."""
        if self._emptied:
            self.traffic.calls += 1
            self.space.clear()
            self._emptied = False
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
        shelf = self.shelf << 1 | (number < 0)
        return chunk_number(shelf, number if number >= 0 else ~number)

    def __getitem__(self, number: int) -> Cell:
        return self.cells[self.number(number)]

    def __setitem__(self, number: int, cell: Cell) -> None:
        self.cells[self.number(number)] = cell

    def __delitem__(self, number: int) -> None:
        self.cells.remove(self.number(number))
