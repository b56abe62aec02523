"""Whether a policy's function can be compiled and still say what Python would say.

Python's integers never overflow and 64 bits do, so it must be seen from the function's own text
that its integers stay short: no loops, no powers or shifts, no calls but a few. What it refers to
is frozen when it is compiled, so that must be numbers.
"""

import dis
import inspect
import math
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from windrow.columns.jit import njit
from windrow.columns.kept_text import Dimension

_CALLS = {"abs", "min", "max", "float", "bool", "True", "False", "None"}
_NOT_OF_MATH = {"comb", "factorial", "gcd", "lcm", "perm", "prod", "pow"}
_SAME_SIZE = {"//", "%", "&", "|", "^", "[]"}
_EXACT_FLOAT, _EXACT_INTEGER = 53, 62


def why_not_compiled(function: Any, asked: Sequence[Dimension]) -> str | None:
    """The first thing about a function that compiled code might do in another way; None: nothing.

    One that is compiled already is taken as it is.
    """
    if hasattr(function, "py_func"):
        return None
    if not isinstance(function, FunctionType):
        return "only plain functions are compiled"
    code = function.__code__
    referred = _referred(function)
    if isinstance(referred, str):
        return referred
    numbers = [n for n in (*code.co_consts, *referred) if isinstance(n, int)]
    bits = max([d.bits for d in asked] + [abs(n).bit_length() for n in numbers])
    floats = any(d.bits == 0 for d in asked) or not {"math", "float"}.isdisjoint(code.co_names)
    floats |= any(isinstance(n, float) for n in (*code.co_consts, *referred))
    for step in dis.get_instructions(code):
        if "JUMP_BACKWARD" in step.opname or step.opname == "FOR_ITER":
            return "it has a loop"
        if step.opname == "BINARY_OP":
            sign = step.argrepr.rstrip("=")
            floats |= sign == "/"
            if sign in ("+", "-"):
                bits += 1
            elif sign == "*":
                bits *= 2
            elif sign != "/" and sign not in _SAME_SIZE:
                return f"it uses {sign}, which may round or overflow in another way"
    if bits > (_EXACT_FLOAT if floats else _EXACT_INTEGER):
        return "its integers might become too long for 64 bits, or for floats"
    return None


def _referred(function: FunctionType) -> list[Any] | str:
    """The numbers that a function refers to, or what else it refers to."""
    if any(isinstance(constant, CodeType) for constant in function.__code__.co_consts):
        return "it has functions inside"
    used = inspect.getclosurevars(function)
    if used.unbound - set(dir(math)):
        return f"it refers to {', '.join(sorted(used.unbound))}"
    found = []
    for name, value in {**used.nonlocals, **used.globals}.items():
        if value is math:
            continue
        if not isinstance(value, bool | int | float | None):
            return f"it refers to {name}, which is not a number"
        found.append(value)
    for name in used.builtins:
        if name not in _CALLS:
            return f"it calls {name}"
    if _NOT_OF_MATH & set(function.__code__.co_names):
        return "it calls what may become long integers"
    found += [v for v in function.__defaults__ or () if isinstance(v, int | float)]
    return found


def identity(function: Any) -> Any:
    """Equal for functions that compile to the same: also for those that travelled."""
    if not isinstance(function, FunctionType):
        return function
    used = inspect.getclosurevars(function)
    values = {**used.nonlocals, **used.globals}
    return function.__code__, repr(sorted(values.items())), repr(function.__defaults__)


def compiled(function: Any) -> Any:
    """The function for kernels."""
    return function if hasattr(function, "py_func") else njit(nogil=True)(function)
