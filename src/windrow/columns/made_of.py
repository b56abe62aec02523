"""Whether a function is made of a text.

Python looks for a function's text where it began when its file was read. Since then the file may
have changed, under a notebook or a server that goes on running; then other lines are there.
"""

import __future__

import ast
import copy
import dis
import inspect
from types import CodeType, FunctionType
from typing import Any

_SILENT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"})
"""What says nothing, and depends on what else is in a file, as on what it imports."""


def made_of(function: FunctionType, definition: ast.FunctionDef) -> bool:
    """Whether a definition, compiled again, does what the function does.

    >>> def half(x):
    ...     return x / 2
    >>> [made_of(half, ast.parse(f"def half(x):\\n    return x / {n}").body[0]) for n in (2, 3)]
    [True, False]
    """
    names = ", ".join(function.__code__.co_freevars)
    outer = ast.parse(f"def make({names}):\n    pass")
    [maker] = outer.body
    assert isinstance(maker, ast.FunctionDef)
    maker.body = [copy.deepcopy(definition)]
    flags = __future__.annotations.compiler_flag
    try:
        whole = compile(ast.fix_missing_locations(outer), "<windrow>", "exec", flags, True)
    except (SyntaxError, ValueError):
        return False
    [made] = _inside(whole)
    return any(_same(function.__code__, code) for code in _inside(made))


def _inside(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def _same(one: CodeType, other: CodeType) -> bool:
    if one.co_name != other.co_name or one.co_varnames != other.co_varnames:
        return False
    first, second = _steps(one), _steps(other)
    return len(first) == len(second) and all(map(_same_step, first, second))


def _steps(code: CodeType) -> list[tuple[str, Any]]:
    """What the code does, step by step; jumps go to the number of a step."""
    kept = [step for step in dis.get_instructions(code) if step.opname not in _SILENT]
    offsets = [step.offset for step in kept]
    jumps = {*dis.hasjrel, *dis.hasjabs}
    return [
        (
            "LOAD_ATTR" if step.opname == "LOAD_METHOD" else step.opname,
            sum(o < step.argval for o in offsets) if step.opcode in jumps else step.argval,
        )
        for step in kept
    ]


def _same_step(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    return one[0] == other[0] and _same_value(one[1], other[1])


def _same_value(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, CodeType):
        return _same(one, other)
    if isinstance(one, str):  # of texts over several lines the depth may differ
        return inspect.cleandoc(one) == inspect.cleandoc(other)
    return repr(one) == repr(other)
