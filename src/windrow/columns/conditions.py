"""Conditions of rules over whole columns: the meaning of ``windrow.rules.expression``, at once.

A value is an array and where it is known; what is computed from something missing is missing, and a
comparison with it is neither true nor false. Arithmetic is done in doubles.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns.column import numbers_of, valid_of
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification
from windrow.rules.expression import Expression, place_of

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


@dataclass(frozen=True)
class Known:
    """Values, and where they are there (everywhere: None). A constant is one value for all."""

    values: Any
    valid: Array | None

    def also(self, other: "Known") -> Array | None:
        """Where both are there."""
        if self.valid is None or other.valid is None:
            return self.valid if other.valid is None else other.valid
        return self.valid & other.valid


def known(array: pa.Array) -> Known:
    """A column: numbers as NumPy has them, everything else as Python has it."""
    kind, valid = array.type, valid_of(array)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Known(numbers_of(array), valid)
    if pa.types.is_decimal(kind):
        return Known(numbers_of(array.cast(pa.float64())), valid)
    values = np.empty(len(array), object)
    values[:] = array.to_pylist()
    return Known(values, valid)


class Moments:
    """Features by number and columns by name, at many moments."""

    def __init__(self, size: int, features: Mapping[int, Known], columns: Mapping[str, Known]):
        self.size, self.features, self.columns = size, features, columns

    def holds(self, condition: Expression) -> Array:
        """Where a condition is true."""
        with np.errstate(all="ignore"):
            truth, sure = self._condition(condition.tree, condition)
        out = truth if sure is None else truth & sure
        return np.broadcast_to(out, self.size)

    def _condition(self, node: ast.expr, of: Expression) -> tuple[Any, Array | None]:
        """Whether it is true, and whether that is known."""
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(value, of) for value in node.values]
            return _joined(parts, isinstance(node.op, ast.Or))
        if isinstance(node, ast.UnaryOp):
            truth, sure = self._condition(node.operand, of)
            return np.logical_not(truth), sure
        assert isinstance(node, ast.Compare)
        sides = [self._value(side, of) for side in (node.left, *node.comparators)]
        compared = [
            _compared(_COMPARISONS[type(kind)], sides[i], sides[i + 1], of.text, self.size)
            for i, kind in enumerate(node.ops)
        ]
        return compared[0] if len(compared) == 1 else _joined(compared, False)

    def _value(self, node: ast.expr, of: Expression) -> Known:
        number = of.places.get(place_of(node))
        if number is not None:
            return self.features[number]
        if isinstance(node, ast.Constant):
            return Known(node.value, None)
        if isinstance(node, ast.Name):
            return self.columns[node.id]
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand, of)
            if isinstance(node.op, ast.UAdd):
                return inner
            return Known(-_number(inner, of.text), inner.valid)
        if isinstance(node, ast.Call):  # abs
            inner = self._value(node.args[0], of)
            return Known(np.abs(_number(inner, of.text)), inner.valid)
        assert isinstance(node, ast.BinOp)
        left, right = self._value(node.left, of), self._value(node.right, of)
        a, b = _number(left, of.text), _number(right, of.text)
        valid = left.also(right)
        if isinstance(node.op, ast.Div):
            there = np.broadcast_to(np.asarray(b != 0), self.size)
            valid = there if valid is None else valid & there
        return Known(_ARITHMETIC[type(node.op)](a, b), valid)


def _number(value: Known, text: str) -> Any:
    given = value.values
    if isinstance(given, str) or (isinstance(given, np.ndarray) and given.dtype == object):
        raise BadSpecification(f"in {text!r}: something that is not a number is computed with")
    return np.asarray(given, np.float64)


def _compared(
    function: Callable[[Any, Any], Any], left: Known, right: Known, text: str, size: int
) -> tuple[Any, Array | None]:
    a, b = left.values, right.values
    kinds = [_is_text(a), _is_text(b)]
    if kinds[0] != kinds[1]:
        raise BadSpecification(f"in {text!r}: a text is compared with a number")
    a, b = _exact(a, b), _exact(b, a)
    valid = left.also(right)
    if not kinds[0]:
        return function(a, b), valid
    out = np.zeros(size, np.bool_)
    there = np.ones(size, np.bool_) if valid is None else valid
    sides = [np.broadcast_to(np.asarray(side, object), size)[there] for side in (a, b)]
    out[there] = function(*sides).astype(np.bool_)
    return out, valid


def _is_text(value: Any) -> bool:
    """Whether it is nothing that numbers are compared with."""
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)


def _exact(value: Any, other: Any) -> Any:
    """A whole constant beside integers as an integer: then nothing is rounded."""
    integers = isinstance(other, np.ndarray) and other.dtype.kind in "iu"
    if integers and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _joined(parts: list[tuple[Any, Array | None]], either: bool) -> tuple[Any, Array | None]:
    """Parts joined by ``and``, or by ``or``: decided by a part that decides, else if all known."""
    decided: Any = False
    sure: Any = True
    for truth, known_where in parts:
        decisive = truth if either else np.logical_not(truth)
        decided = decided | (decisive if known_where is None else decisive & known_where)
        sure = sure if known_where is None else sure & known_where
    truth = decided if either else ~np.asarray(decided)
    return truth, None if sure is True else decided | sure
