"""Where quantiles lie, and what lies between two values, for whole columns.

The definitions are those of ``windrow.aggregates.quantile``.
"""

import numpy as np

from windrow.aggregates.quantile import INTERPOLATES, PICKS, positions
from windrow.columns.ranges import Array

METHODS = (*INTERPOLATES, *PICKS)
"""Those that may lie between two values, and those that are always one of them."""


def places(method: str, n: Array, phi: Array) -> tuple[Array, Array | None]:
    """The place of the value below (from 0), and how far to go from it to the next, if anywhere."""
    index, fraction = positions(method, phi, n)
    return index, None if method in PICKS else fraction


def interpolated(low: Array, high: Array, weights: Array) -> Array:
    """Between two values; the values themselves where there is nothing between them."""
    a, b = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        step = b - a
        between = np.where(weights >= 0.5, b - step * (1.0 - weights), a + step * weights)
        far = a * (1.0 - weights) + b * weights  # too far apart for a float, infinite, or NaN
    out = np.where(np.isfinite(step), between, far)
    out = np.where((weights == 0.0) | (a == b), a, out)
    return np.where(np.isnan(out), np.nan, out) + 0.0
