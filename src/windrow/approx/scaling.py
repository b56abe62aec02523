"""Sums of real values, by scaling: Algorithms 2 and 3 round each value to a unit anyway.

A value from ``minimum`` to ``maximum`` becomes Round((x − minimum) · V / (maximum − minimum)). What
that rounding costs, W · (1/2 + 2⁻⁸) units, is part of the layout's error (see ``layout``), so the
whole error, scaling included, stays within ε · W · (maximum − minimum).

Where ``minimum`` is not 0 the number of values so far matters while the window fills up: it is kept
in ⌈log(W+1)⌉ more bits (``seen``).
"""

import math
from typing import Any

import numpy as np

from windrow.approx import frame
from windrow.approx.base import Counter
from windrow.approx.parameters import checked_epsilon, checked_window
from windrow.approx.summing import real_bound, summing_layout
from windrow.errors import BadSpecification, BadValue


class RealSum(Counter):
    """The sum of the last ``window`` real values from ``minimum`` to ``maximum``.

    The error is at most epsilon × window × (maximum − minimum).

    >>> celsius = RealSum(window=1440, minimum=-40.0, maximum=60.0, epsilon=0.005)
    >>> celsius.insert_many([21.5, 22.25, 20.75] * 480)
    >>> abs(celsius.query() / 1440 - 21.5) <= celsius.error_bound / 1440 <= 0.5
    True
    """

    __slots__ = ("_minimum",)
    kind = 3

    def __init__(
        self,
        window: int,
        maximum: float,
        epsilon: Any,
        *,
        minimum: float = 0.0,
        clamp: bool = False,
    ) -> None:
        W, e = checked_window(window), checked_epsilon(epsilon)
        low, high = float(minimum), float(maximum)
        if not (math.isfinite(low) and math.isfinite(high - low) and low < high):
            raise BadSpecification(f"values from {minimum!r} to {maximum!r}: give an interval")
        layout = summing_layout(W, high - low, e, W.bit_length() if low else 0)
        if layout is None:
            raise BadSpecification(
                f"epsilon={epsilon!r} asks for values finer than 2**-40 of their range: real "
                "values cannot be kept that exactly; give a larger epsilon"
            )
        super().__init__(layout, e, clamp)
        self._minimum = low

    @property
    def minimum(self) -> float:
        """The smallest value that may come."""
        return self._minimum

    @property
    def maximum(self) -> float:
        """The largest value that may come."""
        return self._minimum + self.layout.R

    def lower_bound_bits(self) -> int:
        """Lemma 11, and Lemma 12 with as many letters as the reals allow."""
        return real_bound(self.window, self._epsilon)

    def insert_many(self, values: Any) -> None:
        """Take many values in order: compiled, and either all of them or none."""
        many = _floats(values if hasattr(values, "__len__") else list(values))
        super().insert_many(many)
        if self.layout.fits_machine_words:  # otherwise they were taken one by one
            self._count(len(many))

    def skip(self, count: int) -> None:
        """Take ``count`` zeros; only where the smallest value is 0."""
        if self._minimum:
            raise BadSpecification("zeros are skipped only where minimum is 0")
        super().skip(count)

    def query(self) -> float:
        """The estimate for the last ``window`` values."""
        layout = self.layout
        estimate = super().query()
        if not self._minimum:
            return estimate
        seen = self._packed.get(layout.head_bits - layout.seen_bits, layout.seen_bits)
        return min(estimate, seen * layout.R) + self._minimum * seen

    def _take(self, units: int) -> None:
        super()._take(units)
        self._count(1)

    def _count(self, count: int) -> None:
        layout = self.layout
        if layout.seen_bits:
            at = layout.head_bits - layout.seen_bits
            seen = self._packed.get(at, layout.seen_bits)
            self._packed.put(at, layout.seen_bits, min(seen + count, layout.W))

    def _units(self, value: Any) -> int:
        return int(self._many_units(_floats([value]))[0])

    def _many_units(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.ndim != 1:
            raise BadValue(f"values have {values.ndim} dimensions: give one value after another")
        if self.clamp and not np.isnan(values).any():
            values = np.clip(values, self._minimum, self.maximum)
        good = (values >= self._minimum) & (values <= self.maximum)
        if not good.all():
            row = int(np.argmin(good))
            raise BadValue(
                f"row {row}: {values[row]} is not from {self._minimum} to {self.maximum}: the "
                "error bound holds for these only. Give a wider range, or clamp=True"
            )
        layout = self.layout
        units = np.floor((values - self._minimum) * (layout.V / layout.R) + 0.5)
        return np.clip(units, 0, layout.V).astype(np.int64)

    def _parameters(self) -> frame.Parameters:
        kind, W, R, epsilon, clamp = super()._parameters()
        return kind, W, (self._minimum, R), epsilon, clamp

    def _fresh(self) -> "RealSum":
        made = super()._fresh()
        made._minimum = self._minimum
        return made


def _floats(values: Any) -> np.ndarray[Any, Any]:
    """Numbers as doubles; NumPy would read texts as numbers too."""
    given = np.asarray(values)
    if given.dtype.kind in "USmM":
        raise BadValue(f"values of type {given.dtype} are not numbers: convert them first")
    return given.astype(np.float64)
