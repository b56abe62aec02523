"""For tests of windrow and of aggregates written with it: laws, oracle, corpus, counting.

``windrow.testing.strategies`` has Hypothesis strategies; it alone needs ``hypothesis``.
"""

from windrow.testing.corpus import CASES, TIMED_CASES, Case, TimedCase, cases
from windrow.testing.counting import CombineCounter, CountedWindow
from windrow.testing.laws import check_laws
from windrow.testing.oracle import Twin, check_against_recalc, rolling

__all__ = [
    "CASES",
    "TIMED_CASES",
    "Case",
    "CombineCounter",
    "CountedWindow",
    "TimedCase",
    "Twin",
    "cases",
    "check_against_recalc",
    "check_laws",
    "rolling",
]
