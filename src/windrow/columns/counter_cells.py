"""The counters of a bucket of a stream, in chunks of keys.

    a cell  =  key columns, and for each output packed fields, open tick, and what that has come to

Over time, a key without rows for a whole window is dropped when its chunk is read: its counter
would begin anew anyway. Every turn looks through one chunk more for such keys.
"""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from windrow.columns.cells import Cells, Shelf
from windrow.columns.column import array_of, numbers_of, plain_column
from windrow.columns.key_chunks import KeyChunks, keys_of
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.columns.sequential import Counters, Machine, State, keys_of_runs, machines_of
from windrow.columns.stream_plan import Head, StreamPlan, Turn
from windrow.columns.views import New
from windrow.times import Clock


class Owner(Protocol):
    """What counters need of their bucket."""

    plan: StreamPlan
    head: Head
    log: Cells
    turn: Turn


class CounterCells:
    """The sequential outputs of a bucket, during one turn."""

    def __init__(self, owner: Owner, clock: Clock) -> None:
        self.owner, self.spec = owner, owner.plan.spec
        self.machines = machines_of(self.spec, clock)
        texts = owner.plan.sequential
        at = owner.head.counters
        if at.shelf is None:
            at.shelf = owner.head.shelves
            owner.head.shelves += 1
            at.places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        self.places = [at.places[text] for text in texts]
        self.at = at
        self.chunks = KeyChunks(Shelf(owner.log, at.shelf), at)

    def answer(self, new: New, answers: dict[str, pa.Array]) -> None:
        """Feed the rows, which are in order."""
        at, spec = self.at, self.spec
        ready = Prepared(new.table, spec.key, spec.time, (), spec.unit, 1, new.offsets)
        runs = len(new.offsets) - 1
        keys = keys_of_runs(new.table, spec.key, new.offsets[:-1])
        touched = self.chunks.holding(keys, runs)
        swept = {at.swept % at.count} - touched if at.count and self._may_drop else set()
        counters = self._loaded(touched | swept)
        before = counters.size
        slots = counters.places(keys, runs)
        found = counters.feed(ready, slots)
        self.owner.turn.overflows += sum(array.null_count for array in found.values())
        answers.update(found)
        dead = self._dead(counters)
        if dead.any():
            if swept and dead[self._of_chunks(counters, swept)].any():
                touched |= swept
            counters = counters.taken(np.flatnonzero(~dead))
        at.keys += counters.size - before
        at.swept += 1
        self.chunks.write(self._table(counters), touched | swept, touched)

    @property
    def _may_drop(self) -> bool:
        return all(machine.timed for machine in self.machines)

    def _of_chunks(self, counters: Counters, chunks: set[int]) -> Array:
        return np.isin(self.chunks.of(counters.keys, counters.size), list(chunks))

    def _dead(self, counters: Counters) -> Array:
        """Keys that a row to come would begin anew: none for a whole window before the frontier."""
        frontier = self.owner.head.frontier
        dead = np.full(counters.size, self._may_drop and frontier is not None)
        for machine, state in zip(self.machines, counters.states, strict=True):
            if machine.timed and frontier is not None:
                dead &= frontier // machine.length - state.now >= machine.window
        return dead

    def reach(self) -> int | None:
        """How long after its last row a key is surely dead; None: never."""
        if not self._may_drop:
            return None
        return max((machine.window + 1) * machine.length for machine in self.machines)

    # --- cells ----------------------------------------------------------------------------------

    def _loaded(self, chunks: set[int]) -> Counters:
        tables = self.chunks.tables(chunks)
        return self._counters(pa.concat_tables(tables)) if tables else self._empty()

    def _empty(self) -> Counters:
        return Counters(self.machines, [], 0)

    def _counters(self, table: pa.Table) -> Counters:
        made = Counters(self.machines, keys_of(table), 0)
        made.size = table.num_rows
        made.states = [
            _state(machine, table, place)
            for machine, place in zip(self.machines, self.places, strict=True)
        ]
        return made

    def _table(self, counters: Counters) -> pa.Table:
        columns: dict[str, Any] = {f"key.{i}": array for i, array in enumerate(counters.keys)}
        states = zip(self.machines, self.places, counters.states, strict=True)
        for machine, place, state in states:
            kind = pa.binary(machine.stride)
            data = pa.py_buffer(np.ascontiguousarray(state.rows))
            packed = pa.Array.from_buffers(kind, counters.size, [None, data])
            columns[f"{place}.state"] = packed
            if machine.timed:
                columns[f"{place}.tick"] = array_of(state.now)
                columns[f"{place}.open"] = array_of(state.opened)
        return pa.table(columns)


def _state(machine: Machine, table: pa.Table, place: int) -> State:
    packed = plain_column(table[f"{place}.state"])
    first = packed.offset * machine.stride
    data = packed.buffers()[1]
    size = len(packed) * machine.stride
    rows = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    rows = rows[first : first + size].copy()
    if not machine.timed:
        nothing = np.empty(0, np.int64)
        return State(rows, nothing, nothing)
    now, opened = (numbers_of(plain_column(table[f"{place}.{n}"])) for n in ("tick", "open"))
    return State(rows, now.copy(), opened.copy())


def forget(owner: Owner) -> None:
    """Remove all counters."""
    at = owner.head.counters
    if at.shelf is not None:
        KeyChunks(Shelf(owner.log, at.shelf), at).clear()
    owner.head.counters = type(at)()
