"""Answers of aggregates written by users, compiled where they can be; and Python's of any other."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import EMPTY, Product
from windrow.columns import own
from windrow.columns.answer_types import typed
from windrow.columns.column import array_of
from windrow.columns.middles import LARGEST_EXACT, lifted_runs, needs_lists
from windrow.columns.plain import WHOLE, check_types
from windrow.columns.ranges import Array
from windrow.columns.task import Task, input_columns, too_large


def interpreted(task: Task) -> pa.Array:
    """Python's own numbers, one by one: decimals, texts, and functions that cannot be compiled."""
    lists = [task.table.sorted_arrow(name).to_pylist() for name in task.aggregate.columns]
    if not lists:
        lists = [[0] * task.table.size]
    rows: list[Any] = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
    if task.middle is not None:
        count = task.size - task.table.size
        known = [EMPTY] * (count - 1) + [task.middle.partial]
        rows[task.place : task.place] = [own.Lifted(partial) for partial in known]
    return by_python(task, rows, [column.type for column in task.columns])


def by_python(task: Task, rows: list[Any], kinds: list[pa.DataType]) -> pa.Array:
    """Answers over rows of values, or of partials."""
    ranges, asked = task.enough()
    found = own.run_interpreted(task.aggregate, rows, ranges)
    if asked is None:
        return task.listed(found, kinds)
    answers = [task.aggregate.empty] * len(task.ranges)
    for row, answer in zip(asked.tolist(), found, strict=True):
        answers[row] = answer
    return task.listed(answers, kinds)


def compiled_answers(
    task: Task,
    compiled: own.Compiled,
    fields: tuple[Array, ...],
    valid: Array | None,
    counts: Array | None,
) -> Array:
    """Answers over partials, some of which may stand for many rows; 0 where there are too few."""
    ranges, asked = task.enough()
    found = own.run_compiled(compiled, fields, valid, counts, ranges, 1)
    if asked is None:
        return found
    answers = np.zeros(len(task.ranges), found.dtype)
    answers[asked] = found
    return answers


def own_answers(task: Task) -> pa.Array:
    """Folds of an aggregate's own functions."""
    check_types(task.aggregate, task.columns)
    if task.middle is not None:
        return _own_with_middle(task)
    valid, counts = task.together()
    if all(column.words is None for column in task.columns):
        compiled = own.compile_aggregate(
            task.aggregate, tuple(c.values.dtype for c in task.columns), valid is not None
        )
        if compiled.module is not None:
            inputs = tuple(column.filled(0) for column in task.columns)
            try:
                out = own.run_compiled(compiled, inputs, valid, counts, task.ranges, task.least)
            except Exception:  # Python itself knows at which value
                return interpreted(task)
            if type(task.aggregate) is Product and not task.column.is_float:
                return whole_products(task, out, inputs, valid, counts, lifted=False)
            return typed(task.aggregate, task.numbers(out))
    return interpreted(task)


def whole_products(
    task: Task,
    floats: Array,
    inputs: tuple[Array, ...],
    valid: Array | None,
    counts: Array | None,
    lifted: bool,
) -> pa.Array:
    """Products of integers, given as floats; once more as integers where floats do not tell."""
    missing = task.missing()
    size = np.abs(floats)
    if not (size < LARGEST_EXACT).all():
        kinds = () if lifted else (np.dtype(np.int64),)
        compiled = own.compile_aggregate(WHOLE, kinds, valid is not None, lifted)
        least = 1 if lifted else task.least  # a lifted row may stand for many
        whole = own.run_compiled(compiled, inputs, valid, counts, task.ranges, least)
        bad = (size > 2.0**63) | ((size == 2.0**63) & ((whole < 0) != (floats < 0)))
        missing = too_large(task, bad, missing, lambda row: f"about {floats[row]:.3g}")
        return array_of(whole, mask=missing)
    return array_of(floats.astype(np.int64), mask=missing)


def _own_with_middle(task: Task) -> pa.Array:
    """Rows are lifted first: the middle's partial is then a row like the others."""
    assert task.middle is not None
    columns = input_columns(task.aggregate, task.table)
    if needs_lists(task.aggregate, columns):
        return interpreted(task)
    masks = [column.valid for column in columns if column.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else None
    single = np.arange(task.table.size + 1)
    fields = lifted_runs(task.aggregate, columns, valid, single)
    partial = task.middle.partial
    parts = partial if isinstance(task.aggregate.identity, tuple) else (partial,)
    fields = [np.insert(f, task.place, p) for f, p in zip(fields, parts, strict=True)]
    compiled = own.compile_aggregate(task.aggregate, (), False, lifted=True)
    out = compiled_answers(task, compiled, tuple(fields), None, None)
    if type(task.aggregate) is Product and not task.column.is_float:
        return whole_products(task, out, tuple(fields), None, None, lifted=True)
    return typed(task.aggregate, task.numbers(out))
