"""Windows kept by policies: from which row on, for every row; the last row is the row itself.

``low`` only moves forward, so one pass per key is enough: compiled where every policy can be
(``kept_kernel``), and otherwise interpreted, by the tree that ``Sliding`` uses.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numba import typeof

from windrow.aggregates import Count, Sum
from windrow.columns import exact, kept_functions, kept_kernel
from windrow.columns.kept_dimensions import Dimensions, NotCompiled, half_units, limited
from windrow.columns.own import first_line
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array, shared_out
from windrow.columns.template import load, load_with
from windrow.errors import BadValue, WindrowError
from windrow.held import InTree
from windrow.policies import Policy
from windrow.slides import Kept
from windrow.windows import Amta

_WHY = {
    kept_kernel.OVERFLOWS: "a window sums to more than 64 bits hold",
    kept_kernel.MISSING: "a window has no value that is not missing",
}


def kept_bounds(
    table: Prepared, label: str, window: Kept, since: Array | None, lo: Array, interpret: bool
) -> str:
    """Fill ``lo`` for every row, ``since`` being where the window's cuts begin; say how."""
    _check_columns(table, label, window)
    if not table.size:
        return "no rows"
    if interpret:
        reason = "asked for"
    else:
        try:
            return _compiled(table, window, since, lo)
        except NotCompiled as error:
            reason = str(error)
    _interpreted(table, label, window, since, lo)
    return f"interpreted, by a tree (AMTA): {reason}"


def _check_columns(table: Prepared, label: str, window: Kept) -> None:
    """Refuse what cannot be added, and numbers that would make a sum shrink."""
    for policy in window.policies:
        for about in policy.over:
            if type(about) is not Sum:
                continue
            column = table.column(about.columns[0])
            if not column.is_number and not pa.types.is_decimal(column.type):
                raise BadValue(
                    f"window {label!r}: column {column.name!r} has type {column.type}, which "
                    f"{about!r} cannot add"
                )
        bounded = policy.over[0]
        if policy.form == "at_most" and type(bounded) is Sum:
            column = table.column(bounded.columns[0])
            negative = column.values < 0
            if column.words is None and negative.any():
                row = int(np.flatnonzero(negative)[0])
                raise BadValue(
                    f"window {label!r}: column {column.name!r} is {column.values[row]} in row "
                    f"{table.original_row(row)}, and at_most({bounded!r}, {policy.limit!r}) adds "
                    "numbers that are not negative, so that fewer rows never sum to more"
                )


# --- compiled ------------------------------------------------------------------------------------


def _compiled(table: Prepared, window: Kept, since: Array | None, lo: Array) -> str:
    dimensions = Dimensions(table)
    scalars: dict[str, Any] = {}
    names: dict[str, Any] = {}
    blocks: list[Callable[[], str]] = []
    known: list[Any] = []
    for number, policy in enumerate(window.policies):
        blocks.append(_block(number, policy, dimensions, scalars, names, known))
    found = dimensions.found
    for d in found:
        names |= {d.named(name): value for name, value in d.names.items()}
        known.append((d.way, type(d.aggregate) if d.way == "own" else None))
    text = kept_kernel.render(found, list(scalars), "".join(block() for block in blocks))
    kernel = _kernel(text, names, tuple(known))
    begins = np.empty(0, np.int64) if since is None else since.astype(np.int64, copy=False)
    while True:
        given = [array for d in found for array in d.arrays.values()]
        arguments = (*given, *scalars.values(), table.offsets, begins)
        _build(kernel, (*arguments, 0, 1, lo), names)
        code, row = _run(kernel, arguments, table, lo)
        if code != kept_kernel.DOUBTFUL:
            break
        for d in found:
            if d.way == "float_sum":
                d.arrays["points"] = exact.checkpoints(d.arrays["x"])
    if code:
        raise NotCompiled(f"{_WHY[code]}, that of row {table.original_row(row)}")
    return "compiled, one pass: each row enters once and leaves once"


def _block(
    number: int,
    policy: Policy,
    dimensions: Dimensions,
    scalars: dict[str, Any],
    names: dict[str, Any],
    known: list[Any],
) -> Callable[[], str]:
    """What makes a policy's text, once all dimensions are known."""
    if policy.debug:
        raise NotCompiled("debug=True asks the policy about every run of rows")
    every = dimensions.found
    if policy.form == "useful":
        about = dimensions.ordered(policy.over[0])
        return lambda: kept_kernel.useful(about, every)
    if policy.form == "at_most":
        bounded = dimensions.bounded(policy.over[0])
        floats = bounded.answers == np.float64
        if len(policy.over) > 1:
            limit = dimensions.limit(policy.over[1], bounded)
            return lambda: kept_kernel.at_most(number, bounded, limit, every)
        value = limited(policy.limit, floats)
        scalars[f"limit_{number}"] = value
        if bounded.way == "float_sum":
            scalars[f"half_{number}"] = float(half_units(np.array([value]))[0])
        return lambda: kept_kernel.at_most(number, bounded, None, every)
    asked = [dimensions.asked(about) for about in policy.over]
    reason = kept_functions.why_not_compiled(policy.function, asked)
    if reason is not None:
        raise NotCompiled(f"{policy.label}: {reason}")
    names[f"function_{number}"] = kept_functions.compiled(policy.function)
    known.append(kept_functions.identity(policy.function))
    return lambda: kept_kernel.function(number, policy.together, asked, every)


_KNOWN: dict[Any, Any] = {}


def _kernel(text: str, names: dict[str, Any], known: tuple[Any, ...]) -> Any:
    """A kernel; one with functions of users' is not kept on disk."""
    if not names:
        return load(text, "kept").kept
    if (text, known) not in _KNOWN:
        _KNOWN[text, known] = load_with(text, names).kept
    return _KNOWN[text, known]


def _build(kernel: Any, arguments: tuple[Any, ...], names: dict[str, Any]) -> None:
    types = tuple(map(typeof, arguments))
    if not names:
        kernel.compile(types)
        return
    reason = _REFUSED.get((kernel, types))
    if reason is None:
        try:
            kernel.compile(types)
        except Exception as error:  # numba raises much more than its own errors
            reason = f"numba cannot compile it: {first_line(error)}"
            _REFUSED[kernel, types] = reason
    if reason is not None:
        raise NotCompiled(reason)


_REFUSED: dict[Any, str] = {}


def _run(kernel: Any, arguments: tuple[Any, ...], table: Prepared, lo: Array) -> tuple[int, int]:
    """The kernel over all keys, on all threads; the first reason for which one gave up."""
    offsets = table.offsets

    def work(first: int, last: int) -> Any:
        runs = np.searchsorted(offsets, [first, last])
        return kernel(*arguments, int(runs[0]), int(runs[1]), lo)

    try:
        ends = shared_out(table.size, table.threads if len(offsets) > 2 else 1, work)
    except Exception as error:  # of a user's function: Python says it in its own words
        raise NotCompiled(f"it raised {type(error).__name__}") from error
    return next((end for end in ends if end[0]), (0, 0))


# --- interpreted ---------------------------------------------------------------------------------


def _interpreted(table: Prepared, label: str, window: Kept, since: Array | None, lo: Array) -> None:
    columns = {c for policy in window.policies for about in policy.over for c in about.columns}
    lists = {name: table.sorted_arrow(name).to_pylist() for name in columns}
    for start, end in pairwise(table.offsets.tolist()):
        held = InTree(Amta, Count(), window.policies)
        low = start
        for i in range(start, end):
            row = {name: values[i] for name, values in lists.items()}
            try:
                partial = held.lift(row)
                if since is not None:
                    held.evict(max(0, int(since[i]) - low))
                held.push(None, partial)
            except WindrowError as error:
                message = f"window {label!r}, row {table.original_row(i)}: {error}"
                raise type(error)(message) from error
            except Exception as error:
                error.add_note(f"in the window {label!r} of row {table.original_row(i)}")
                raise
            low = i + 1 - len(held)
            lo[i] = low
