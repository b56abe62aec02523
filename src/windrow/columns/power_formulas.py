"""Answers from power sums, as texts: around the mean, in ``power_arithmetic``, certain or NaN.

``lower`` moves the sums to the mean, first in two words; where the answer then is not certain, in
three. Everything after that is in two words, with bounds carried along: where the answer moved up
and down by its bound rounds to the same float, that float is the correctly rounded answer. Where
not, NaN comes out, and Python decides; an answer that certainly is NaN comes out as an infinity.
"""

# Sums moved to the (rounded) means c: what is called t1, t2, … or tx, ty, txx, … are sums around
# them, of which tx is about 0. ``{less}`` is in two words or in three.
_ONE = """    c = s1[0] / n
    t1 = {less}(s1, whole, c)
    a1 = {less}(s2, s1, c)
    t2 = {less}(a1, t1, c)
"""
_THREE = """    a2 = {less}(s3, s2, c)
    b1 = {less}(a2, a1, c)
    t3 = {less}(b1, t2, c)
"""
_FOUR = """    a3 = {less}(s4, s3, c)
    b2 = {less}(a3, a2, c)
    c1 = {less}(b2, b1, c)
    t4 = {less}(c1, t3, c)
"""
_BOTH = """    cx = x[0] / n
    cy = y[0] / n
    tx = {less}(x, whole, cx)
    ty = {less}(y, whole, cy)
    txy = {less}({less}(xy, y, cx), tx, cy)
"""
_SQUARE = """    t{v}{v} = {{less}}({{less}}({v}{v}, {v}, c{v}), t{v}, c{v})
"""
_XX, _YY = _SQUARE.format(v="x"), _SQUARE.format(v="y")

_SPREAD = """    m = over(t1, (n, 0.0, 0.0))
    second = add(t2, negative(times(m, t1)))
    if nothing(second):
        return np.inf
    if unclear(second):
        return np.nan
"""
_TOGETHER = """    mx = over(tx, (n, 0.0, 0.0))
    both = add(txy, negative(times(mx, ty)))
"""
_APART = """    {v}v = add(t{v}{v}, negative(times(over(t{v}, (n, 0.0, 0.0)), t{v})))
    if nothing({v}v):
        return np.inf
    if unclear({v}v):
        return np.nan
"""

_THIRD = """    third = add(t3, negative(times(m, add(by(t2, 3.0), by(times(m, t1), -2.0)))))
"""
_FOURTH = """    inner = add(by(t2, 6.0), by(times(m, t1), -3.0))
    fourth = add(t4, negative(times(m, add(by(t3, 4.0), negative(times(m, inner))))))
    ratio = over(fourth, times(second, second))
"""

_VARIANCE = """    m = over(t1, (n, 0.0, 0.0))
    second = add(t2, negative(times(m, t1)))
    if nothing(second):
        return 0.0
    if unclear(second):
        return np.nan
    variance = over(second, (n - ddof, 0.0, 0.0))
"""

_FORMULAS: dict[str, tuple[str, str, str]] = {
    # names of the sums, sums around the means, the answer from those
    "var": ("s1 s2", _ONE, _VARIANCE + "    return certain(variance)\n"),
    "std": ("s1 s2", _ONE, _VARIANCE + "    return certain(root(variance))\n"),
    "weighted_mean": (
        "x w xw",
        "",
        """    if nothing(w):
        return np.inf
    if unclear((abs(w[0]), 0.0, abs(w[1]) + w[2])):
        return np.nan
    return certain(over(xw, w))
""",
    ),
    "cov": (
        "x y xy",
        _BOTH,
        _TOGETHER + "    return certain(over(both, (n - ddof, 0.0, 0.0)))\n",
    ),
    "corr": (
        "x y xx yy xy",
        _BOTH + _XX + _YY,
        _TOGETHER
        + _APART.format(v="x")
        + _APART.format(v="y")
        + "    return certain(over(over(both, root(xv)), root(yv)))\n",
    ),
    "slope": (
        "y x xx xy",
        _BOTH + _XX,
        _TOGETHER + _APART.format(v="x") + "    return certain(over(both, xv))\n",
    ),
    "skew": (
        "s1 s2 s3",
        _ONE + _THREE,
        _SPREAD
        + _THIRD
        + """    if ddof == 0.0:
        return certain(times(over(third, second), root(over((n, 0.0, 0.0), second))))
    ratio = over(by(third, n), by(second, n - 2.0))
    return certain(times(ratio, root(over((n - 1.0, 0.0, 0.0), second))))
""",
    ),
    "kurt": (
        "s1 s2 s3 s4",
        _ONE + _THREE + _FOUR,
        _SPREAD
        + _FOURTH
        + """    if ddof == 0.0:
        return certain(add(by(ratio, n), (-3.0, 0.0, 0.0)))
    inside = add(times(ratio, product(n, n + 1.0)), (-3.0 * (n - 1.0), 0.0, 0.0))
    return certain(over(by(inside, n - 1.0), product(n - 2.0, n - 3.0)))
""",
    ),
}

_CENTRED = """

@njit(error_model="numpy")
def answer_{words}(n, ddof, {names}):
    whole = {whole}
{around}{narrow}{answer}"""

_HEAD = """

@njit(error_model="numpy")
def lower(p, ddof, fewest):
    n = p[0]
    if n < fewest:
        return np.inf
"""


def lower_text(name: str, count: int) -> str:
    """The text of ``lower``, and of what it calls."""
    names, around, answer = _FORMULAS[name]
    sums = names.split()
    assert len(sums) == count
    moved = [line.split()[0] for line in around.splitlines() if line.split()[0][0] == "t"]
    narrow = "".join(f"    {t} = as_two({t})\n" for t in moved)
    text = ""
    for words, whole in (("two", "(n, 0.0, 0.0)"), ("three", "(n, 0.0, 0.0, 0.0)")):
        text += _CENTRED.format(
            words=words,
            whole=whole,
            names=", ".join(sums),
            around=around.format(less="less2" if words == "two" else "less3"),
            narrow=narrow if words == "three" else "",
            answer=answer,
        )
    text += _HEAD
    for place, sum_ in enumerate(sums):
        at = 1 + 4 * place
        text += f"    {sum_} = in_order((p[{at}], p[{at + 1}], p[{at + 2}], p[{at + 3}]))\n"
    short = ", ".join(f"({s}[0], {s}[1], abs({s}[2]) + {s}[3])" for s in sums)
    text += f"    found = answer_two(n, ddof, {short})\n"
    if not around:
        return text + "    return found\n"
    return text + (
        f"    return found if found == found else answer_three(n, ddof, {', '.join(sums)})\n"
    )
