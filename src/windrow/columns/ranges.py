"""The windows of all rows, as kernels take them, and how threads share them."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

from windrow.columns.jit import njit

Array = np.ndarray[Any, Any]

_SMALL = 1 << 15


@njit(cache=True, nogil=True)
def _longest(lo, hi, first, last):  # type: ignore[no-untyped-def]
    most = 0
    for i in range(first, last):
        most = max(most, hi[i] - lo[i])
    return most


class Ranges:
    """Ranges [lo, hi) of sorted rows, one per answer, that only move forward.

    ``width`` says that they are the last ``width`` rows of one run: then no bounds are kept.
    """

    def __init__(
        self,
        lo: Array | None,
        hi: Array | None,
        size: int,
        width: int | None = None,
        threads: int = 1,
        forced: str | None = None,
        never_empty: bool = False,
    ) -> None:
        self.lo, self.hi = lo, hi
        self.width = width
        self.size = size
        self.threads = threads
        self.forced = forced
        """A kernel asked for by name: ``steady`` or ``greedy``."""
        self.never_empty = never_empty
        self.monotone = True
        """Whether kernels for ranges that only move forward may be used."""
        self.recalc = False
        self.may_subtract = True
        """Whether rows may be taken out of running sums, where that is proven exact."""
        self.kept: str | None = None
        """How policies kept rows, where they did."""

    def like(self, lo: Array, hi: Array) -> "Ranges":
        """Other bounds, of the same kind."""
        other = Ranges(lo, hi, len(lo), None, self.threads, self.forced, self.never_empty)
        other.monotone, other.recalc = self.monotone, self.recalc
        other.may_subtract = self.may_subtract
        return other

    @property
    def slides(self) -> bool:
        """Whether rows may be added and taken out in order."""
        return self.monotone and self.may_subtract and self.forced is None

    def some(self, rows: Array) -> "Ranges":
        """Those of some answers."""
        return self.like(*self.of(rows))

    def __len__(self) -> int:
        return self.size

    def description(self) -> str:
        """In words, for plans."""
        if self.width is not None:
            return f"of the last {self.width:,} rows, not stored"
        return "that only move forward" if self.monotone else "in any order"

    def of(self, rows: Array) -> tuple[Array, Array]:
        """The bounds of some answers."""
        if self.width is not None:
            return np.maximum(rows - self.width + 1, 0), rows + 1
        assert self.lo is not None
        assert self.hi is not None
        return self.lo[rows], self.hi[rows]

    def bounds(self) -> tuple[Array, Array]:
        """All bounds."""
        if self.lo is None or self.hi is None:
            return self.of(np.arange(self.size))
        return self.lo, self.hi

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The rows that the answers [first, last) look at."""
        lo, hi = self.of(np.array([first, last - 1]))
        return int(lo[0]), int(hi[1])

    def touched(self, first: int, last: int) -> tuple[int, int]:
        """The rows that running sums of the answers [first, last) add or take out.

        Those that they look at; the row that leaves first, where ranges are the last rows; and what
        lies before an empty range at the end.
        """
        start, end = self.span(first, last)
        if self.lo is None:
            return max(start - 1, 0), end
        return start, max(end, int(self.lo[last - 1]))

    def widest(self, first: int, last: int) -> int:
        """No range of the answers [first, last) is longer than this."""
        if self.width is not None:
            return self.width
        assert self.lo is not None
        assert self.hi is not None
        return int(_longest(self.lo, self.hi, first, last))

    def _typical(self) -> int:
        """About how long ranges are: restarting in the middle costs as much again."""
        if self.width is not None or self.lo is None or self.hi is None:
            return self.width or 0
        some = slice(None, None, max(1, self.size // 1000))
        return int((self.hi[some] - self.lo[some]).max()) if self.size else 0

    def run(
        self, module: ModuleType, inputs: tuple[Any, ...], first: int, last: int, *rest: Any
    ) -> Any:
        """Call a kernel for the answers [first, last)."""
        if self.width is not None and self.forced is None:
            return module.block(*inputs, self.width, first, last, *rest)
        lo, hi = self.bounds()
        if not self.monotone:
            return module.tree(*inputs, lo, hi, first, last, *rest)
        kernel = getattr(module, self.forced or "bounded")
        return kernel(*inputs, lo, hi, first, last, *rest)

    def in_parallel(self, work: Callable[[int, int], None], region: int | None = None) -> None:
        """Do the work for all answers, cut up for threads, and into regions where asked for."""
        pieces = self.threads if self.size > _SMALL and self.monotone else 1
        step = max(1, -(-self.size // pieces))
        if region is not None:
            longest = self._typical()
            step = max(1, min(step, max(region, 8 * longest)))
        cuts = [(first, min(first + step, self.size)) for first in range(0, self.size, step)]
        if self.threads == 1 or len(cuts) == 1 or not self.monotone:
            for first, last in cuts:
                work(first, last)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(work, first, last) for first, last in cuts]:
                done.result()


def shared_out(size: int, threads: int, work: Callable[[int, int], Any]) -> list[Any]:
    """``work(first, last)`` for consecutive pieces of ``size`` rows, on all threads."""
    if threads == 1 or size <= _SMALL:
        return [work(0, size)]
    step = -(-size // threads)
    with ThreadPoolExecutor(threads) as pool:
        pieces = [(first, min(first + step, size)) for first in range(0, size, step)]
        return [done.result() for done in [pool.submit(work, *piece) for piece in pieces]]


def thread_count(threads: int | None) -> int:
    """How many threads to use: those asked for, or all cores this process may use."""
    return threads if threads is not None else len(os.sched_getaffinity(0))
