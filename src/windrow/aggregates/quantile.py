"""Exact quantiles: every value of the window is kept, in order."""

from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Unpack, get_args

import numpy as np

from windrow.aggregates import exact
from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema
from windrow.aggregates.sorted_runs import Run, merged, without
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification, BadValue

Picks = Literal["lower", "higher", "nearest", "inverted_cdf", "closest_observation"]
"""Methods whose answer is one of the values."""
Interpolates = Literal[
    "linear",
    "midpoint",
    "averaged_inverted_cdf",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
]
"""Methods whose answer may lie between two values: a float."""
Method = Picks | Interpolates
PICKS: tuple[str, ...] = get_args(Picks)
INTERPOLATES: tuple[str, ...] = get_args(Interpolates)
_ALPHA_BETA = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}

Array = np.ndarray[Any, Any]


def positions(method: str, phi: float | Array, rows: Array) -> tuple[Array, Array]:
    """For each number of rows where the quantile lies: which value, and how far to the next one.

    This is the only place that knows the methods; every engine looks its positions up here.
    """
    n = rows.astype(np.float64)
    fraction = np.zeros(len(n))
    if method == "lower":
        index = np.floor(n * phi) - 1
    elif method == "higher":
        index = np.ceil((n - 1) * phi)
    elif method == "nearest":
        index = np.around((n - 1) * phi)
    elif method in PICKS:
        exactly = n * phi - 1 - (0.5 if method == "closest_observation" else 0.0)
        index = np.floor(exactly)
        stays = exactly == index
        if method == "closest_observation":
            stays &= index % 2 == 1
        index = np.where(stays, index, index + 1)
    else:
        index, fraction = _between(method, phi, n)
    beyond = index >= n - 1
    fraction[beyond | (index < 0)] = 0.0
    return np.clip(index, 0, np.maximum(n - 1, 0)).astype(np.int64), fraction


def _between(method: str, phi: float | Array, n: Array) -> tuple[Array, Array]:
    if method in ("linear", "midpoint"):
        exactly = (n - 1) * phi
    elif method == "averaged_inverted_cdf":
        exactly = n * phi - 1
    else:
        alpha, beta = _ALPHA_BETA[method]
        exactly = n * phi + (alpha + phi * (1 - alpha - beta)) - 1
    index = np.floor(exactly)
    fraction = exactly - index
    if method == "midpoint":
        fraction = np.where(fraction == 0, 0.0, 0.5)
    elif method == "averaged_inverted_cdf":
        index = np.where(fraction == 0, index, index + 1)
        fraction = np.where(fraction == 0, 0.5, 0.0)
    return index, fraction


@lru_cache(1 << 12)
def position(method: str, phi: float, rows: int) -> tuple[int, float]:
    """``positions`` of one number of rows."""
    index, fraction = positions(method, phi, np.array([rows]))
    return int(index[0]), float(fraction[0])


def interpolated(a: float, b: float, fraction: float) -> float:
    """Between two values; a and b themselves where there is nothing between them.

    The kernels of ``windrow.columns`` compute the same, operation by operation.
    """
    if fraction == 0.0 or a == b:
        return a + 0.0
    step = b - a
    if not abs(step) < np.inf:  # too far apart for a float, infinite, or NaN
        return a * (1.0 - fraction) + b * fraction + 0.0
    if fraction >= 0.5:
        return b - step * (1.0 - fraction) + 0.0
    return a + step * fraction + 0.0


class Quantile(Aggregate):
    """The value below which a share ``phi`` of the window lies, exactly, by any of NumPy's methods.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Quantile(0.75))
    >>> [window.insert(x) for x in [1, 9, 4, 2, 3]]
    [1.0, 7.0, 6.5, 5.25, 5.25]

    ``Quantile("amount", 0.95)`` of a column is called ``amount_p95``. ``method="linear"`` (what
    pandas does), ``midpoint``, ``hazen``, ``weibull``, ``median_unbiased``, ``normal_unbiased``,
    ``averaged_inverted_cdf`` and ``interpolated_inverted_cdf`` interpolate: numbers only, a float.
    ``higher``, ``nearest``, ``inverted_cdf`` and ``closest_observation`` give one of the values, in
    its own type, and take whatever can be ordered. All mean what they mean in ``numpy.quantile``,
    except ``lower``, which is the definition of Arasu and Widom: the value at place ⌊phi·N⌋ of
    1 … N, where place 0 is read as 1 (``numpy.quantile`` takes ⌊phi·(N − 1)⌋ of 0 … N − 1).

    NaN is the largest value; between a number and NaN lies NaN. The partial holds all values of the
    window: this is a holistic aggregate.
    """

    kind = "holistic"
    commutative = True
    invertible = True
    reproducible = True
    inputs = ("number",)
    schema = Schema.single("value", "values")
    family = staticmethod(order_family)
    name = "p50"

    def __init__(
        self,
        *columns: Any,
        phi: float | None = None,
        method: Method = "linear",
        **options: Unpack[Options],
    ) -> None:
        if columns and not isinstance(columns[-1], str):
            if phi is not None:
                raise BadSpecification(f"Quantile: phi is given twice, {columns[-1]!r} and {phi!r}")
            *columns, phi = columns  # type: ignore[assignment]
        elif phi is None:
            phi = 0.5
        good = isinstance(phi, (int, float, np.number)) and not isinstance(phi, bool)
        if not good or not 0 <= phi <= 1:
            raise BadSpecification(f"a quantile is a number from 0 to 1, not {phi!r}")
        if method not in PICKS and method not in INTERPOLATES:
            raise BadSpecification(
                f"method= is one of {', '.join((*INTERPOLATES, *PICKS))}, not {method!r}"
            )
        super().__init__(*columns, **options)
        self.phi = float(phi)
        self.method = method
        if method in PICKS:
            self.inputs = ("orderable",)
        self.name = self._short_name()

    def _short_name(self) -> str:
        percent = format(Decimal(repr(self.phi)) * 100, "f")
        percent = percent.rstrip("0").rstrip(".") if "." in percent else percent
        return f"p{percent.replace('.', '_')}"

    @property
    def picks(self) -> bool:
        """Whether the answer is one of the values."""
        return self.method in PICKS

    def options(self) -> dict[str, Any]:
        """The share, and the method where it is not the default."""
        hidden = {"inputs", "name"} | ({"method"} if self.method == "linear" else set())
        return {k: v for k, v in super().options().items() if k not in hidden}

    def lift(self, value: Any) -> Run:
        """A run of one."""
        value = canonical(value)
        if not self.picks and order_family(value) != "number":
            try:
                value = canonical(exact.as_number(value))
            except BadValue:
                raise BadValue(
                    f"{self!r} interpolates between numbers, got {value!r} "
                    f'({type(value).__name__}): method="lower" takes whatever can be ordered'
                ) from None
        return (value,)

    @staticmethod
    def combine(a: Run, b: Run) -> Run:
        """Merge."""
        return merged(a, b)

    @staticmethod
    def inverse(total: Run, oldest: Run) -> Run:
        """Take the oldest out."""
        return without(total, oldest)

    def lower(self, run: Run) -> Any:
        """The value at the quantile's place, or between two."""
        index, fraction = position(self.method, self.phi, len(run))
        if self.picks:
            return run[index]
        a = float(run[index])
        return interpolated(a, float(run[index + 1]) if fraction else a, fraction)


class Median(Quantile):
    """The middle value, or halfway between the two in the middle: ``Quantile`` of 0.5.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Median())
    >>> [window.insert(x) for x in [1, 9, 4, 2]]
    [1.0, 5.0, 4.0, 3.0]
    """

    name = "median"

    def __init__(
        self, *columns: str, method: Method = "linear", **options: Unpack[Options]
    ) -> None:
        super().__init__(*columns, phi=0.5, method=method, **options)

    def _short_name(self) -> str:
        return "median"

    def options(self) -> dict[str, Any]:
        """The method where it is not the default."""
        return {k: v for k, v in super().options().items() if k != "phi"}
