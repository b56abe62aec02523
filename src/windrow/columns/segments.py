"""The segment: what distributed and streaming engines compute, one stretch of time at a time.

For new rows with times in (s, e] and a lookback T, a window is made of three things:

    old rows   in (s − T, e − T]    each leaves while the segment is processed
    middle     over (e − T, s]      one partial per key, never looked into
    new rows   in (s, e]

    answer  =  suffix(old rows still in)  ⊕  middle  ⊕  prefix(new rows so far)

Old rows come first in every array, then new rows, each sorted by key and time, with the same keys
in both (a key may have no rows in either).
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from windrow.aggregates import Aggregate, Max, Min
from windrow.columns import own
from windrow.columns.builtin import kernels
from windrow.columns.ranges import Array
from windrow.errors import Refused


class SegmentKernel:
    """A compiled aggregate for segments: ``fold`` makes middles, ``answers`` uses them.

    Works for Min and Max of numbers without NaN, and for aggregates of your own that compile.
    """

    def __init__(
        self, aggregate: Aggregate, kinds: Sequence[np.dtype[Any]], nulls: bool = False
    ) -> None:
        self.aggregate = aggregate
        self.nulls = nulls
        if type(aggregate) in (Min, Max):
            smallest = isinstance(aggregate, Min)
            self._module: ModuleType = kernels("min" if smallest else "max")
            dtype = kinds[0]
            limits = np.iinfo(dtype) if dtype.kind == "i" else None
            lowest = -np.inf if limits is None else limits.min
            highest = np.inf if limits is None else limits.max
            self._extra: tuple[Any, ...] = (
                dtype.type(highest if smallest else lowest),
                dtype.type(0),
            )
            self.types: tuple[np.dtype[Any], ...] = (dtype,)
            self.answer_type = dtype
            return
        compiled = own.compile_aggregate(aggregate, tuple(kinds), nulls)
        if compiled.module is None or compiled.answers is None:
            raise Refused(f"{aggregate!r} has no segment kernel: {compiled.reason}")
        self._module = compiled.module
        identity = aggregate.identity
        fields = identity if isinstance(identity, tuple) else (identity,)
        self.types = tuple(np.array(field).dtype for field in fields)
        self._extra = (1,)
        self.answer_type = compiled.answers

    @property
    def _own(self) -> bool:
        return type(self.aggregate) not in (Min, Max)

    def _inputs(self, inputs: Sequence[Array], valid: Array | None) -> tuple[Array, ...]:
        mask = np.empty(0, np.bool_) if valid is None else valid
        return (*inputs, mask) if self._own else tuple(inputs)

    def fold(
        self, inputs: Sequence[Array], offsets: Array, valid: Array | None = None
    ) -> list[Array]:
        """The partial of each run of rows, one array per field."""
        out = [np.empty(len(offsets) - 1, kind) for kind in self.types]
        extra = (np.empty(0, np.int64), *self._extra) if self._own else self._extra
        self._module.fold(*self._inputs(inputs, valid), offsets, *extra, *out)
        return out

    def answers(
        self,
        inputs: Sequence[Array],
        old: Array,
        new: Array,
        lo: Array,
        hi: Array,
        middle: Sequence[Array],
        middle_rows: Array,
        valid: Array | None = None,
    ) -> Array:
        """The answer of every new row.

        ``old`` and ``new`` are where each key's runs begin (and the end); ``lo`` is the first old
        row in a new row's window (or where old rows of its key end), ``hi`` the end of the new rows
        in it; ``middle_rows`` counts the valid rows of each middle. Answers over no valid row are
        arbitrary.
        """
        counts = np.empty(0, np.int64)
        if valid is not None:
            counts = np.zeros(len(valid) + 1, np.int64)
            np.cumsum(valid, out=counts[1:])
        out = np.zeros(int(new[-1] - new[0]), self.answer_type)
        self._module.segment(
            *self._inputs(inputs, valid),
            old,
            new,
            lo,
            hi,
            *middle,
            middle_rows,
            counts,
            *self._extra,
            out,
        )
        return out
