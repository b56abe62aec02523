"""Rules as people write them: parsed with Python's own grammar, never evaluated as Python.

    price >= 20 and price < 0.98 * first(price, "20m") and sum(ask, "2m") >= 0.7 * sum(size, "2m")

A name is a feature that was defined, or a column of the current row; a call of an aggregate's short
name is a windowed aggregate. As in SQL, what is computed from a missing value is missing, and a
comparison with it is neither true nor false; so is a division by zero. Arithmetic is done in
doubles.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from windrow.aggregates import REGISTRY, Aggregate
from windrow.aggregates.other_names import meant
from windrow.errors import BadSpecification, BadValue, WindrowError
from windrow.shared.line import Window, as_suffix_or_historical
from windrow.slides import rows, time

_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_FUNCTIONS = dict(_COMPARISONS.values())
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_LONGEST = 10_000
_DEEPEST = 100

AGGREGATES = {kind.name: kind for kind in REGISTRY.values()}


class Moment(Protocol):
    """Where an expression's values come from."""

    def feature(self, number: int) -> Any:
        """A windowed aggregate's value now."""

    def column(self, name: str) -> Any:
        """A value of the current row."""


Evaluate = Callable[[Moment], Any]
Place = tuple[int, int, int | None, int | None]


def place_of(node: ast.expr) -> Place:
    """Where a part of a text stands in it."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


@dataclass(frozen=True)
class Operand:
    """What a threshold is about: a feature, or a column of the current row."""

    feature: int | None
    column: str | None

    def value(self, moment: Moment) -> Any:
        """Its value now."""
        if self.feature is not None:
            return moment.feature(self.feature)
        assert self.column is not None
        return moment.column(self.column)


@dataclass(frozen=True)
class Threshold:
    """A comparison of one operand with a number."""

    operand: Operand
    sign: str
    number: float

    def holds(self, value: Any) -> bool:
        """Whether a value passes."""
        try:
            return value is not None and bool(_FUNCTIONS[self.sign](value, self.number))
        except TypeError as error:
            about = self.operand.column or "a feature"
            raise BadValue(f"{about} {self.sign} a number: {value!r} is not one") from error


@dataclass(frozen=True)
class Expression:
    """A condition: how to evaluate it, what it looks at, and thresholds that it implies."""

    text: str
    evaluate: Evaluate
    features: frozenset[int]
    columns: frozenset[str]
    implied: tuple[Threshold, ...]
    is_threshold: bool
    """Whether it is one comparison with a number, and nothing else."""
    tree: ast.expr
    """What was read, for those who evaluate whole columns."""
    places: dict[Place, int]
    """Where features stand in it, and their numbers."""


class Reader:
    """Reads expressions; ``feature`` gives the number of a windowed aggregate."""

    def __init__(
        self,
        named: Callable[[str], int | None],
        feature: Callable[[Aggregate, Window], int],
    ) -> None:
        self._named = named
        self._feature = feature

    def read(self, text: Any) -> Expression:
        """An expression that is true or false."""
        if not isinstance(text, str) or not text.strip():
            raise BadSpecification(
                f"a condition is a text such as 'count(\"5m\") > 10', not {text!r}"
            )
        if len(text) > _LONGEST:
            raise BadSpecification(f"a condition of {len(text)} characters: at most {_LONGEST}")
        self._text = text
        self._features: set[int] = set()
        self._columns: set[str] = set()
        self._places: dict[Place, int] = {}
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place = f" at character {error.offset}" if isinstance(error, SyntaxError) else ""
            reason = getattr(error, "msg", error)
            raise BadSpecification(f"cannot read {text!r}{place}: {reason}{_hint(text)}") from None
        evaluate, implied, alone = self._condition(tree.body, 0)
        return Expression(
            text,
            evaluate,
            frozenset(self._features),
            frozenset(self._columns),
            tuple(implied),
            alone,
            tree.body,
            self._places,
        )

    def _error(self, node: ast.AST, what: str) -> BadSpecification:
        part = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        return BadSpecification(f"in {self._text!r}: {part!r} {what}")

    # --- conditions -----------------------------------------------------------------------------

    def _condition(self, node: ast.expr, depth: int) -> tuple[Evaluate, list[Threshold], bool]:
        if depth > _DEEPEST:
            raise self._error(node, "is nested too deeply")
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(value, depth + 1) for value in node.values]
            functions = [part[0] for part in parts]
            if isinstance(node.op, ast.Or):
                return _any_of(functions), [], False
            return _all_of(functions), [t for part in parts for t in part[1]], False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._condition(node.operand, depth + 1)[0]
            return _negation(inner), [], False
        if isinstance(node, ast.Compare):
            return self._comparison(node, depth)
        raise self._error(node, "is not a condition: write comparisons, joined by and, or and not")

    def _comparison(self, node: ast.Compare, depth: int) -> tuple[Evaluate, list[Threshold], bool]:
        if not all(type(kind) in _COMPARISONS for kind in node.ops):
            several = any(isinstance(kind, ast.In | ast.NotIn) for kind in node.ops)
            hint = ": for one of several, write x == 1 or x == 2" if several else ""
            raise self._error(node, f"compares with something else than < <= > >= == !={hint}")
        sides = [node.left, *node.comparators]
        values = [self._value(side, depth + 1) for side in sides]
        functions: list[Evaluate] = []
        implied: list[Threshold] = []
        for i, kind in enumerate(node.ops):
            sign, function = _COMPARISONS[type(kind)]
            functions.append(_compared(function, values[i][0], values[i + 1][0], self._text))
            found = _threshold(values[i][1], sign, values[i + 1][1])
            if found is not None:
                implied.append(found)
        alone = len(functions) == 1 and len(implied) == 1
        return functions[0] if len(functions) == 1 else _all_of(functions), implied, alone

    # --- values ---------------------------------------------------------------------------------

    def _value(self, node: ast.expr, depth: int) -> tuple[Evaluate, Operand | float | None]:
        """How to evaluate it; and what it is where it is an operand or a number."""
        if depth > _DEEPEST:
            raise self._error(node, "is nested too deeply")
        if isinstance(node, ast.Constant):
            constant = node.value
            if isinstance(constant, int | float) and not isinstance(constant, bool):
                return _constant(constant), constant
            if isinstance(constant, bool | str):
                return _constant(constant), None
            raise self._error(node, "is not a number or a text")
        if isinstance(node, ast.Name):
            number_of = self._named(node.id)
            if number_of is not None:
                return self._of_feature(number_of, node)
            if node.id in ("true", "false"):  # a column of that name would always be missing
                raise self._error(node, f"is not known: write {node.id.capitalize()}")
            self._columns.add(node.id)
            return _column(node.id), Operand(None, node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner, what = self._value(node.operand, depth + 1)
            if isinstance(node.op, ast.UAdd):
                return inner, what
            if isinstance(what, int | float):
                return _constant(-what), -what
            return _applied(operator.neg, inner, self._text), None
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = self._value(node.left, depth + 1), self._value(node.right, depth + 1)
            function = _ARITHMETIC[type(node.op)][1]
            return _computed(function, left[0], right[0], self._text), None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id, depth)
        raise self._error(
            node, "is not understood: numbers, columns, + - * /, abs() and windowed aggregates are"
        )

    def _of_feature(self, number: int, node: ast.expr) -> tuple[Evaluate, Operand]:
        self._features.add(number)
        self._places[place_of(node)] = number
        return _feature(number), Operand(number, None)

    def _call(self, node: ast.Call, name: str, depth: int) -> tuple[Evaluate, Operand | None]:
        if name == "abs" and len(node.args) == 1 and not node.keywords:
            return _applied(abs, self._value(node.args[0], depth + 1)[0], self._text), None
        kind = AGGREGATES.get(name)
        if kind is None:
            known, word = ", ".join(sorted(AGGREGATES)), meant(name, REGISTRY)
            near = REGISTRY[word].name if word else None
            hint = f"; did you mean {near!r}?" if near in AGGREGATES else ""
            if word == "Quantile":  # a call says no phi
                hint = '; Rules(features={"high": (wr.Quantile("price", 0.95), "5m")}) names one'
            raise self._error(node, f"calls {name!r}{hint}; known are abs, {known}")
        try:
            columns, window = self._arguments(node, name)
            aggregate = kind(*columns)
            if not columns and aggregate.input_kinds:
                raise self._error(node, f'names no column: {name}(price, "5m"), say')
            found = as_suffix_or_historical(window)
        except WindrowError as error:
            if str(error).startswith("in "):
                raise
            raise BadSpecification(f"in {self._text!r}: {error}") from error
        return self._of_feature(self._feature(aggregate, found), node)

    def _arguments(self, node: ast.Call, name: str) -> tuple[list[str], Any]:
        columns: list[str] = []
        lengths: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Name):
                columns.append(argument.id)
            elif isinstance(argument, ast.Constant) and not isinstance(argument.value, bool):
                lengths.append(argument.value)
            else:
                raise self._error(argument, "is neither a column nor a length of time")
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None or not isinstance(keyword.value, ast.Constant):
                raise self._error(node, "has an option that is not a number or a text")
            options[keyword.arg] = keyword.value.value
        last = options.pop("rows", None)
        within = options.pop("within", None)
        ending = options.pop("ending", None)
        closed = options.pop("closed", "right")
        if options or (last is None) == (not lengths) or len(lengths) > 1:
            raise self._error(
                node,
                f'needs one window: {name}(price, "5m"), {name}(price, rows=100), with ending=, '
                "closed= or within= where wanted",
            )
        if last is not None:
            return columns, rows(last, ending=ending or 0, within=within)
        return columns, time(lengths[0], closed=closed, ending=ending)


def _hint(text: str) -> str:
    """What is often meant by a text that is no condition."""
    if re.search(r"[(,]\s*\d+\s*[a-z]+\s*[),]", text):
        return '. Lengths of time stand in quotes: count("1h")'
    if re.search(r"\bbetween\b", text, re.I):
        return ". Write 1 <= x <= 2"
    if "&&" in text or "||" in text or re.search(r"\b(AND|OR|NOT)\b", text):
        return ". Write and, or, not"
    if "=>" in text or "=<" in text:
        return ". Write >= or <="
    if "<>" in text:
        return ". Write !="
    if re.search(r"[^<>=!]=[^=]", text) and "==" not in text:
        return ". To compare, write =="
    return ""


def _threshold(left: Any, sign: str, right: Any) -> Threshold | None:
    if sign in ("==", "!="):
        return None
    if isinstance(left, Operand) and isinstance(right, int | float):
        return Threshold(left, sign, right) if right == right else None
    if isinstance(right, Operand) and isinstance(left, int | float):
        return Threshold(right, _MIRRORED[sign], left) if left == left else None
    return None


def _constant(value: Any) -> Evaluate:
    return lambda moment: value


def _column(name: str) -> Evaluate:
    return lambda moment: moment.column(name)


def _feature(number: int) -> Evaluate:
    return lambda moment: moment.feature(number)


def _double(value: Any, text: str) -> float:
    """Arithmetic is done in doubles, as in the conditions of streams (``columns.conditions``)."""
    if isinstance(value, str | bytes):
        raise BadSpecification(
            f"in {text!r}: {value!r} and what it is computed with are not both numbers"
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError) as error:
        raise BadSpecification(f"in {text!r}: {error}") from error


def _applied(function: Callable[[float], float], inner: Evaluate, text: str) -> Evaluate:
    def evaluate(moment: Moment) -> Any:
        value = inner(moment)
        return None if value is None else function(_double(value, text))

    return evaluate


def _computed(
    function: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate, text: str
) -> Evaluate:
    def evaluate(moment: Moment) -> Any:
        a, b = left(moment), right(moment)
        if a is None or b is None:
            return None
        try:
            return function(_double(a, text), _double(b, text))
        except ZeroDivisionError:
            return None

    return evaluate


def _compared(
    function: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate, text: str
) -> Evaluate:
    def evaluate(moment: Moment) -> bool | None:
        a, b = left(moment), right(moment)
        if a is None or b is None:
            return None
        try:
            return bool(function(a, b))
        except (TypeError, ValueError) as error:
            raise BadSpecification(f"in {text!r}: {error}") from error

    return evaluate


def _all_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(moment: Moment) -> bool | None:
        unknown = False
        for part in parts:
            found = part(moment)
            if found is False:
                return False
            unknown |= found is None
        return None if unknown else True

    return evaluate


def _any_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(moment: Moment) -> bool | None:
        unknown = False
        for part in parts:
            found = part(moment)
            if found is True:
                return True
            unknown |= found is None
        return None if unknown else False

    return evaluate


def _negation(inner: Evaluate) -> Evaluate:
    def evaluate(moment: Moment) -> bool | None:
        found = inner(moment)
        return None if found is None else not found

    return evaluate
