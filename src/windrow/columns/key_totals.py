"""Totals of keys as they are kept, and one key's answers from them."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from windrow.columns.arranged import Arranged, Piece, answer, lifted, slots_of
from windrow.columns.column import array_of, numbers_of, plain_column, typed
from windrow.columns.forms import form_of
from windrow.columns.key_chunks import keys_of
from windrow.columns.slots import Slot
from windrow.columns.stream_plan import ticks
from windrow.columns.stretch import Reach
from windrow.rolling import Rolling
from windrow.slides import Session

LAST = "last.0"
"""When a key's last row was, beside the totals of a session."""


def totals_of_rows(piece: Piece, slots: Iterable[Slot], session: bool = False) -> pa.Table:
    """Folded rows as they are kept: the columns of the key, and of each slot."""
    columns = {f"key.{i}": array for i, array in enumerate(piece.keys)}
    for slot in slots:
        arrays = enumerate(piece.slots[slot.name])
        columns |= {f"{slot.name}.{i}": array for i, array in arrays}
    return pa.table(columns | ({LAST: array_of(piece.time)} if session else {}))


def rows_of_totals(table: pa.Table, slots: Iterable[Slot], before: int) -> Piece:
    """Stand-ins for all rows before a time, or of a session."""
    found = {}
    for slot in slots:
        own = [name for name in table.column_names if name.rpartition(".")[0] == slot.name]
        found[slot.name] = [plain_column(table[name]) for name in own]
    times = np.full(table.num_rows, before - 1, np.int64)
    if LAST in table.column_names:
        times = numbers_of(plain_column(table[LAST]))
    return Piece(keys_of(table), times, found)


def key_answers(
    spec: Rolling,
    label: str,
    reach: Reach,
    totals: tuple[pa.Table, int] | None,
    rows: pa.Table,
    key: pa.Table,
    at: int,
) -> dict[str, pa.Array]:
    """One key's answers at a time: from its totals, which are of all rows before another time, and
    the rows behind them."""
    forms = [(name, form_of(a, rows.schema)) for name, a, over in spec.outputs if over == label]
    slots = slots_of([form for _, form in forms])
    pieces = [lifted(rows, spec.key, ticks(rows, spec), slots)]
    if totals is not None:
        pieces.insert(0, rows_of_totals(totals[0], slots, totals[1]))
    own = {name: key[name] for name in spec.key}
    own[str(spec.time)] = typed(np.array([at]), None, rows.schema.field(str(spec.time)).type)
    asked = pa.table({f.name: own.get(f.name, pa.nulls(1, f.type)) for f in rows.schema})
    moment = lifted(asked, spec.key, np.array([at], np.int64), slots)
    arranged = Arranged(pieces, moment, np.array([0, 1], np.int64), beside=True)
    if isinstance(spec.windows[label], Session):
        ranges = arranged.sessions(-reach.start, reach.end)
    else:
        ranges = arranged.reach(reach.start, reach.end)
    return {name: answer(form, arranged, ranges, spec.min_rows)[0] for name, form in forms}
