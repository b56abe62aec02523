"""Methods as plain functions: what they take from ``self`` becomes a constant of theirs.

An aggregate's options are set when it is made, so its functions can be compiled as if each number
stood where ``self`` names it: of ``x * self.half``, ``x * self_half`` is made, with ``self_half``
around it.
"""

import __future__

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from windrow.columns.made_of import made_of

TEXT = "__windrow_text__"
"""The attribute of a made function that has its text, which no file has."""

_NUMBERS = (int, float, bool, np.number, np.bool_, np.ndarray)


class NotPlain(Exception):
    """Why a method cannot do without ``self``."""


@dataclass(frozen=True)
class _Rewritten:
    make: FunctionType
    """From what the method closes over and options, to the function."""
    text: str
    options: dict[str, str]
    """What each attribute of ``self`` is called now."""


def without_self(method: MethodType) -> FunctionType:
    """The method as a function without ``self``; raises NotPlain where that cannot be.

    >>> class Scaled:
    ...     def __init__(self, factor): self.factor = factor
    ...     def lift(self, x): return x * self.factor
    >>> try:
    ...     without_self(Scaled([2]).lift)
    ... except NotPlain as error:
    ...     print(error)
    self.factor is a list, and only numbers can be compiled in
    """
    return _plain(method, ())


def _plain(method: MethodType, around: tuple[FunctionType, ...]) -> FunctionType:
    function = method.__func__
    if not isinstance(function, FunctionType):
        raise NotPlain("it is no function written in Python")
    if function in around:
        raise NotPlain("it calls itself")
    found = _rewritten(function)
    if isinstance(found, str):
        raise NotPlain(found)
    try:
        values = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        raise NotPlain("it names something that is not there yet") from None
    for name in found.options:
        values.append(_option(method.__self__, name, (*around, function)))
    made: FunctionType = FunctionType(found.make.__code__, function.__globals__)(*values)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__name__ = function.__name__
    made.__dict__[TEXT] = found.text
    return made


def _option(owner: Any, name: str, around: tuple[FunctionType, ...]) -> Any:
    try:
        value = getattr(owner, name)
    except AttributeError:
        raise NotPlain(f"there is no self.{name}") from None
    if isinstance(value, MethodType) and value.__self__ is owner:
        return _plain(value, around)
    if inspect.isfunction(value) or hasattr(value, "py_func"):
        return value
    parts = value if type(value) is tuple else (value,)
    if not all(isinstance(part, _NUMBERS) for part in parts):
        kind = type(value).__name__
        raise NotPlain(f"self.{name} is a {kind}, and only numbers can be compiled in")
    return value


@cache
def _rewritten(function: FunctionType) -> _Rewritten | str:
    """The method's text with names for what it takes from its first parameter, or why not."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        [definition] = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return "its text is not known"
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return "only a def without decorators can do without self"
    if not made_of(function, definition):
        return "its text is not known"
    parameters = definition.args.posonlyargs or definition.args.args
    first = parameters.pop(0).arg
    if any(isinstance(node, ast.arg) and node.arg == first for node in ast.walk(definition)):
        return f"{first} means several things in it"
    prefix = "self_"
    while prefix in source:
        prefix += "_"
    options = _Options(first, prefix)
    options.visit(definition)
    if options.problem:
        return options.problem
    text = ast.unparse(definition) + "\n"
    around = [*function.__code__.co_freevars, *options.found.values()]
    outer = ast.parse(f"def make({', '.join(around)}):\n    return {prefix}")
    [maker] = outer.body
    assert isinstance(maker, ast.FunctionDef)
    definition.name = prefix  # which nothing around it is called
    maker.body.insert(0, definition)
    flags = __future__.annotations.compiler_flag
    held: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(outer), "<windrow options>", "exec", flags), held)
    return _Rewritten(held["make"], text, options.found)


class _Options(ast.NodeTransformer):
    def __init__(self, first: str, prefix: str) -> None:
        self.first = first
        self.prefix = prefix
        self.found: dict[str, str] = {}
        self.problem = ""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An option, where it is of ``self``."""
        if not (isinstance(node.value, ast.Name) and node.value.id == self.first):
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            self.problem = f"it sets {self.first}.{node.attr}"
        name = self.found.setdefault(node.attr, self.prefix + node.attr)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Nothing else may be done with ``self``."""
        if node.id == self.first:
            self.problem = f"it uses {self.first} itself, not only what it holds"
        return node
