"""Windows: one file per algorithm that keeps one in-order window, one value at a time."""

from windrow.windows.amta import Amta
from windrow.windows.base import Card, Window
from windrow.windows.daba import Daba
from windrow.windows.daba_lite import DabaLite
from windrow.windows.fiba import Fiba
from windrow.windows.flat_fat import FlatFat
from windrow.windows.flat_fit import FlatFit
from windrow.windows.log_mta import LogMta
from windrow.windows.monoid_tree import MonoidTree
from windrow.windows.monotone_deque import MonotoneDeque
from windrow.windows.recalc import Recalc
from windrow.windows.running_total import RunningTotal
from windrow.windows.subtract_on_evict import SubtractOnEvict
from windrow.windows.two_stacks import TwoStacks
from windrow.windows.two_stacks_lite import TwoStacksLite

ALGORITHMS: dict[str, type[Window]] = {
    algorithm.__name__: algorithm
    for algorithm in (
        Recalc,
        SubtractOnEvict,
        MonotoneDeque,
        TwoStacks,
        TwoStacksLite,
        Daba,
        DabaLite,
        FlatFat,
        FlatFit,
        LogMta,
        Amta,
        Fiba,
    )
}
"""Every algorithm from which rows can leave. Tests, benchmarks, planner and docs all read this."""

__all__ = [
    "ALGORITHMS",
    "Amta",
    "Card",
    "Daba",
    "DabaLite",
    "Fiba",
    "FlatFat",
    "FlatFit",
    "LogMta",
    "MonoidTree",
    "MonotoneDeque",
    "Recalc",
    "RunningTotal",
    "SubtractOnEvict",
    "TwoStacks",
    "TwoStacksLite",
    "Window",
]
