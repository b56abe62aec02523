"""Where a quantile lies among n values in order, by each of the known definitions.

The names are NumPy's. ``lower`` is the paper's: the element at position ⌊φ·n⌋ counted from 1, the
first one where that is 0.
"""

from collections.abc import Callable

import numpy as np

from windrow.columns.ranges import Array

_Place = Callable[[Array, Array], Array]


def _between(alpha: float, beta: float) -> _Place:
    def place(n: Array, phi: Array) -> Array:
        found: Array = n * phi + (alpha + phi * (1 - alpha - beta)) - 1
        return found

    return place


def _at(n: Array, phi: Array) -> Array:
    found: Array = (n - 1) * phi
    return found


def _closest(n: Array, phi: Array) -> Array:
    place = n * phi - 1.5
    low = np.floor(place)
    even = (place == low) & (low % 2 == 1)
    return np.where(even, low, low + 1)


def _inverted(n: Array, phi: Array) -> Array:
    found: Array = np.ceil(n * phi) - 1
    return found


def _nearest(n: Array, phi: Array) -> Array:
    found: Array = np.rint(_at(n, phi))
    return found


def _averaged(n: Array, phi: Array) -> Array:
    place = n * phi - 1
    low = np.floor(place)
    found: Array = np.where(place == low, low + 0.5, low + 1)
    return found


def _midpoint(n: Array, phi: Array) -> Array:
    place = _at(n, phi)
    found: Array = 0.5 * (np.floor(place) + np.ceil(place))
    return found


_BETWEEN: dict[str, _Place] = {
    "linear": _at,
    "averaged_inverted_cdf": _averaged,
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
    "midpoint": _midpoint,
}
_ELEMENTS: dict[str, _Place] = {
    "lower": lambda n, phi: np.floor(n * phi) - 1,
    "higher": lambda n, phi: np.ceil(_at(n, phi)),
    "nearest": _nearest,
    "inverted_cdf": _inverted,
    "closest_observation": _closest,
}
METHODS = (*_BETWEEN, *_ELEMENTS)
"""Those that may lie between two values, and those that are always one of them."""


def places(method: str, n: Array, phi: Array) -> tuple[Array, Array | None]:
    """The place of the value below (from 0), and how far to go from it to the next, if anywhere."""
    last = np.maximum(n - 1, 0)
    if method in _ELEMENTS:
        place = _ELEMENTS[method](n, phi)
        return np.clip(place, 0, last).astype(np.int64), None
    place = np.clip(_BETWEEN[method](n, phi), 0, last)
    low = np.floor(place)
    return low.astype(np.int64), place - low


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
