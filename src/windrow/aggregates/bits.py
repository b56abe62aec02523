"""Bits of integers: and, or, exclusive or of all values of the window; signed 64-bit words."""

from typing import Any

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Schema
from windrow.aggregates.values import canonical
from windrow.errors import BadValue


class Bits(Aggregate):
    """What they share: integers of 64 bits, negative ones as two's complements."""

    inputs = ("integer",)
    commutative = True
    reproducible = True
    schema = Schema.single("int64", "bits")

    @staticmethod
    def lift(value: Any) -> int:
        """The integer itself."""
        number = canonical(value)
        if not isinstance(number, int) or isinstance(number, bool):
            kind = type(number).__name__
            raise BadValue(f"{value!r} is a {kind}: only integers have bits. Convert it first")
        if not -(1 << 63) <= number < 1 << 63:
            raise BadValue(
                f"{value!r} does not fit a signed word of 64 bits: view a column of uint64 as "
                "int64, which has the same bits"
            )
        return number


class BitAnd(Bits):
    """The bits that all values have.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.BitAnd())
    >>> window.insert(0b110); window.insert(0b011)
    >>> bin(window.query())
    '0b10'
    """

    identity = -1

    @staticmethod
    def combine(a: int, b: int) -> int:
        """Bits of both."""
        return a & b


class BitOr(Bits):
    """The bits that any value has."""

    identity = 0

    @staticmethod
    def combine(a: int, b: int) -> int:
        """Bits of either."""
        return a | b


class BitXor(Bits):
    """The bits that an odd number of values have."""

    identity = 0
    invertible = True

    @staticmethod
    def combine(a: int, b: int) -> int:
        """Bits of one only."""
        return a ^ b

    @staticmethod
    def inverse(total: int, oldest: int) -> int:
        """Its own inverse."""
        return total ^ oldest
