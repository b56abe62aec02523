"""What runs in Spark's Python workers; imports neither pyspark nor anything of the driver's."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windrow import columns
from windrow.aggregates import Count, Max, Mean, StdDev, Sum, exact
from windrow.columns.answer_types import fitting
from windrow.columns.as_of import AsOf
from windrow.columns.bucket import Bucket
from windrow.columns.carry import Carry, run_sorted
from windrow.columns.column import array_of, numbers_of, plain_column
from windrow.columns.gathered import gathered
from windrow.columns.middles import Middle
from windrow.columns.ordered import ORDER
from windrow.columns.ranges import Array
from windrow.columns.stream_plan import StreamPlan
from windrow.columns.stretch import OWN, SEGMENT_BITS, Reach, fold_runs, stretch_answers
from windrow.rolling import Rolling
from windrow.slides import rows, time
from windrow.spark.envelopes import settled
from windrow.stores import Memory
from windrow.stores.chunks import ChunkStore

_GATHERED = 1 << 20
_GIVEN_OUT = 1 << 16


def answer_sorted(
    spec: Rolling,
    batches: Iterable[pa.RecordBatch],
    kinds: dict[str, pa.DataType],
    by_number: bool,
) -> Iterator[pa.RecordBatch]:
    """Every row of a partition sorted by key, time and tie, or by one number, with its answers."""
    for table in run_sorted(batches, Carry(spec, by_number=by_number)):
        settled()
        yield from fitted(table, kinds).to_batches()


def fitted(table: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    """Answers in the types that were announced: one without any value has none of its own."""
    for place, (name, found) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        wanted = kinds.get(name, found)
        if found != wanted and not pa.types.is_timestamp(found):
            answers = fitting(f"answer {name!r}", table.column(place), wanted)
            table = table.set_column(place, name, answers)
    return table


def _numbers(table: pa.Table, name: str) -> Array:
    return numbers_of(plain_column(table[name]))


def fold_batches(
    spec: Rolling, batches: Iterable[pa.RecordBatch], labels: dict[int, str], ordered: bool
) -> Iterator[pa.RecordBatch]:
    """One row for each output and pair of ends: how many rows, and their partial as bytes."""
    for table in gathered(batches, lambda rows, _: not ordered and rows >= _GATHERED):
        rows: list[tuple[Any, ...]] = []
        for number, label in labels.items():
            rows += _folded(spec, table, number, label, ordered)
        if rows:
            names = ["hot", "own", "reach", "far", "near", "output", "rows", "partial"]
            kinds = [pa.int32()] * 6 + [pa.int64(), pa.binary()]
            columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.record_batch(columns, names=names)


def _folded(
    spec: Rolling, table: pa.Table, number: int, label: str, ordered: bool
) -> list[tuple[Any, ...]]:
    names = ("__windrow_hot", "__windrow_own")
    ends = (f"__windrow_far_{number}", f"__windrow_near_{number}")
    parts = [_numbers(table, name).astype(np.int64) for name in (*names, *ends)]
    between = parts[2] - parts[3] >= 2
    if not between.any():
        return []
    if not between.all():
        table = table.filter(array_of(between))
        parts = [part[between] for part in parts]
    together = np.zeros(table.num_rows, np.int64)
    for part in parts:
        together = together * (1 << 15) + (part + 1)
    encoded = array_of(together).dictionary_encode()
    codes = numbers_of(encoded.indices).astype(np.int64)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    found = fold_runs(spec, table, codes, len(first), label, ordered)
    outputs = {name: (i, aggregate) for i, (name, aggregate, _) in enumerate(spec.outputs)}
    rows: list[tuple[Any, ...]] = []
    for name, middles in found.items():
        output, aggregate = outputs[name]
        for group, middle in enumerate(middles):
            if middle.rows:
                hot, own, far, near = (int(part[first[group]]) for part in parts)
                data = aggregate.to_bytes(middle.partial)
                rows.append((hot, own, number, far, near, output, middle.rows, data))
    return rows


def answer_stretches(
    spec: Rolling,
    batches: Iterable[pa.RecordBatch],
    reaches: list[Reach],
    begins: dict[int, dict[str, int]],
    middles: dict[int, dict[str, tuple[bytes, int]]],
    names: list[str],
    kinds: dict[str, pa.DataType],
) -> Iterator[pa.RecordBatch]:
    """The own rows of the stretch that is in this partition, with their answers."""
    aggregates = {name: aggregate for name, aggregate, _ in spec.outputs}
    for table in gathered(batches, lambda *_: False):
        roles = _numbers(table, "__windrow_roles")
        segments = (roles & ((1 << OWN) - 1)) >> SEGMENT_BITS
        for segment in np.unique(segments).tolist():
            here = table
            if segments[0] != segment or (segments != segment).any():
                here = table.filter(array_of(segments == segment))
            known = {
                name: Middle(aggregates[name].from_bytes(data), rows)
                for name, (data, rows) in middles.get(segment, {}).items()
            }
            places = None
            if "__windrow_place" in here.column_names:
                places = _numbers(here, "__windrow_place")
            mine = _numbers(here, "__windrow_roles")
            answers, own = stretch_answers(
                spec, here.select(names), mine, places, reaches, begins[segment], known
            )
            out = here.select(names)
            if len(own) < out.num_rows:
                out = out.filter(array_of(_mask(own, out.num_rows)))
            for name, array in answers.items():
                out = out.append_column(name, array)
            yield from fitted(out, kinds).to_batches(max_chunksize=_GIVEN_OUT)


def _mask(rows: Array, size: int) -> Array:
    mask: Array = np.zeros(size, np.bool_)
    mask[rows] = True
    return mask


def warm_up() -> None:
    """Load every kernel once, on a few rows."""
    columns.warm_up()
    table = pa.table({"k": [0, 0, 1], "t": [1, 2, 3], "x": [1.0, 2.0, 4.0]})
    spec = Rolling(key="k", time="t", windows=[time(2)], aggregates=[Sum("x"), Max("x")])
    for _ in run_sorted(table.to_batches(), Carry(spec)):
        pass
    numbered = table.append_column(ORDER, table["t"])
    for _ in run_sorted(numbered.to_batches(), Carry(spec, by_number=True)):
        pass
    reach = Reach("2", "time", -1, 1)
    middles = {"x_max_2": Middle(5.0, 1), "x_sum_2": Middle(exact.of_float(5.0), 1)}
    roles = np.full(3, (1 << OWN) + 1)
    stretch_answers(spec, table, roles, None, [reach], {"time": 1}, middles)
    fold_runs(spec, table, np.zeros(3, np.int64), 1, "2", False)
    _warm_up_streams()


def _warm_up_streams() -> None:
    aggregates = [Sum("x"), Sum("i"), Mean("x"), Max("x"), Max("i"), StdDev("x"), Count()]
    spec = Rolling(
        key="k", time="t", windows=[time(5), rows(2, within=5)], aggregates=aggregates, threads=1
    )
    reaches = {label: Reach(label, "time", -4, 1) for label in spec.windows}
    store = ChunkStore(Memory())
    for turn in range(3):
        times = [3 * turn, 3 * turn + 1, 3 * turn + 2]
        table = pa.table({"k": [0, 0, 1], "t": times, "x": [1.0, None, 4.0], "i": [1, 2, None]})
        bucket = Bucket(StreamPlan(spec, table.schema, reaches), store)
        bucket.advance([table], 3 * turn)
        bucket.close()


def answer_labels(
    spec: Rolling, batches: Iterable[pa.RecordBatch], strict: bool, kinds: dict[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """The labels of a partition of events and labels, with their answers."""
    names = [name for name, _, _ in spec.outputs]
    for table in run_sorted(batches, AsOf(spec, strict)):
        label = table["__windrow_label"].combine_chunks()
        fields = pa.Table.from_batches([pa.RecordBatch.from_struct_array(label)])
        for name in names:
            fields = fields.append_column(name, table[name])
        if fields.num_rows:
            yield from fitted(fields, kinds).to_batches(max_chunksize=_GIVEN_OUT)
