"""What one machine instruction knows of a word: its zeros; and the product of two words."""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from windrow.columns.jit import njit

U = np.uint64
_LOW = np.uint64(0xFFFFFFFF)


def _zeros(name: str) -> Any:
    def typed(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), generate

    return typed


@intrinsic  # type: ignore[untyped-decorator]
def trailing_zeros(typing_context: Any, x: Any) -> Any:
    """How many zeros an unsigned word ends with; 64 for 0."""
    return _zeros("cttz")(typing_context, x)


@intrinsic  # type: ignore[untyped-decorator]
def trailing_zeros_of_half(typing_context: Any, x: Any) -> Any:
    """How many zeros the lower 32 bits of an unsigned word end with; 32 where they are all zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = builder.trunc(arguments[0], ir.IntType(32))
        zeros = builder.cttz(half, ir.Constant(ir.IntType(1), 0))
        return builder.zext(zeros, ir.IntType(64))

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def leading_zeros(typing_context: Any, x: Any) -> Any:
    """How many zeros an unsigned word begins with; 64 for 0."""
    return _zeros("ctlz")(typing_context, x)


@intrinsic  # type: ignore[untyped-decorator]
def ones(typing_context: Any, x: Any) -> Any:
    """How many bits of an unsigned word are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def float_of(typing_context: Any, bits: Any) -> Any:
    """The float that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_of(typing_context: Any, x: Any) -> Any:
    """The bits of a float."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@njit(cache=True, nogil=True)
def product(a, b):  # type: ignore[no-untyped-def]
    """The product of two unsigned words, as (low, high)."""
    a0, a1 = a & _LOW, a >> U(32)
    b0, b1 = b & _LOW, b >> U(32)
    low = a0 * b0
    middle = a1 * b0 + (low >> U(32))
    other = a0 * b1 + (middle & _LOW)
    return (other << U(32)) | (low & _LOW), a1 * b1 + (middle >> U(32)) + (other >> U(32))
