"""How the answers of one window are spread: quantiles, and a histogram like other windows'."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BARS = 40
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_TAIL = 0.005


@dataclass
class Spread:
    """Of all keys together."""

    rows: int
    missing: int
    odd: int
    """NaN and infinite ones."""
    mean: float | None = None
    quantiles: list[float] = field(default_factory=list)
    """At ``SHARES``; smallest and largest are those of all rows."""
    sample: Array = field(default_factory=lambda: np.empty(0))
    sampled: bool = False


def spread(
    values: Array, rows: int, missing: int, ends: tuple[float, float] | None = None
) -> Spread:
    """The spread of finite and other numbers that are there; ``ends`` are those of all rows.

    ``rows`` and ``missing`` count all rows, of which the values may be a sample.
    """
    finite = np.sort(values[np.isfinite(values)].astype(np.float64))
    made = Spread(rows, missing, len(values) - len(finite), sampled=len(values) < rows - missing)
    if len(finite):
        made.quantiles = [float(q) for q in np.quantile(finite, SHARES, method="nearest")]
        if ends is not None:
            made.quantiles[0], made.quantiles[-1] = (float(end) for end in ends)
        largest = float(np.max(np.abs(finite))) or 1.0
        made.mean = float(np.mean(finite / largest)) * largest  # whose sum cannot overflow
        made.sample = finite
    return made


@dataclass(frozen=True)
class Histogram:
    """Heights of equal bars over a range; what lies outside is in the bars at the ends."""

    low: float
    high: float
    heights: list[int]


def histograms(spreads: list[Spread]) -> list[Histogram | None]:
    """One for each window, over one range, or each over its own where ranges are very unlike."""
    known = [s for s in spreads if len(s.sample)]
    ranges = [_range([s]) for s in known]
    widths = [high / 2 - low / 2 for low, high in ranges]
    alike = not widths or max(widths) <= _UNLIKE * min(widths)
    shared = _range(known) if known and alike else None
    return [_histogram(s, *(shared or _range([s]))) if len(s.sample) else None for s in spreads]


_UNLIKE = 5


def _range(spreads: list[Spread]) -> tuple[float, float]:
    """From smallest to largest, less half a percent at each end where that is much shorter."""
    low = min(s.quantiles[0] for s in spreads)
    high = max(s.quantiles[-1] for s in spreads)
    inner = [np.quantile(s.sample, (_TAIL, 1 - _TAIL), method="nearest") for s in spreads]
    inner_low, inner_high = float(min(q[0] for q in inner)), float(max(q[1] for q in inner))
    narrow = inner_high / 2 - inner_low / 2
    if narrow > 0 and high / 2 - low / 2 > 1.5 * narrow:
        low, high = inner_low, inner_high
    if not np.isfinite(high - low):
        low, high = low / 2, high / 2
    whole = all(np.all(s.sample == np.round(s.sample)) for s in spreads)
    few = whole and high - low < BARS
    return (low - 0.5, high + 0.5) if few or high <= low else (low, high)


def _histogram(spread: Spread, low: float, high: float) -> Histogram:
    few = high - low <= BARS and (low - 0.5).is_integer() and (high - 0.5).is_integer()
    edges = np.linspace(low, high, (int(high - low) if few else BARS) + 1)
    return Histogram(low, high, np.histogram(np.clip(spread.sample, low, high), edges)[0].tolist())
