"""About how many different values, in a few kilobytes however many there are."""

import math
import struct
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from windrow.aggregates.base import Options
from windrow.aggregates.hashing import hash64
from windrow.aggregates.sketches import Sketch, checked_share, datasketches

_LIST, _SET = 0, 1
_OUT_OF_ORDER = 0x10


def canonical_hll(data: bytes) -> bytes:
    """The same sketch in the one form that does not depend on the order in which values came.

    By the package's published layout: what is kept while few values are known (a list, then a set)
    is sorted; later, the running estimate of values that came one by one is dropped (it is a little
    better, but not the same for merged sketches), and the registers decide alone.
    """
    mode = data[7] & 3
    if mode in (_LIST, _SET):
        head = 8 if mode == _LIST else 12
        return data[:head] + np.sort(np.frombuffer(data, "<u4", offset=head)).tobytes()
    flags = data[5] | _OUT_OF_ORDER
    return data[:5] + bytes([flags]) + data[6:8] + struct.pack("<d", 0.0) + data[16:]


class ApproxDistinct(Sketch):
    """About how many different values the window holds (HyperLogLog), in bounded space.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(3), wr.ApproxDistinct())
    >>> [window.insert(x) for x in ["b", "a", "b", "b"]]
    [1, 2, 2, 2]
    >>> window.aggregate.approximation
    'approximate: relative error 1.6 % (one standard deviation), below 5.0 % in 99.7 % of windows;
    at most 4,136 bytes'

    ``error`` (default 0.02) is the largest relative standard error that will do, from 0.0008 to
    0.1; ``error_bound`` is that of three standard deviations. Up to a few hundred values the answer
    is nearly always exact. Numbers that are equal are one value, whatever their types. The same
    rows give the same bits on every engine, in any order and grouping.
    """

    reproducible = True
    empty = 0
    inputs = ("any",)

    def __init__(self, *columns: str, error: float = 0.02, **options: Unpack[Options]) -> None:
        self.error = checked_share("ApproxDistinct", "error", error, 0.0008, 0.1)
        super().__init__(*columns, **options)

    @property
    def lg_k(self) -> int:
        """The sketch has two to the power of this registers."""
        return max(7, math.ceil(2 * math.log2(1.04 / self.error)))

    @property
    def error_bound(self) -> float:
        """The relative error that 99.7 % of estimates stay below: three standard deviations."""
        error = datasketches().hll_sketch.get_rel_err
        return float(max(abs(error(upper, True, self.lg_k, 3)) for upper in (True, False)))

    @property
    def approximation(self) -> str:
        """How far off, and how large."""
        one = 100 * 1.04 / math.sqrt(1 << self.lg_k)
        return (
            f"approximate: relative error {one:.1f} % (one standard deviation), below "
            f"{100 * self.error_bound:.1f} % in 99.7 % of windows; "
            f"at most {40 + (1 << self.lg_k):,} bytes"
        )

    def lift(self, value: Any) -> bytes:
        """A sketch of one value."""
        sketch = datasketches().hll_sketch(self.lg_k, datasketches().HLL_8)
        sketch.update(hash64(value) - (1 << 63))
        data: bytes = sketch.serialize_compact()
        return data

    def of_run(self, values: Iterable[Any]) -> bytes:
        """The sketch of many values at once."""
        sketch = datasketches().hll_sketch(self.lg_k, datasketches().HLL_8)
        for value in dict.fromkeys(values):
            sketch.update(hash64(value) - (1 << 63))
        return canonical_hll(sketch.serialize_compact())

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Register by register the larger."""
        package = datasketches()
        union = package.hll_union(self.lg_k)
        union.update(package.hll_sketch.deserialize(a))
        union.update(package.hll_sketch.deserialize(b))
        return canonical_hll(union.get_result(package.HLL_8).serialize_compact())

    @staticmethod
    def lower(sketch: bytes) -> int:
        """The estimate, rounded."""
        return round(float(datasketches().hll_sketch.deserialize(sketch).get_estimate()))
