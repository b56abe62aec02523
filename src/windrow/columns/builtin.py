"""The built-in aggregates' kernels, as texts for ``template``."""

from functools import cache
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


@njit(inline="always")
def lift(x):
    return x

""",
        inputs=("x",),
        types=("x.dtype",),
        extra="identity, ",
        front_start="p = identity",
        front_step="p = combine(x[U(j)], p)",
        store="s0[k] = p",
        back_start="q = identity",
        back_step="q = combine(q, x[U(j)])",
        merge="p = combine(s0[k], q)",
        emit="out[U(i)] = p",
        empty="out[U(i)] = identity",
        steady=True,
    )


# A sum in two words: s, and e, the sum of all rounding errors made on the way; E bounds their
# absolute sum. s + e is off by at most (rows + 6)·u·E, so where rounding s + e up and down by that
# gives the same float, that float is the correctly rounded sum. Rows where it does not are noted in
# `doubtful` and decided by exact arithmetic. NaN, infinities and overflow fail the check by
# themselves. E of the front is that of all its rows, which saves a stored word and costs little.
_CERTIFY = """
big, t = two_sum({s}, {qs})
e = ({e} + {qe}) + t
r, d = two_sum(big, e)
b = (front_E + back_E + abs(t)) * ((rows + 6) * 1.2e-16)
y = abs(d) + (b + abs(d) * 1e-15)
"""


def total(final: str) -> Parts:
    """Sum or Mean of floats, correctly rounded; missing rows hold 0."""
    return Parts(
        source=_TWO_SUM,
        inputs=("x",),
        types=("np.float64", "np.float64"),
        extra="counts, ",
        outs="out, doubtful, doubts",
        front_start="s = 0.0\ne = 0.0\nfront_E = 0.0",
        front_step="s, t = two_sum(s, x[U(j)])\ne += t\nfront_E += abs(t)",
        store="s0[k] = s\ns1[k] = e",
        back_start="qs = 0.0\nqe = 0.0\nback_E = 0.0",
        back_step="qs, t = two_sum(qs, x[U(j)])\nqe += t\nback_E += abs(t)",
        merge=_CERTIFY.format(s="s0[k]", e="s1[k]", qs="qs", qe="qe"),
        emit=f"""{final}
if not (r + y == r and r - y == r) and not (b == 0.0):
    doubtful[U(doubts[0])] = i
    doubts[0] += 1
    if doubts[0] == len(doubtful):
        return""",
        empty="out[U(i)] = 0.0",
    )


@cache
def kernels(name: str) -> ModuleType:
    """The compiled module of a built-in; compiled code comes from the disk where it is there."""
    parts = {
        "max": lambda: extreme(">"),
        "min": lambda: extreme("<"),
        "sum": lambda: total("out[U(i)] = r"),
    }[name]()
    return load(render(parts), name)
