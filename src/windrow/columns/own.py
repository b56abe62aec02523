"""Aggregates written by users: compiled where their functions can be, interpreted where not."""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import from_dtype, typeof
from numba.core.errors import NumbaError
from numba.np.numpy_support import as_dtype

from windrow.aggregates import EMPTY, Aggregate, canonical
from windrow.columns.jit import njit
from windrow.columns.options import NotPlain, without_self
from windrow.columns.plain import twin
from windrow.columns.ranges import Array, Ranges
from windrow.columns.template import from_functions, load, load_with, render
from windrow.columns.texts import Definitions, constants, definitions
from windrow.shared import BInt
from windrow.windows import Recalc, TwoStacksLite

_TYPES = {float: "np.float64", int: "np.int64", bool: "np.bool_"}
_FUNCTIONS = ("lift", "combine", "lower")


@dataclass(frozen=True)
class Compiled:
    """An aggregate's kernels and the type of its answers, or the reason why there are none."""

    module: ModuleType | None
    answers: np.dtype[Any] | None
    reason: str


@dataclass(frozen=True)
class Lifted:
    """Among rows: one whose partial is known already."""

    partial: Any


def compile_aggregate(
    aggregate: Aggregate, kinds: tuple[np.dtype[Any], ...], nulls: bool, lifted: bool = False
) -> Compiled:
    """The kernels of an aggregate written as plain functions, for columns of some kinds.

    ``lifted``: the columns are the fields of partials.
    """
    if aggregate.empty is not None and type(aggregate.empty) not in _TYPES:
        reason = f"a window without rows answers {aggregate.empty!r}, which is not a number"
        return Compiled(None, None, reason)
    aggregate = twin(aggregate, kinds)
    functions = (getattr(aggregate, name) for name in _FUNCTIONS)  # an instance may have its own
    written = tuple(getattr(function, "__func__", function) for function in functions)
    said = (repr(aggregate.identity), *_said_now(aggregate))
    key = (type(aggregate), written, kinds, nulls, lifted, said)
    if key not in _KNOWN:
        _KNOWN[key] = _compile(aggregate, kinds, nulls, lifted)
    return _KNOWN[key]


_KNOWN: dict[Any, Compiled] = {}


def _said_now(aggregate: Aggregate) -> tuple[Any, ...]:
    """What may change about a class: what its functions name, and texts that travelled."""
    texts = getattr(aggregate, "_texts", None)
    if texts is not None:
        return tuple(text for made in texts.values() for text in made.items())
    plain = [_plain(aggregate, name) for name in _FUNCTIONS]
    return tuple(each if isinstance(each, str) else constants(each) for each in plain)


def _plain(aggregate: Aggregate, name: str) -> Any:
    """One of the functions without ``self``; or why there is none, as a text."""
    function = getattr(aggregate, name)
    if not inspect.ismethod(function):
        return function
    if function.__func__.__module__.partition(".")[0] == "windrow":
        return f"its {name} is one of windrow's that checks values as Python does"
    try:
        return without_self(function)
    except NotPlain as problem:
        return f"{name} uses self: {problem}"


def _compile(
    aggregate: Aggregate, kinds: tuple[np.dtype[Any], ...], nulls: bool, lifted: bool
) -> Compiled:
    identity = aggregate.identity
    if identity is EMPTY:
        reason = "it declares no identity, so the types of its partial are not known"
        return Compiled(None, None, reason)
    fields = identity if isinstance(identity, tuple) else (identity,)
    if isinstance(identity, tuple) and type(identity) is not tuple:
        kind = type(identity).__name__
        return Compiled(None, None, f"its identity is a {kind}, and only plain tuples are compiled")
    for field in fields:
        if type(field) not in _TYPES:
            return Compiled(None, None, f"its identity holds {field!r}, which is not a number")
    functions: dict[str, Any] = {}
    texts: dict[str, Definitions] = dict(getattr(aggregate, "_texts", {}))
    for name in _FUNCTIONS:
        functions[name] = _plain(aggregate, name)
        if isinstance(functions[name], str) and name not in texts:
            return Compiled(None, None, functions[name])
    if lifted or functions["lift"] is canonical:
        several = lifted and isinstance(identity, tuple)
        functions["lift"] = _tuple_of(len(fields)) if several else _value
        texts.pop("lift", None)
    if lifted:
        kinds = tuple(np.array(field).dtype for field in fields)
    inputs = tuple(f"x{i}" for i in range(len(kinds)))
    types = tuple(_TYPES[type(field)] for field in fields)
    source = _source(functions, texts)
    names: dict[str, Any] = {}
    if source is None:  # then the compiled code is not kept on disk
        if any(isinstance(function, str) for function in functions.values()):
            return Compiled(None, None, "the text of its functions is not known")
        source = ""
        names = {name: njit(function) for name, function in functions.items()}
    text = f"from math import inf, nan\n\nidentity = {identity!r}\n\n{source}\n"
    label = f"own_{aggregate.name}"
    rendered = render(from_functions(text, inputs, types, nulls))
    module = load_with(rendered, names) if names else load(rendered, label)
    partial = typeof(identity)
    row = tuple(from_dtype(kind) for kind in kinds)
    try:
        module.lift.compile(row)
        module.combine.compile((partial, partial))
        module.lower.compile((partial,))
    except Exception as error:  # numba raises much more than its own errors
        return Compiled(None, None, f"numba cannot compile it: {first_line(error)}")
    made = module.lift.overloads[row].signature.return_type
    if not _fits(made, partial):  # stored as they are, floats would be cut to integers
        other = with_floats(aggregate, _zeros(made))
        if other is not aggregate:
            return _compile(other, kinds, nulls, lifted)
        return Compiled(None, None, f"lift makes {made}, and the identity is {partial}")
    combined = module.combine.overloads[(partial, partial)].signature.return_type
    if combined != partial:
        return Compiled(None, None, f"combine makes {combined} of two {partial}")
    answers = module.lower.overloads[(partial,)].signature.return_type
    try:
        return Compiled(module, as_dtype(answers), "")
    except NumbaError:
        return Compiled(None, None, f"lower makes {answers}, which is not a number")


def with_floats(aggregate: Aggregate, partial: tuple[Any, ...]) -> Aggregate:
    """The aggregate with floats for the integers of its identity where a partial has floats."""
    identity = aggregate.identity
    fields = identity if isinstance(identity, tuple) else (identity,)
    if aggregate.schema is not None or len(fields) != len(partial):
        return aggregate
    floats = [type(f) is int and isinstance(p, float) for f, p in zip(fields, partial, strict=True)]
    if not any(floats):
        return aggregate
    other = copy.copy(aggregate)
    held = tuple(float(f) if is_float else f for f, is_float in zip(fields, floats, strict=True))
    other.identity = held if isinstance(identity, tuple) else held[0]
    return other


def _fits(made: Any, wanted: Any) -> bool:
    """Whether values of one of numba's types, a number or a tuple of them, can be kept as another.

    Integers can be kept as floats, truth values as both; nothing else changes its kind.
    """
    parts = [getattr(kind, "types", (kind,)) for kind in (made, wanted)]
    if len(parts[0]) != len(parts[1]):
        return False
    try:
        pairs = [(as_dtype(a), as_dtype(b)) for a, b in zip(*parts, strict=True)]
    except NumbaError:
        return False
    return all(np.can_cast(a, b, "same_kind") for a, b in pairs)


def _zeros(made: Any) -> tuple[Any, ...]:
    """A zero of each part of one of numba's types; nothing where one is no number."""
    try:
        kinds = [as_dtype(kind) for kind in getattr(made, "types", (made,))]
    except NumbaError:
        return ()
    return tuple(np.zeros((), kind).item() for kind in kinds)


def _value(x: Any) -> Any:
    return x


@cache
def _tuple_of(count: int) -> FunctionType:
    """A function that makes a tuple of its arguments, with its text known."""
    names = ", ".join(f"f{i}" for i in range(count))
    text = f"def lift({names}):\n    return ({names},)\n"
    made: dict[str, Any] = {}
    exec(text, made)
    function: FunctionType = made["lift"]
    _TEXTS[function] = {"lift": f"@njit(cache=True)\n{text}"}
    return function


def _source(functions: dict[str, Any], known: dict[str, Definitions]) -> str | None:
    """The functions' own texts, where these say everything."""
    found: Definitions = {}
    for name, function in functions.items():
        made = _TEXTS.get(function) or known.get(name) or definitions(name, function)
        if made is None or any(found.get(each, text) != text for each, text in made.items()):
            return None
        found |= made
    return "\n\n".join(found.values())


_TEXTS: dict[Any, Definitions] = {}
"""Of functions that no file has."""


def keep_texts(aggregate: Aggregate) -> None:
    """Let the functions' text travel with the aggregate, to where no file has it."""
    found = {name: definitions(name, _plain(aggregate, name)) for name in _FUNCTIONS}
    aggregate._texts = {name: text for name, text in found.items() if text is not None}  # type: ignore[attr-defined]


def first_line(error: BaseException) -> str:
    """What an error says, in short."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def run_compiled(
    compiled: Compiled,
    inputs: tuple[Array, ...],
    valid: Array | None,
    counts: Array | None,
    ranges: Ranges,
    least: int,
) -> Array:
    """Answers of a compiled aggregate; those of ranges with too few rows are arbitrary."""
    assert compiled.module is not None
    module = compiled.module
    mask: Any = np.empty(0, np.bool_) if valid is None else valid
    prefix: Any = np.empty(0, np.int64) if counts is None else counts
    out = np.zeros(len(ranges), compiled.answers)
    ranges.in_parallel(
        lambda first, last: ranges.run(module, (*inputs, mask), first, last, prefix, least, out)
    )
    return out


def run_interpreted(aggregate: Aggregate, rows: Sequence[Any], ranges: Ranges) -> list[Any]:
    """Answers by Python itself, one value at a time."""
    lo, hi = ranges.bounds()
    pairs = zip(lo.tolist(), hi.tolist(), strict=True)
    if ranges.recalc:
        return [_folded(aggregate, rows[start:end]) for start, end in pairs]
    if not ranges.monotone:
        shared = BInt(aggregate)
        shared.insert_many(rows)
        empty = aggregate.answer(EMPTY)
        return [shared.lookup(a, b - 1) if a < b else empty for a, b in pairs]
    window = TwoStacksLite(aggregate)
    lift_row = aggregate.lifter()

    def lift(row: Any) -> Any:
        return row.partial if type(row) is Lifted else lift_row(row)

    answers: list[Any] = []
    low = high = 0
    for start, end in pairs:
        if start >= high:
            window.clear()
            low = high = start
        while high < end:
            window.push(lift(rows[high]))
            high += 1
        try:
            while low < start:
                window.evict()
                low += 1
            answers.append(window.query())
        except Exception as error:
            error.add_note(
                f"while {aggregate!r} answered for a window that ends with {rows[end - 1]!r}"
            )
            raise
    return answers


def _folded(aggregate: Aggregate, rows: Sequence[Any]) -> Any:
    window = Recalc(aggregate)
    for row in rows:
        window.insert(row)
    return window.query()
