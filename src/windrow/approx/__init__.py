"""Counts and sums over sliding windows in the fewest bits that can work, with proven errors."""

from windrow.approx.bank import Bank
from windrow.approx.counting import Count
from windrow.approx.exponential_histogram import ExponentialHistogram
from windrow.approx.scaling import RealSum
from windrow.approx.summing import Sum
from windrow.approx.times import OverTime

__all__ = ["Bank", "Count", "ExponentialHistogram", "OverTime", "RealSum", "Sum"]
