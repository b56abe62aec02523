"""Are two tables of answers the same, bit by bit? And are answers those of the oracle?"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.rolling import Rolling
from windrow.times import Duration, duration
from windrow.windows import Recalc
from windrow.windows.compare import equal

_SHOWN = 3


@dataclass
class Compared:
    """How many values were looked at, and how many are not the same."""

    values: int = 0
    different: int = 0
    examples: list[str] = field(default_factory=list)

    def note(self, different: int, example: str) -> None:
        """Some that are not."""
        self.different += different
        if len(self.examples) < _SHOWN:
            self.examples.append(example)


def compared(found: pa.Table, wanted: pa.Table, by: str) -> Compared:
    """Every value of every column of ``wanted``, with rows matched by a number that each has once.

    Floats are compared as the 64 bits that they are. Rows that are missing, or there twice, differ
    in all their values.
    """
    result = Compared(wanted.num_rows * wanted.num_columns)
    found, wanted = (_in_order(table, by) for table in (found, wanted))
    if not found[by].equals(wanted[by]):
        result.note(result.values, f"{found.num_rows:,} rows, not the {wanted.num_rows:,} expected")
        return result
    for name in wanted.column_names:
        if name not in found.column_names:
            result.note(wanted.num_rows, f"there is no column {name}")
            continue
        left, right = found[name].combine_chunks(), wanted[name].combine_chunks()
        if left.type != right.type:
            result.note(wanted.num_rows, f"{name} has type {left.type}, not {right.type}")
            continue
        places = np.flatnonzero(_differ(left, right))
        if len(places):
            first = int(places[0])
            row = f"{name} where {by} is {wanted[by][first]}"
            result.note(len(places), f"{row}: {left[first]}, not {right[first]}")
    return result


def _in_order(table: pa.Table, by: str) -> pa.Table:
    return table.take(pc.sort_indices(table[by])).combine_chunks()


def _differ(left: pa.Array, right: pa.Array) -> np.ndarray[Any, Any]:
    missing, other_missing = (np.asarray(column.is_null()) for column in (left, right))
    if pa.types.is_floating(left.type):
        bits = [np.asarray(column.fill_null(0.0)).view(np.int64) for column in (left, right)]
        unequal = bits[0] != bits[1]
    else:
        unequal = np.asarray(pc.fill_null(pc.not_equal(left, right), False))
    differ: np.ndarray[Any, Any] = (missing != other_missing) | (unequal & ~missing)
    return differ


def recomputed(features: Rolling, answers: pa.Table, flights: Iterable[int]) -> Compared:
    """The answers of some flights once more, each from scratch by ``Recalc``, row after row.

    Rows are in order of ``flight``; windows are of time, and end with the row.
    """
    result = Compared()
    key, time, tie = features.key[0], str(features.time), features.tie[0]
    keys, ties = answers[key].to_numpy(zero_copy_only=False), answers[tie].to_numpy()
    times = answers[time].cast(pa.int64()).to_numpy()
    inputs = {name: answers[name].to_pylist() for a in features.aggregates for name in a.columns}
    lengths = {name: _microseconds(name) for name in features.windows}
    for flight in flights:
        own, now = keys == keys[flight], times[flight]
        for name, aggregate, window in features.outputs:
            inside = np.flatnonzero(own & (times > now - lengths[window]) & (times <= now))
            oracle = Recalc(aggregate)
            for row in inside[np.lexsort((ties[inside], times[inside]))].tolist():
                oracle.insert(inputs[aggregate.columns[0]][row])
            result.values += 1
            want, got = oracle.query(), answers[name][flight].as_py()
            if not equal(got, want):
                result.note(1, f"{name} of flight {flight}: {got}, not {want}")
    return result


def _microseconds(window: str) -> int:
    length = duration(window, "window")
    return length.nanoseconds // 1000 if isinstance(length, Duration) else length
