"""A table of this process looked at: what goes in, what comes out, key by key."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.looks.axis import Array, Axis
from windrow.looks.facts import (
    STRETCHES,
    AnswerFacts,
    ColumnFacts,
    DataFacts,
    Example,
    Key,
    Limits,
    OrderFacts,
    label_of,
)
from windrow.looks.points import Columns, line
from windrow.looks.spread import Spread, spread
from windrow.rolling import Rolling, window_columns


def roles(spec: Rolling, names: list[str]) -> dict[str, str]:
    """The columns that a specification looks at, and what they are to it."""
    found = dict.fromkeys(spec.key, "key")
    if spec.time is not None:
        found.setdefault(spec.time, "time")
    for name in spec.tie:
        found.setdefault(name, "tie")
    for aggregate in spec.aggregates:
        for name in aggregate.reads:
            found.setdefault(name, "value")
    for window in spec.windows.values():
        for name in window_columns(window):
            found.setdefault(name, "value")
    return {name: role for name, role in found.items() if name in names}


class Keyed:
    """Rows by key and time: where each key's rows are, in order."""

    def __init__(self, spec: Rolling, table: pa.Table) -> None:
        self.table, self.rows = table, table.num_rows
        self.names = [name for name in spec.key if name in table.column_names]
        self.codes = _codes([table[name] for name in self.names], self.rows)
        timed = spec.time in table.column_names
        self.axis = Axis.of(table.schema.field(spec.time).type, spec.unit) if timed else Axis("row")
        if timed:
            self.times, self.valid = self.axis.ticks(table[spec.time])
        else:
            self.times, self.valid = np.arange(self.rows), np.ones(self.rows, bool)
        order = np.lexsort((self.times, self.codes))
        self.order = order[self.valid[order]]
        sorted_codes = self.codes[self.order]
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        self.starts, self.ends = starts, np.append(starts[1:], len(self.order))[: len(starts)]

    def example(self, row: Any, ordered: bool = True) -> Example:
        """A row to look at."""
        place = int(row)
        key = label_of(self.key(place)) if self.names else None
        time = None
        if self.axis.kind != "row" and self.valid[place]:
            time = self.axis.shown(self.times[place].item())
        return Example(key, time, place + 1 if ordered else None)

    def key(self, row: int) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(self.table[name][row].as_py() for name in self.names)


def _codes(columns: list[Any], rows: int) -> Array:
    """A number for each key, in the order in which keys appear."""
    codes = np.zeros(rows, np.int64)
    for column in columns:
        joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = pc.dictionary_encode(joined, null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        places = np.asarray(encoded.indices)
        codes = codes * (len(encoded.dictionary) + 1) + places
        _, codes = np.unique(codes, return_inverse=True)
    return codes


# --- what goes in --------------------------------------------------------------------------------


def data_facts(
    spec: Rolling, table: pa.Table, ordered: bool, keyed: Keyed | None = None
) -> DataFacts:
    """The input, of which ``ordered`` says whether rows come in an order that means something."""
    keyed = keyed or Keyed(spec, table)
    made = DataFacts(table.num_rows)
    for name, role in roles(spec, table.column_names).items():
        made.columns.append(_column(table[name], name, role, keyed, ordered))
    if keyed.axis.kind != "row" and len(keyed.order):
        times = keyed.times[keyed.valid]
        made.axis, made.first, made.last = keyed.axis, times.min().item(), times.max().item()
        places = Columns(made.first, made.last, STRETCHES).of(times)
        made.stretches = np.bincount(places, minlength=STRETCHES).tolist()
        made.order = _order(spec, keyed, ordered)
    return made


def _column(column: Any, name: str, role: str, keyed: Keyed, ordered: bool) -> ColumnFacts:
    made = ColumnFacts(name, role, nulls=column.null_count)

    def note(kind: str, where: Any) -> int:
        count = int(pc.sum(where).as_py() or 0)
        if count:
            row = pc.index(where, pa.scalar(True)).as_py()
            made.examples[kind] = keyed.example(row, ordered)
        return count

    if made.nulls:
        note("nulls", column.is_null())
    if pa.types.is_floating(column.type):
        made.nans = note("nans", pc.is_nan(column))
        made.infinities = note("infinities", pc.is_inf(column))
    if len(column) > 1 and made.nulls < len(column):
        made.constant = _constant(column)
    return made


def _constant(column: Any) -> str | None:
    """The only value, where there is but one; nulls aside."""
    try:
        ends = pc.min_max(column).as_py()
    except pa.ArrowNotImplementedError:
        return None
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None
    return label_of((ends["min"],)) if ends["min"] == ends["max"] else None


def _order(spec: Rolling, keyed: Keyed, ordered: bool) -> OrderFacts:
    made = OrderFacts(rows=len(keyed.order))
    times = keyed.times[keyed.order]
    follows = np.ones(len(times), bool)
    follows[keyed.starts] = False
    steps = np.diff(times, prepend=times[:1])
    equal = follows & (steps == 0)
    made.equal = int(equal.sum())
    if made.equal:
        made.examples["equal"] = keyed.example(keyed.order[np.argmax(equal)], ordered)
    if ordered:
        _disorder(keyed, made)
    after = np.where(follows, steps, 0)
    for label, window in spec.windows.items():
        length = keyed.axis.length(window)
        if length is not None:
            made.pauses[label] = int((after > length).sum())
    longest = int(np.argmax(after))
    if after[longest] > 0:
        made.longest = keyed.axis.span(after[longest].item())
        made.examples["longest"] = keyed.example(keyed.order[longest], ordered)
    return made


def _disorder(keyed: Keyed, made: OrderFacts) -> None:
    """Rows after a later one of their key, by what each row's place would be in order."""
    places = np.empty(keyed.rows, np.int64)
    places[keyed.order] = np.arange(len(keyed.order))
    given = np.flatnonzero(keyed.valid)
    given = given[np.argsort(keyed.codes[given], kind="stable")]
    late = places[given] < np.maximum.accumulate(places[given])
    made.disordered = int(late.sum())
    if made.disordered:
        first = given[np.flatnonzero(late)].min()
        made.examples["disordered"] = keyed.example(first)


# --- what comes out ------------------------------------------------------------------------------


def drawn(spec: Rolling, schema: pa.Schema) -> tuple[list[str], list[str]]:
    """The answers that are numbers, and those that are not."""
    numbers: list[str] = []
    others: list[str] = []
    for name, _, _ in spec.outputs:
        if name in schema.names:
            (numbers if is_number(schema.field(name).type) else others).append(name)
    return numbers, others


def is_number(type_: pa.DataType) -> bool:
    """Whether values can be drawn."""
    t = pa.types
    return bool(
        t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_) or t.is_boolean(type_)
    )


def both_facts(
    spec: Rolling, table: pa.Table, limits: Limits, wanted: Any, ordered: bool
) -> tuple[AnswerFacts, DataFacts | None]:
    """The output, and the input where its rows are beside the answers; sorted once."""
    keyed = Keyed(spec, table)
    made = answer_facts(spec, table, limits, wanted, keyed)
    return made, data_facts(spec, table, ordered, keyed) if spec.answers_rows else None


def answer_facts(
    spec: Rolling,
    table: pa.Table,
    limits: Limits,
    wanted: Any = None,
    keyed: Keyed | None = None,
) -> AnswerFacts:
    """The output: lines of some keys, the spread of all."""
    keyed = keyed or Keyed(spec, table)
    made = AnswerFacts(table.num_rows, keys=len(keyed.starts), axis=keyed.axis)
    numbers, others = drawn(spec, table.schema)
    keys, outputs, columns = limits.share(len(keyed.starts), len(numbers))
    note_left_out(made, numbers, others, outputs)
    runs = _chosen_runs(keyed, keys, wanted)
    values = {name: floats(table[name]) for name in numbers[:outputs]}
    for place, run in enumerate(runs):
        rows = keyed.order[keyed.starts[run] : keyed.ends[run]]
        times = keyed.times[rows]
        ends = (times[0].item(), times[-1].item())
        held = keyed.key(int(rows[0]))
        made.chosen.append(Key(label_of(held), held, len(rows), *ends))
        for name, column in values.items():
            made.lines[place, name] = line(times, column[rows], Columns(*ends, columns))
    for name, column in values.items():
        missing = table[name].null_count
        there = column[np.asarray(table[name].is_valid())]
        made.spreads[name] = _spread(there, table.num_rows, missing, limits)
    return made


def _spread(values: Array, rows: int, missing: int, limits: Limits) -> Spread:
    """Of all values, or of a sample where they are many."""
    if len(values) <= _MANY * limits.sample:
        return spread(values, rows, missing)
    finite = np.isfinite(values)
    ends = (values[finite].min(), values[finite].max()) if finite.any() else None
    some = np.random.default_rng(1).integers(0, len(values), limits.sample)
    made = spread(values[some], rows, missing, ends)
    made.odd = int(len(values) - finite.sum())
    return made


_MANY = 5


def note_left_out(made: AnswerFacts, numbers: list[str], others: list[str], outputs: int) -> None:
    """Say what is not drawn."""
    if others:
        shown = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
        made.left_out.append(f"{shown}: not numbers, so they are not drawn")
    if len(numbers) > outputs:
        made.left_out.append(
            f"the first {outputs:,} of {len(numbers):,} answers are drawn, to keep this file small"
        )


def _chosen_runs(keyed: Keyed, count: int, wanted: Any) -> list[int]:
    """The keys asked for, else those with the most rows, in their own order."""
    lengths = keyed.ends - keyed.starts
    if wanted:
        asked = {tuple(map(str, key)) for key in wanted}
        found = {
            tuple(map(str, keyed.key(int(keyed.order[start])))): run
            for run, start in enumerate(keyed.starts)
        }
        runs = [found[key] for key in asked if key in found][:count]
        if runs:
            return sorted(runs)
    most = np.argsort(-lengths, kind="stable")[:count]
    return [int(run) for run in most]


def floats(column: Any) -> Array:
    """Numbers to draw; NaN where there is none."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    floats = column.cast(pa.float64(), safe=False)
    return np.asarray(floats.combine_chunks().to_numpy(zero_copy_only=False))
