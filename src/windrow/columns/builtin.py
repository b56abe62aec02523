"""The built-in aggregates' kernels, as texts for ``template``."""

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType

from windrow.columns.template import Parts, load, render

_TWO_SUM = """
@njit(inline="always")
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)

"""


def extreme(better: str) -> Parts:
    """Max or Min of numbers without NaN; rows that are missing hold the value that never wins."""
    return Parts(
        source=f"""
@njit(inline="always")
def combine(a, b):
    return a if a {better} b else b


""",
        inputs=("x",),
        types=("x.dtype",),
        extra="identity, zero, ",
        front_start="p = identity",
        front_step="p = combine(x[U(j)], p)",
        store="s0[k] = p",
        back_start="q = identity",
        back_step="q = combine(q, x[U(j)])",
        merge="p = combine(s0[k], q)",
        emit="out[U(i)] = p + zero",  # -0.0 comes out as 0.0
        empty="out[U(i)] = identity",
        lift="x[U(j)]",
    )


def total(mean: bool) -> Parts:
    """A sum or mean in two words, for rows on a common grid: correctly rounded, not checked by row.

    s is the running sum and e the sum of all rounding errors made on the way. Where all rows are
    multiples of G and |e| stays below 2**51·G, every e is exact, so s + e is the true sum, and
    rounding it once is right. Returns the largest |e|, from which ``columns.sums`` decides.
    """
    return Parts(
        source=_TWO_SUM,
        inputs=("x",),
        types=("np.float64", "np.float64"),
        allocate="most = 0.0",
        front_start="s = 0.0\ne = 0.0",
        front_step="s, t = two_sum(s, x[U(j)])\ne += t\nmost = max(most, abs(e))",
        store="s0[k] = s\ns1[k] = e",
        back_start="qs = 0.0\nqe = 0.0",
        back_step="qs, t = two_sum(qs, x[U(j)])\nqe += t\nmost = max(most, abs(qe))",
        merge="big, t = two_sum(s0[k], qs)",
        emit=f"out[U(i)] = (big + ((s1[k] + qe) + t)){' / rows + 0.0' if mean else ''}",
        empty="out[U(i)] = 0.0",
        result="most",
    )


def checked_total() -> Parts:
    """A sum in two words, with a proof for every row; rows without one are noted in ``doubtful``.

    E bounds the absolute sum of all rounding errors, so s + e is off by at most (rows + 6)·u·E.
    Where moving s + e up and down by that rounds to the same float, that float is the correctly
    rounded sum. NaN, infinities and overflow fail the check by themselves. The front's E is that
    of all its rows, which saves a stored word and costs little.
    """
    return Parts(
        source=_TWO_SUM,
        inputs=("x",),
        types=("np.float64", "np.float64"),
        outs="out, doubtful",
        allocate="doubts = 0",
        front_start="s = 0.0\ne = 0.0\nfront_E = 0.0",
        front_step="s, t = two_sum(s, x[U(j)])\ne += t\nfront_E += abs(t)",
        store="s0[k] = s\ns1[k] = e",
        back_start="qs = 0.0\nqe = 0.0\nback_E = 0.0",
        back_step="qs, t = two_sum(qs, x[U(j)])\nqe += t\nback_E += abs(t)",
        merge="""big, t = two_sum(s0[k], qs)
r, d = two_sum(big, (s1[k] + qe) + t)
b = (front_E + back_E + abs(t)) * ((rows + 6) * 1.2e-16)
y = abs(d) + (b + abs(d) * 1e-15)""",
        emit="""out[U(i)] = r
if not (r + y == r and r - y == r) and not (b == 0.0):
    doubtful[U(doubts)] = i
    doubts += 1""",
        empty="out[U(i)] = 0.0",
        result="doubts",
    )


def arg_extreme(better: str) -> Parts:
    """The row of the largest or smallest value, the oldest of equals; -1 where there is none."""
    return Parts(
        source="",
        inputs=("x", "valid"),
        types=("x.dtype", "np.int64"),
        front_start="p = x[U(low)]\nbest = -1",
        front_step=f"""if valid[U(j)] and (best < 0 or x[U(j)] {better}= p):
    p = x[U(j)]
    best = j""",
        store="s0[k] = p\ns1[k] = best",
        back_start="q = x[U(low)]\nlast_best = -1",
        back_step=f"""if valid[U(j)] and (last_best < 0 or x[U(j)] {better} q):
    q = x[U(j)]
    last_best = j""",
        merge="best = s1[k]",
        emit=f"""newer = best < 0 or (last_best >= 0 and q {better} s0[k])
out[U(i)] = last_best if newer else best""",
        empty="out[U(i)] = -1",
    )


def extreme_count(better: str) -> Parts:
    """How often the largest or smallest value occurs."""
    return Parts(
        source="",
        inputs=("x", "valid"),
        types=("x.dtype", "np.int64"),
        front_start="p = x[U(low)]\ntimes = 0",
        front_step=f"""if valid[U(j)]:
    if times == 0 or x[U(j)] {better} p:
        p = x[U(j)]
        times = 1
    elif x[U(j)] == p:
        times += 1""",
        store="s0[k] = p\ns1[k] = times",
        back_start="q = x[U(low)]\nback_times = 0",
        back_step=f"""if valid[U(j)]:
    if back_times == 0 or x[U(j)] {better} q:
        q = x[U(j)]
        back_times = 1
    elif x[U(j)] == q:
        back_times += 1""",
        merge="times = s1[k]",
        emit=f"""if times == 0 or (back_times and q {better} s0[k]):
    out[U(i)] = back_times
elif back_times and q == s0[k]:
    out[U(i)] = times + back_times
else:
    out[U(i)] = times""",
        empty="out[U(i)] = 0",
    )


_KERNELS: dict[str, Callable[[], Parts]] = {
    "max": lambda: extreme(">"),
    "min": lambda: extreme("<"),
    "total": partial(total, mean=False),
    "mean": partial(total, mean=True),
    "checked_total": checked_total,
    "arg_max": partial(arg_extreme, ">"),
    "arg_min": partial(arg_extreme, "<"),
    "max_count": partial(extreme_count, ">"),
    "min_count": partial(extreme_count, "<"),
}


@cache
def kernels(name: str) -> ModuleType:
    """The compiled module of a built-in; compiled code comes from the disk where it is there."""
    return load(render(_KERNELS[name]()), name)
