"""Fused multiply-add: a·b + c rounded once, which gives the exact error of a product."""

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding: one instruction where the processor has it."""
    signature = types.float64(types.float64, types.float64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return signature, generate
