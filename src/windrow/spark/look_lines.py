"""Lines of a Spark table, reduced to what is drawn where the rows are, and then once more."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.looks.points import Columns, corners

Array = np.ndarray[Any, Any]
_PENDING = 200_000
"""Points of a line that wait in a worker before they are reduced."""


def lines_of(
    rows: Any, cut: list[Columns], few: list[bool]
) -> dict[tuple[int, int], tuple[Array, Array]]:
    """By place of the key and of the answer: times and values, in order of time.

    ``rows`` has ``place``, ``t`` and the answers; ``cut`` says how each key's time is cut, and
    ``few`` which keys have so few rows that all are drawn.
    """
    kind = rows.schema["t"].dataType.simpleString()
    out = f"place int, output int, t {kind}, v double"
    parts = rows.mapInArrow(_reduced(cut, few), out)
    reduced = parts.groupBy("place", "output").applyInArrow(_reduced_again(cut, few), out)
    table = reduced.toArrow()
    found: dict[tuple[int, int], tuple[Array, Array]] = {}
    places, outputs = (np.asarray(table[name]) for name in ("place", "output"))
    times, values = np.asarray(table["t"]), np.asarray(table["v"])
    for place, output in sorted(set(zip(places.tolist(), outputs.tolist(), strict=True))):
        here = np.flatnonzero((places == place) & (outputs == output))
        here = here[np.lexsort((values[here], times[here]))]
        found[place, output] = (times[here], values[here])
    return found


def kept(times: Array, values: Array, cut: Columns, few: bool) -> tuple[Array, Array]:
    """The points of one line that are drawn, in order of time."""
    order = np.lexsort((values, times))
    times, values = times[order], values[order]
    if few:
        return times, values
    drawn = corners(times, values, cut)
    return times[drawn], values[drawn]


def _reduced(cut: list[Columns], few: list[bool]) -> Callable[[Any], Any]:
    def windrow_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pending: dict[tuple[int, int], list[tuple[Array, Array]]] = {}
        for batch in batches:
            places, times = (np.asarray(batch.column(i)) for i in (0, 1))
            for place in np.unique(places).tolist():
                here = places == place
                for output in range(batch.num_columns - 2):
                    column = batch.column(output + 2)
                    values = column.to_numpy(zero_copy_only=False)[here]
                    line = pending.setdefault((place, output), [])
                    line.append((times[here], values))
                    if sum(len(part[0]) for part in line) > _PENDING:
                        line[:] = [_joined(line, cut[place], few[place])]
        for (place, output), line in pending.items():
            yield _batch(place, output, *_joined(line, cut[place], few[place]))

    return windrow_lines


def _reduced_again(cut: list[Columns], few: list[bool]) -> Callable[[pa.Table], pa.Table]:
    def windrow_line(table: pa.Table) -> pa.Table:
        place, output = table["place"][0].as_py(), table["output"][0].as_py()
        times, values = np.asarray(table["t"]), np.asarray(table["v"])
        made = kept(times, values, cut[place], few[place])
        return pa.Table.from_batches([_batch(place, output, *made)])

    return windrow_line


def _joined(line: list[tuple[Array, Array]], cut: Columns, few: bool) -> tuple[Array, Array]:
    times, values = (np.concatenate([part[i] for part in line]) for i in (0, 1))
    return kept(times, values, cut, few)


def _batch(place: int, output: int, times: Array, values: Array) -> pa.RecordBatch:
    count = len(times)
    columns = [
        pa.array(np.full(count, place, np.int32)),
        pa.array(np.full(count, output, np.int32)),
        pa.array(times),
        pa.array(np.asarray(values, np.float64)),
    ]
    return pa.RecordBatch.from_arrays(columns, ["place", "output", "t", "v"])
