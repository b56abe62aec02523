"""Answers from sums in two words, as texts without branches: many rows are answered side by side.

A number is (h, l, e): h + l, off by at most e. u is 2⁻⁵³. Bounds hold for normal numbers, but for a
ten-millionth of themselves, since they are rounded too; ``certain`` adds it. What is not certain
comes out as NaN, and is decided elsewhere.

``apart`` is n·Σab − Σa·Σb, which is all that variances, covariances, slopes and correlations need;
the third and fourth moments are made of such differences:

    n²·m₂ = D₂ = n·Σx² − Σx·Σx        n³·m₃ = n·D₃ − 2·Σx·D₂
    D₃ = n·Σx³ − Σx·Σx²               n⁴·m₄ = n²·D₄ − 3·Σx·(n·D₃ − Σx·D₂)
    D₄ = n·Σx⁴ − Σx·Σx³
"""

ARITHMETIC = '''
@njit(error_model="numpy", forceinline=True)
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy", forceinline=True)
def words(a, b, c, e):
    """a + b + c in two words; e is what the three are off by."""
    h, l = two_sum(a, b)
    l += c
    e += 1.2e-16 * abs(l)
    h, l = two_sum(h, l)
    return h, l, e


@njit(error_model="numpy", forceinline=True)
def exactly(a):
    return a, 0.0, 0.0


@njit(error_model="numpy", forceinline=True)
def product(a, b):
    p = a * b
    return p, fma(a, b, -p), 0.0


@njit(error_model="numpy", forceinline=True)
def apart(n, s, a, b):
    """n·s − a·b; what is rounded is below 7u² of n·s and 13u² of a·b."""
    big = n * s[0]
    big_low = fma(n, s[1], fma(n, s[0], -big))
    p = a[0] * b[0]
    p_low = fma(a[1], b[0], fma(a[0], b[1], fma(a[0], b[0], -p)))
    d, r = two_sum(big, -p)
    d, r = two_sum(d, r + (big_low - p_low))
    wide = n * s[2] + abs(a[0]) * b[2] + abs(b[0]) * a[2] + a[2] * b[2]
    return d, r, 1.0000001 * wide + 1.7e-31 * (abs(big) + abs(p))


@njit(error_model="numpy", forceinline=True)
def add(s, t):
    h, r = two_sum(s[0], t[0])
    small = abs(s[1]) + abs(t[1])
    r += s[1] + t[1]
    e = 4e-16 * (abs(r) + small)
    h, r = two_sum(h, r)
    return h, r, s[2] + t[2] + e


@njit(error_model="numpy", forceinline=True)
def less(s, t):
    return add(s, (-t[0], -t[1], t[2]))


@njit(error_model="numpy", forceinline=True)
def times(s, t):
    p = s[0] * t[0]
    q = fma(s[0], t[0], -p)
    small = s[0] * t[1] + s[1] * t[0]
    e = abs(s[1] * t[1]) + 5e-16 * (abs(q) + abs(s[0] * t[1]) + abs(s[1] * t[0]))
    h, r = two_sum(p, q + small)
    return h, r, 1.0000001 * (abs(s[0]) * t[2] + abs(t[0]) * s[2]) + s[2] * t[2] + e


@njit(error_model="numpy", forceinline=True)
def by(s, c):
    return times(s, (c, 0.0, 0.0))


@njit(error_model="numpy", forceinline=True)
def over(s, t):
    """s / t, where t is clear."""
    q = s[0] / t[0]
    p = q * t[0]
    rest = (((s[0] - p) - fma(q, t[0], -p)) + s[1]) - q * t[1]
    h, r = two_sum(q, rest / t[0])
    wide = 1.01 * (s[2] + abs(q) * t[2]) / (abs(t[0]) - 2.0 * t[2])
    return h, r, wide + 1e-30 * abs(q)


@njit(error_model="numpy", forceinline=True)
def root(t):
    """The square root, where t is clear."""
    s = math.sqrt(t[0])
    h, r = two_sum(s, (fma(-s, s, t[0]) + t[1]) / (2.0 * s))
    return h, r, 0.51 * t[2] / s + 1e-30 * s


@njit(error_model="numpy", forceinline=True)
def clear(t):
    """Whether it certainly is above 0."""
    return t[0] > 8.0 * t[2] and t[0] > 1e-280


@njit(error_model="numpy", forceinline=True)
def certain(t, sure):
    """The float nearest to it, where that is certain, or NaN."""
    y = t[2] * 1.0000001 + abs(t[1]) * 1e-15
    low = t[0] + (t[1] - y)
    size = abs(low)
    fine = sure and low == t[0] + (t[1] + y) and size > 1e-280 and size < 1e300
    return low if fine else np.nan
'''

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
    # no names of sums: three parts that are exact, whose sum is rounded once; ddof=1: the mean
    "total": (
        "",
        """    s, t = two_sum(v0, v1)
    return (s + (t + v2)) / (n if ddof == 1.0 else 1.0) + 0.0
""",
    ),
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
