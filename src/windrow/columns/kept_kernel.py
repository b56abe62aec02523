"""The text of a kernel that goes over rows once and says from where on they are kept.

One pass per key: a row enters, ``since`` lets go what is too old, and each policy in turn moves
``low``, the oldest row that stays. It never moves back, so a row enters once and leaves once.

A float sum is compared as it would be rounded. Where two words do not decide that, exact
accumulators do (``columns.exact``, whose text is taken in: see ``columns.template`` for why).

The kernel returns 0, or why it gave up, and the row.
"""

import inspect
from collections.abc import Sequence

from windrow.columns import exact
from windrow.columns.kept_text import EXTREMES, Dimension
from windrow.columns.skeletons import HEAD

OVERFLOWS, MISSING, DOUBTFUL = 1, 2, 3
"""Why a kernel gives up: a sum beyond 64 bits, an answer that is None, a float sum on the edge."""

_FLOAT_FUNCTIONS = """@njit
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit
def side(high, low, rows, limit, half):
    \"\"\"-1: a sum rounds to at most the limit; 1: to more; 0: two words do not decide.

    It rounds to more from limit + half a unit on. No row is negative, so the low word is wrong by
    rows² · 2**-106 of the sum at most.
    \"\"\"
    if limit < 0.0 or limit != limit:
        return 1
    if limit == np.inf:
        return -1
    if high == np.inf:
        return 0
    d, e = two_sum(high, -limit)
    r = d + ((e + low) - half)
    slack = (rows + 4.0) * (rows + 4.0) * 2.0**-105 * high + 2.0**-50 * (abs(low) + half)
    return 1 if r > slack else -1 if r < -slack else 0


@njit
def exact_sum(x, points, words, low, high):
    bits = x.view(np.int64)
    a, b = (low + STEP - 1) // STEP, high // STEP
    if a >= b:
        a = b = -1
        words[:] = 0
        for j in range(low, high):
            _add(words, bits[j], x[j], 1)
        return _rounded(words)
    for k in range(SIZE):
        words[k] = points[b, k] - points[a, k]
    for j in range(low, a * STEP):
        _add(words, bits[j], x[j], 1)
    for j in range(b * STEP, high):
        _add(words, bits[j], x[j], 1)
    return _rounded(words)


"""

_KERNEL = """@njit(cache=True, nogil=True)
def kept({arguments}offsets, since, first, last, lo):
    {scratch}
    for run in range(first, last):
        start, end = offsets[run], offsets[run + 1]
        if start == end:
            continue
        low = mid = i = start
        {reset}
        for i in range(start, end):
            {enter}
            if len(since) and since[i] > low:
                low = since[i]
            {policies}
            lo[i] = low
    return 0, 0
"""


def _indented(text: str, depth: int) -> str:
    lines = [line for line in text.strip("\n").split("\n") if line.strip()]
    return ("\n" + " " * depth).join(lines) or "pass"


def _flip(dimensions: Sequence[Dimension]) -> str:
    stacked = [d for d in dimensions if d.stacked]
    if not stacked:
        return ""
    inside = "\n".join(f"{d.flip()}\n{d.reset()}" for d in stacked)
    return f"if low >= mid:\n    {_indented(inside, 4)}\n    mid = i + 1\n"


def _limit(bounded: Dimension, limit: Dimension | None, number: int) -> str:
    """Statements: the limit that counts, or leave the loop."""
    half = bounded.way == "float_sum"
    if limit is None:
        return f"limit = limit_{number}\n" + (f"half = half_{number}\n" if half else "")
    found = "at = w#[i]\nif at < low:\n    break\nlimit = x#[at]\n" + "half = u#[at]\n" * half
    return limit.named(found)


def at_most(
    number: int, bounded: Dimension, limit: Dimension | None, every: Sequence[Dimension]
) -> str:
    """Statements: oldest rows leave while the answer does not fit."""
    if bounded.way == "float_sum":
        body = _flip(every) + "if c#[i + 1] == c#[low]:\n    break\n"
        body += _limit(bounded, limit, number)
        body += (
            "if len(n#) and n#[i + 1] > n#[low]:\n    fits = False\n"
            "elif len(n#) and m#[i + 1] > m#[low]:\n    fits = limit == np.inf\n"
            "else:\n"
            "    high, e = two_sum(h#[low], y#)\n"
            "    where = side(high, l#[low] + z# + e, i + 1 - low, limit, half)\n"
            "    fits = where < 0\n"
            "    if where == 0:\n"
            f"        if len(points#) == 0:\n            return {DOUBTFUL}, i\n"
            "        fits = exact_sum(x#, points#, words, low, i + 1) <= limit\n"
            "if fits:\n    break\n"
        )
    else:
        body = (_flip(every) if bounded.stacked else "") + bounded.total() + "\n"
        body += "if not thas#:\n    break\n"
        if bounded.way == "sum":  # no row is negative, so this is a sum beyond 64 bits
            body += f"if t# < 0:\n    return {OVERFLOWS}, i\n"
        body += _limit(bounded, limit, number) + "if t# <= limit:\n    break\n"
    return f"while low <= i:\n    {_indented(bounded.named(body), 4)}\n    low += 1\n"


def _search(asked: Sequence[Dimension], every: Sequence[Dimension], start: str, step: str) -> str:
    """Statements: the longest run of oldest rows that must leave, given the total, leaves."""
    before = _flip(every) if any(d.stacked for d in asked) else ""
    before += "\n".join(d.total() for d in asked) + "\n" + start
    before += "\n".join(d.oldest_start() for d in asked) + "\nj = low\n"
    inside = "\n".join(d.oldest_step() for d in asked) + "\n" + step
    text = before + f"while j <= i:\n    {_indented(inside, 4)}\n    j += 1\nlow = j\n"
    return f"if low <= i:\n    {_indented(text, 4)}\n"


def function(
    number: int, together: bool, asked: Sequence[Dimension], every: Sequence[Dimension]
) -> str:
    """Statements: the rows leave of which a user's function says so."""

    def known(name: str) -> str:
        every = " and ".join(f"{name}has{d.number}" for d in asked)
        return f"if not ({every}):\n    return {MISSING}, i\n"

    def answers(name: str) -> str:
        found = [d.answer(name) for d in asked]
        return f"({', '.join(found)},)" if together else found[0]

    start = known("t") + f"total = {answers('t')}\n"
    step = known("o") + f"if not function_{number}(total, {answers('o')}):\n    break\n"
    return _search(asked, every, start, step)


def useful(about: Dimension, every: Sequence[Dimension]) -> str:
    """Statements: the rows leave that cannot matter any more."""
    useless = EXTREMES[about.way][1]
    step = about.named(f"if not thas# or (ohas# and not ({useless})):\n    break\n")
    return _search([about], every, "", step)


def render(dimensions: Sequence[Dimension], arguments: Sequence[str], policies: str) -> str:
    """The text of the module."""
    stacked = [d for d in dimensions if d.stacked]
    source = HEAD
    floats = any(d.way == "float_sum" for d in dimensions)
    if floats:
        source += f"WORDS, SIZE, STEP, _MASK = {exact.WORDS}, {exact.SIZE}, {exact.STEP}, "
        source += "0xFFFFFFFF\n\n\n"
        for taken in (exact._add, exact._rounded):
            source += inspect.getsource(taken.py_func) + "\n\n"
        source += _FLOAT_FUNCTIONS
    source += "".join(d.functions() for d in dimensions)
    given = [name for d in dimensions for name in d.arguments] + list(arguments)
    return source + _KERNEL.format(
        arguments="".join(f"{name}, " for name in given),
        scratch="words = np.empty(SIZE, np.int64)" if floats else "pass",
        reset=_indented("\n".join(d.reset() for d in stacked), 8),
        enter=_indented("\n".join(d.enter() for d in stacked), 12),
        policies=_indented(policies, 12),
    )
