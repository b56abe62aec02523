"""Sequential aggregates on columns: rows in order feed one counter for each key.

A *machine* is one output of the specification: its counter's layout, and how it reads its column.
*Counters* are the states of all machines for some keys, between two calls that feed them: packed
fields, and over time the open tick and what it has come to.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.approximate import ApproxCount, Approximate
from windrow.columns.approx.fields import numbers
from windrow.columns.approx.runs import NEVER, over_rows, over_ticks
from windrow.columns.column import Column, array_of, plain_column
from windrow.columns.key_runs import key_codes
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.errors import BadValue
from windrow.rolling import Rolling
from windrow.sequential import values_of
from windrow.slides import Time
from windrow.times import Clock

Arrays = list[pa.Array]
_NO_SLOTS = np.empty(0, np.int64)
_SMALL = 1 << 15


@dataclass(frozen=True)
class Fed:
    """Rows to feed: sorted by key and time, with where each key's run begins."""

    offsets: Array
    time: Array | None
    values: Array
    flagged: Array | None
    """Rows whose value was out of range, where that is no error."""


@dataclass
class State:
    """One machine's part of the counters of some keys."""

    rows: Array
    now: Array
    opened: Array

    @staticmethod
    def of(keys: int, stride: int, timed: bool) -> "State":
        """Counters that nothing was fed to."""
        ticks = keys if timed else 0
        return State(
            np.zeros(keys * stride, np.uint8),
            np.full(ticks, NEVER, np.int64),
            np.zeros(ticks, np.int64),
        )


class Machine:
    """One sequential output."""

    def __init__(
        self, spec: Rolling, name: str, aggregate: Approximate, label: str, clock: Clock | None
    ) -> None:
        window = spec.windows[label]
        self.name, self.aggregate, self.label = name, aggregate, label
        self.timed = isinstance(window, Time)
        count = values_of(aggregate, label, window)
        layout = aggregate.counter(count, self.timed).layout
        self.window, self.limit, self.scale = count, int(layout.R), layout.scale
        self.numbers = numbers(layout, before=1)
        self.stride = (layout.bits + 8) >> 3
        self.length = 0
        if self.timed:
            assert clock is not None
            tick = 1 if aggregate.tick is None else aggregate.tick
            self.length = clock.length(tick, f"tick= of {aggregate!r}")

    def fed(self, table: Prepared, rows: Array | None = None) -> Fed:
        """What a table feeds, in sorted order; with a mask, some of its rows."""
        values, flagged = self._values(table)
        if rows is None:
            return Fed(table.offsets, table.time, values, flagged)
        before = np.zeros(table.size + 1, np.int64)
        np.cumsum(rows, out=before[1:])
        time = None if table.time is None else table.time[rows]
        flagged = None if flagged is None else flagged[rows]
        return Fed(before[table.offsets], time, values[rows], flagged)

    def answers(self, table: Prepared) -> pa.Array:
        """The answers of all rows, each key with a counter of its own that is then forgotten."""
        fed = self.fed(table)
        out, beyond = self._room(fed)

        def run(first: int, last: int) -> int:
            one = State.of(1, self.stride, False)
            return self._run(one, _NO_SLOTS, fed, first, last, out, beyond)

        threads = table.threads if table.size > _SMALL else 1
        ends = np.searchsorted(fed.offsets, np.linspace(0, table.size, threads + 1)).tolist()
        pieces = [(first, last) for first, last in pairwise(ends) if last > first]
        if len(pieces) > 1:
            with ThreadPoolExecutor(len(pieces)) as pool:
                too_large = sum(pool.map(run, *zip(*pieces, strict=True)))
        else:
            too_large = run(0, len(fed.offsets) - 1)
        return self.checked(table, fed, out, beyond, too_large)

    def feed(self, table: Prepared, fed: Fed, state: State, slots: Array) -> pa.Array:
        """The answers of the rows that are fed, to the counters that the slots say."""
        out, beyond = self._room(fed)
        runs = len(fed.offsets) - 1
        too_large = self._run(state, slots, fed, 0, runs, out, beyond)
        return self.checked(table, fed, out, beyond, too_large)

    def _room(self, fed: Fed) -> tuple[Array, Array]:
        size = len(fed.values)
        return np.empty(size), np.zeros(size if self.timed else 0, np.bool_)

    def _run(
        self, state: State, slots: Array, fed: Fed, first: int, last: int, out: Array, beyond: Array
    ) -> int:
        start = (state.rows, self.stride, self.numbers, self.scale, slots)
        if not self.timed:
            over_rows(*start, fed.offsets, fed.values, first, last, out)
            return 0
        rest = (state.now, state.opened, self.limit, self.length, fed.offsets, fed.time, fed.values)
        return int(over_ticks(*start, *rest, first, last, out, beyond))

    def checked(
        self, table: Prepared, fed: Fed, out: Array, beyond: Array, too_large: int
    ) -> pa.Array:
        """Answers; what was too large is an error, or null, or counts as the largest."""
        missing = fed.flagged
        if too_large and not self.aggregate.clamp:
            if self.aggregate.overflow == "error":
                raise self._beyond(table, fed, int(np.argmax(beyond)))
            missing = beyond if missing is None else missing | beyond
        return array_of(out, missing)

    def _beyond(self, table: Prepared, fed: Fed, row: int) -> BadValue:
        what = "rows" if isinstance(self.aggregate, ApproxCount) else "values"
        whose = _key_text(table, row) if len(fed.values) == table.size else ""
        assert fed.time is not None
        return BadValue(
            f"{self.aggregate!r}: the {what} of the tick of time {fed.time[row]}{whose} come to "
            f"more than maximum={self.limit}: give a larger maximum=, a shorter tick=, or "
            "clamp=True"
        )

    def _values(self, table: Prepared) -> tuple[Array, Array | None]:
        """What every row is worth, missing ones nothing; and the rows that were out of range."""
        aggregate = self.aggregate
        if not aggregate.columns:
            return np.ones(table.size, np.int64), None
        column = table.column(aggregate.columns[0])
        valid = column.valid
        if aggregate.nan == "missing" and column.is_float:
            good = ~np.isnan(column.values)
            valid = good if valid is None else good & valid
        if isinstance(aggregate, ApproxCount):
            if pa.types.is_boolean(column.type):
                return column.filled(0), None
            present = np.ones(table.size, np.int64)
            return (present if valid is None else valid.astype(np.int64)), None
        return self._whole(table, column, valid)

    def _whole(
        self, table: Prepared, column: Column, valid: Array | None
    ) -> tuple[Array, Array | None]:
        if column.words is not None or not column.is_number:
            raise BadValue(
                f"{self.aggregate!r}: column {column.name!r} has type {column.type}; it takes "
                "whole numbers. Scale and cast it first"
            )
        values = column.values if valid is None else np.where(valid, column.values, 0)
        good = (values >= 0) & (values <= self.limit)
        if column.is_float:
            good &= values == np.floor(values)
        if good.all():
            return values.astype(np.int64, copy=False), None
        clamped = np.clip(np.nan_to_num(values, nan=0.0), 0, self.limit).astype(np.int64)
        fractions = ~(values == np.floor(values)) if column.is_float else np.zeros(1, np.bool_)
        if self.aggregate.clamp and not fractions.any():
            return clamped, None
        if self.aggregate.overflow == "null":
            return clamped, ~good
        row = int(np.argmax(fractions if fractions.any() else ~good))
        raise BadValue(
            f"{self.aggregate!r}: column {column.name!r}, row {table.original_row(row)}"
            f"{_key_text(table, row)}: {values[row]} is no whole number from 0 to {self.limit}, "
            "for which the error bound holds. Scale values, give a larger maximum=, or clamp=True "
            "to take what is beyond as the nearest of them"
        )


def _key_text(table: Prepared, row: int) -> str:
    if not table.key:
        return ""
    place = table.original_row(row)
    shown = ", ".join(repr(table.table[name][place].as_py()) for name in table.key)
    return f" (key {shown})"


def machines_of(spec: Rolling, clock: Clock | None) -> list[Machine]:
    """The sequential outputs of a specification, over times of this clock."""
    found = []
    for name, aggregate, label in spec.sequential:
        assert isinstance(aggregate, Approximate)
        found.append(Machine(spec, name, aggregate, label, clock))
    return found


def sequential_answers(spec: Rolling, table: Prepared) -> dict[str, pa.Array]:
    """All sequential outputs of a table, in sorted order."""
    return {machine.name: machine.answers(table) for machine in machines_of(spec, table.clock)}


class Counters:
    """The states of some machines for some keys."""

    def __init__(self, machines: Sequence[Machine], keys: Arrays, size: int) -> None:
        self.machines, self.keys, self.size = machines, keys, size
        self.states = [State.of(size, m.stride, m.timed) for m in machines]

    def places(self, keys: Arrays, count: int) -> Array:
        """Where the counters of distinct keys are; those that have none get one."""
        before = self.size
        if not keys:
            slots, total = np.zeros(count, np.int64), 1
        else:
            names = [str(place) for place in range(len(keys))]
            mine = self.keys or [array[:0] for array in keys]
            both = [pa.concat_arrays([a, b.cast(a.type)]) for a, b in zip(mine, keys, strict=True)]
            codes, total = key_codes(pa.table(both, names=names), tuple(names))
            slots = codes[before:]
            total = total if len(codes) else 0
            new = array_of(slots >= before)
            self.keys = [
                pa.concat_arrays([a, b.cast(a.type).filter(new)])
                for a, b in zip(mine, keys, strict=True)
            ]
        if total > before:
            self._grow(total)
        return slots

    def _grow(self, size: int) -> None:
        more = size - self.size
        for place, machine in enumerate(self.machines):
            old, new = self.states[place], State.of(more, machine.stride, machine.timed)
            self.states[place] = State(
                np.concatenate([old.rows, new.rows]),
                np.concatenate([old.now, new.now]),
                np.concatenate([old.opened, new.opened]),
            )
        self.size = size

    def feed(self, table: Prepared, slots: Array, rows: Array | None = None) -> dict[str, pa.Array]:
        """The answers of a table's rows, or of some of them; ``slots`` are those of its runs."""
        return {
            machine.name: machine.feed(table, machine.fed(table, rows), state, slots)
            for machine, state in zip(self.machines, self.states, strict=True)
        }

    def taken(self, places: Array) -> "Counters":
        """The counters of some keys."""
        chosen = array_of(places)
        made = Counters(self.machines, [array.take(chosen) for array in self.keys], 0)
        made.size = len(places)
        made.states = [
            State(
                state.rows.reshape(-1, machine.stride)[places].ravel(),
                state.now[places] if machine.timed else state.now,
                state.opened[places] if machine.timed else state.opened,
            )
            for machine, state in zip(self.machines, self.states, strict=True)
        ]
        return made


def keys_of_runs(table: pa.Table, key: tuple[str, ...], first: Array) -> Arrays:
    """The key of every run, from its first row."""
    return [plain_column(table[name]).take(array_of(first)) for name in key]


def scattered(answers: pa.Array, rows: Array) -> pa.Array:
    """Answers of some rows, and nothing for the others."""
    place: Any = np.cumsum(rows) - 1
    return (
        answers.take(array_of(place, ~rows)) if len(answers) else pa.nulls(len(rows), answers.type)
    )
