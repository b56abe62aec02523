"""Answers from power sums, as texts in ``power_arithmetic``: certain, or NaN.

``apart`` is n·Σab − Σa·Σb, which is all that variances, covariances, slopes and correlations need;
the third and fourth moments are made of such differences:

    n²·m₂ = D₂ = n·Σx² − Σx·Σx        n³·m₃ = n·D₃ − 2·Σx·D₂
    D₃ = n·Σx³ − Σx·Σx²               n⁴·m₄ = n²·D₄ − 3·Σx·(n·D₃ − Σx·D₂)
    D₄ = n·Σx⁴ − Σx·Σx³

Where the answer of sums in two words is not certain, ``lower`` moves sums in three words to the
(rounded) mean. The answer is the same there, and less of it cancels. Where it still is not certain,
NaN comes out, and Python decides; an answer that certainly is NaN comes out as an infinity.
"""

_SECOND = "    second = apart(n, s2, s1, s1)\n"
_VARIANCE = _SECOND + "    variance = over(second, product(n, n - ddof))\n"
_THIRD = """    d3 = apart(n, s3, s1, s2)
    third = less(by(d3, n), by(times(s1, second), 2.0))
    under = times(second, root(second))
    ratio = over(third, under)
"""
_FOURTH = """    d3 = apart(n, s3, s1, s2)
    d4 = apart(n, s4, s1, s3)
    inner = times(s1, less(by(d3, n), times(s1, second)))
    fourth = less(times(d4, product(n, n)), by(inner, 3.0))
    under = times(second, second)
    ratio = over(fourth, under)
"""

FORMULAS: dict[str, tuple[str, str]] = {
    "var": ("s1 s2", _VARIANCE + "    return certain(variance, clear(second))\n"),
    "std": (
        "s1 s2",
        _VARIANCE + "    return certain(root(variance), clear(second) and clear(variance))\n",
    ),
    "weighted_mean": (
        "x w xw",
        """    size = (abs(w[0]), 0.0, abs(w[1]) + w[2])
    return certain(over(xw, w), clear(size))
""",
    ),
    "cov": (
        "x y xy",
        "    return certain(over(apart(n, xy, x, y), product(n, n - ddof)), True)\n",
    ),
    "slope": (
        "y x xx xy",
        """    under = apart(n, xx, x, x)
    return certain(over(apart(n, xy, x, y), under), clear(under))
""",
    ),
    "corr": (
        "x y xx yy xy",
        """    left = apart(n, xx, x, x)
    right = apart(n, yy, y, y)
    both = over(over(apart(n, xy, x, y), root(left)), root(right))
    return certain(both, clear(left) and clear(right))
""",
    ),
    "skew": (
        "s1 s2 s3",
        _SECOND + _THIRD + "    return certain(ratio, clear(second) and clear(under))\n",
    ),
    "sample_skew": (
        "s1 s2 s3",
        _SECOND
        + _THIRD
        + """    factor = over(root(product(n, n - 1.0)), exactly(n - 2.0))
    return certain(times(ratio, factor), clear(second) and clear(under))
""",
    ),
    "kurt": (
        "s1 s2 s3 s4",
        _SECOND + _FOURTH + "    return certain(less(ratio, exactly(3.0)), clear(under))\n",
    ),
    "sample_kurt": (
        "s1 s2 s3 s4",
        _SECOND
        + _FOURTH
        + """    inside = less(by(ratio, n + 1.0), exactly(3.0 * (n - 1.0)))
    return certain(over(by(inside, n - 1.0), product(n - 2.0, n - 3.0)), clear(under))
""",
    ),
}
"""By the aggregate's name: the names of its sums, and the answer from them."""


# What is called t1, t2, … or tx, ty, txx, … are sums around the means c, tx among them about 0.
_ONE = """    c = s1[0] / n
    t1 = less3(s1, whole, c)
    a1 = less3(s2, s1, c)
    t2 = less3(a1, t1, c)
"""
_THREE = """    a2 = less3(s3, s2, c)
    b1 = less3(a2, a1, c)
    t3 = less3(b1, t2, c)
"""
_FOUR = """    a3 = less3(s4, s3, c)
    b2 = less3(a3, a2, c)
    c1 = less3(b2, b1, c)
    t4 = less3(c1, t3, c)
"""
_BOTH = """    cx = x[0] / n
    cy = y[0] / n
    tx = less3(x, whole, cx)
    ty = less3(y, whole, cy)
    txy = less3(less3(xy, y, cx), tx, cy)
"""
_XX = """    txx = less3(less3(xx, x, cx), tx, cx)
"""
_YY = """    tyy = less3(less3(yy, y, cy), ty, cy)
"""
_SAME = "    if nothing(as_two(t2)):\n        return {answer}\n"

_AROUND: dict[str, tuple[str, str]] = {
    "var": ("t1 t2", _ONE + _SAME.format(answer="0.0")),
    "std": ("t1 t2", _ONE + _SAME.format(answer="0.0")),
    "cov": ("tx ty txy", _BOTH),
    "slope": (
        "ty tx txx txy",
        _BOTH + _XX + "    if nothing(as_two(txx)):\n        return np.inf\n",
    ),
    "corr": (
        "tx ty txx tyy txy",
        _BOTH
        + _XX
        + _YY
        + "    if nothing(as_two(txx)) or nothing(as_two(tyy)):\n        return np.inf\n",
    ),
    "skew": ("t1 t2 t3", _ONE + _SAME.format(answer="np.inf") + _THREE),
    "kurt": ("t1 t2 t3 t4", _ONE + _SAME.format(answer="np.inf") + _THREE + _FOUR),
}
"""Sums around the means, and what is certain of values that are all the same."""

INLINE = '\n\n@njit(error_model="numpy", forceinline=True)\n'


def formula_text(name: str) -> str:
    """The text of ``formula(n, ddof, sums…)``."""
    names, answer = FORMULAS[name]
    sums = ", ".join(names.split())
    text = INLINE + f"def plain_formula(n, ddof, {sums}):\n{answer}"
    if f"sample_{name}" not in FORMULAS:
        return text + "\n\nformula = plain_formula\n"
    text += INLINE + f"def sample_formula(n, ddof, {sums}):\n{FORMULAS[f'sample_{name}'][1]}"
    text += INLINE + f"def formula(n, ddof, {sums}):\n"
    text += f"    if ddof == 1.0:\n        return sample_formula(n, ddof, {sums})\n"
    return text + f"    return plain_formula(n, ddof, {sums})\n"


def lower_text(name: str, count: int) -> str:
    """The text of ``lower``, and of what it calls."""
    sums = FORMULAS[name][0].split()
    assert len(sums) == count
    text = formula_text(name)
    text += '\n\n@njit(error_model="numpy")\ndef lower(p, ddof, fewest):\n    n = p[0]\n'
    text += "    if n < fewest:\n        return np.inf\n"
    for place, sum_ in enumerate(sums):
        words = ", ".join(f"p[{1 + 4 * place + k}]" for k in range(4))
        text += f"    {sum_} = in_order(({words}))\n"
    text += f"    found = formula(n, ddof, {_narrow(sums)})\n"
    if name not in _AROUND:
        return text + "    return np.inf if nothing(as_two(w)) else found\n"
    moved, around = _AROUND[name]
    text += "    if found == found:\n        return found\n    whole = (n, 0.0, 0.0, 0.0)\n"
    return text + around + f"    return formula(n, ddof, {_narrow(moved.split())})\n"


def _narrow(sums: list[str]) -> str:
    return ", ".join(f"as_two({sum_})" for sum_ in sums)
