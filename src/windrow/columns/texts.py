"""A function's text with all that it names, so that code compiled from it can be kept on disk.

Numba keeps what is in a file and names only what is there. A function of a user's stands by itself
if it names functions like it, numbers, and what ``math`` and NumPy have.
"""

import ast
import builtins
import dis
import inspect
import math
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from windrow.columns.made_of import made_of
from windrow.columns.options import TEXT

_MODULES = {"math": math, "numpy": np}
_IMPORTED = {"math": math, "np": np}
"""What generated modules import."""
_TAKEN = frozenset(
    {
        *("U", "_release", "block", "bounded", "combine", "fold", "greedy", "identity", "inf"),
        *("lift", "lower", "math", "nan", "njit", "np", "steady", "tree"),
    }
)
"""Names that generated modules have themselves."""
_DECORATED = re.compile(r"@(staticmethod|((numba|nb)\.)?njit(\((cache=(True|False))?\))?)\n")

Definitions = dict[str, str]
"""By name: what a module must say to have it, those first that others need."""


def definitions(name: str, function: Any) -> Definitions | None:
    """The function under a name, after all that it needs; None where it does not stand by itself.

    >>> half = 0.5
    >>> definitions("scaled", lambda x: x * half) is None  # a part of a line is no text
    True
    """
    found: Definitions = {}
    return found if _define(name, function, found, frozenset()) else None


def _define(name: str, function: Any, found: Definitions, around: frozenset[str]) -> bool:
    function = getattr(function, "py_func", function)  # compiled by the user already
    text = _text(name, function)
    if text is None:
        return False
    for needed, value in _named(function):
        if (
            needed in around
            or needed == name
            or not _is_known(needed, value, found, around | {name})
        ):
            return False
    found[name] = f"@njit(cache=True)\n{text}"
    return True


def _is_known(name: str, value: Any, found: Definitions, around: frozenset[str]) -> bool:
    """Whether a value can be had under a name, and then a definition that says how."""
    if name in _TAKEN:
        return name in _IMPORTED and _IMPORTED[name] is value
    if inspect.isfunction(value) or hasattr(value, "py_func"):
        own: Definitions = {}
        if not _define(name, value, own, around):
            return False
        if any(found.get(each, text) != text for each, text in own.items()):
            return False
        found.update(own)
        return True
    text = _said(name, value)
    if text is None or found.get(name, text) != text:
        return False
    found[name] = text
    return True


def _said(name: str, value: Any) -> str | None:
    """A number, or what a known module has."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}" if value.__name__ in _MODULES else None
    if type(value) in (int, float, bool):
        return f"{name} = {value!r}"
    if type(value) is tuple and all(type(part) in (int, float, bool) for part in value):
        return f"{name} = {value!r}"
    own = getattr(value, "__name__", None)
    for module, held in _MODULES.items():
        if isinstance(own, str) and getattr(held, own, None) is value:
            return f"from {module} import {own} as {name}"
    return None


def _text(name: str, function: Any) -> str | None:
    """The function alone, under a name."""
    if not isinstance(function, FunctionType) or function.__defaults__ or function.__kwdefaults__:
        return None
    text = function.__dict__.get(TEXT) or _text_in_file(function)
    begin = f"def {function.__name__}("
    if text is None or not text.startswith(begin):
        return None
    return text.replace(begin, f"def {name}(", 1)


def _text_in_file(function: FunctionType) -> str | None:
    """The function alone as its file has it, if it still has."""
    try:
        text = _DECORATED.sub("", textwrap.dedent(inspect.getsource(function)), count=1)
        [definition] = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(definition, ast.FunctionDef) or not made_of(function, definition):
        return None
    return text


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names that are not the function's own, and what they stand for; not those of Python's."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing is in it yet
            yield name, None
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
        elif not hasattr(builtins, name):
            yield name, None


def constants(function: Any, around: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The values that a function names, NumPy's too, and functions that it calls, as they are now.

    >>> half = 0.5
    >>> constants(lambda x: x * half)
    ('half = 0.5',)
    """
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or function in around:
        return ()
    found: list[Any] = []
    for name, value in _named(function):
        found += _content(name, value, (*around, function))
    return tuple(found)


def _content(name: str, value: Any, around: tuple[Any, ...]) -> list[Any]:
    """What would have to be the same for code that was compiled with a value to be right."""
    plain = getattr(value, "py_func", value)
    if isinstance(plain, FunctionType):
        return [plain.__code__, *constants(plain, around)]
    if isinstance(value, np.ndarray | np.generic):
        content = blake2b(value.tobytes()).hexdigest()
        return [f"{name} = {value.dtype} {value.shape} {content}"]
    if isinstance(value, tuple):
        parts = [_content(f"{name}[{i}]", part, around) for i, part in enumerate(value)]
        return [f"{name} has {len(value)}", *(text for part in parts for text in part)]
    if isinstance(value, int | float | complex | str | bytes):
        return [f"{name} = {value!r}"]
    return [text] if (text := _said(name, value)) is not None else []


@cache
def _names_in(code: CodeType) -> tuple[str, ...]:
    return tuple(sorted(set(_global_names(code))))


def _global_names(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _global_names(part)
