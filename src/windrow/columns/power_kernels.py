"""Kernels for moments from power sums, as texts for ``template``: answers with a proof, or NaN.

Every sum is carried in three words, w0 + w1 + w2, and a bound for what they leave out. ``put`` adds
a number to the first word, what that rounds off to the second, what is left of that to the third;
only what even the third cannot take is lost, and its size is added to the bound. So the bound is 0
where three words hold everything, which they do for all data on a grid that is not too fine.

``lower`` moves the sums to the mean, first in two words; where the answer then is not certain, in
three. Everything after that is in two words, with bounds carried along: where the answer moved up
and down by its bound rounds to the same float, that float is the correctly rounded answer. Where
not, NaN comes out, and Python decides; an answer that certainly is NaN comes out as an infinity.
"""

from dataclasses import replace
from functools import cache
from types import ModuleType

from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.aggregates.relations import Correlation, Covariance, Slope, WeightedMean
from windrow.aggregates.shape import Kurtosis, Skewness
from windrow.columns.template import from_functions, load, render

PARTS = {1: 1, 2: 2, 3: 4, 4: 6}
"""How many floats hold a product of so many floats exactly."""

_ARITHMETIC = '''
from windrow.columns.fused import fma


@njit(error_model="numpy")
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy")
def two_prod(a, b):
    p = a * b
    return p, fma(a, b, -p)


@njit(error_model="numpy")
def put(t, x):
    a, r = two_sum(t[0], x)
    b, r = two_sum(t[1], r)
    c, r = two_sum(t[2], r)
    return a, b, c, t[3] + abs(r)


@njit(error_model="numpy")
def join(s, t):
    """s + t, three words each."""
    u = put(put(put(s, t[0]), t[1]), t[2])
    return u[0], u[1], u[2], u[3] + t[3]


@njit(error_model="numpy")
def in_order(t):
    """The same number, its words as far apart as they can be."""
    a, r = two_sum(t[0], t[1])
    b, c = two_sum(r, t[2])
    a, b = two_sum(a, b)
    b, c = two_sum(b, c)
    return a, b, c, t[3]


@njit(error_model="numpy")
def as_two(t):
    a, b, c, e = in_order(t)
    return a, b, abs(c) + e


@njit(error_model="numpy")
def less3(t, s, c):
    """t - c·s, three words."""
    p0, q0 = two_prod(-c, s[0])
    p1, q1 = two_prod(-c, s[1])
    p2, q2 = two_prod(-c, s[2])
    u = put(put(put(t, p0), q0), p1)
    u = put(put(put(u, q1), p2), q2)
    return in_order((u[0], u[1], u[2], u[3] + 1.0000001 * abs(c) * s[3]))


@njit(error_model="numpy")
def add(s, t):
    """Two words each, and bounds."""
    h, r = two_sum(s[0], t[0])
    small = abs(s[1]) + abs(t[1])
    r += s[1] + t[1]
    e = 0.0 if small == 0.0 else 4e-16 * (abs(r) + small)
    h, r = two_sum(h, r)
    return h, r, s[2] + t[2] + e


@njit(error_model="numpy")
def times(s, t):
    p, q = two_prod(s[0], t[0])
    small = s[0] * t[1] + s[1] * t[0]
    e = abs(s[1] * t[1])
    if s[1] != 0.0 or t[1] != 0.0:
        e += 5e-16 * (abs(q) + abs(s[0] * t[1]) + abs(s[1] * t[0]))
    h, r = two_sum(p, q + small)
    wide = 1.0000001 * (abs(s[0]) * t[2] + abs(t[0]) * s[2]) + s[2] * t[2]
    return h, r, wide + e


@njit(error_model="numpy")
def by(s, c):
    return times(s, (c, 0.0, 0.0))


@njit(error_model="numpy")
def negative(s):
    return -s[0], -s[1], s[2]


@njit(error_model="numpy")
def less2(t, s, c):
    """t - c·s, two words."""
    return add(t, by(s, -c))


@njit(error_model="numpy")
def over(s, t):
    """s / t; t is not 0, and certainly so."""
    q = s[0] / t[0]
    p, e = two_prod(q, t[0])
    rest = (((s[0] - p) - e) + s[1]) - q * t[1]
    h, r = two_sum(q, rest / t[0])
    wide = 1.01 * (s[2] + abs(q) * t[2]) / (abs(t[0]) - 2.0 * t[2])
    return h, r, wide + 1e-30 * abs(q)


@njit(error_model="numpy")
def root(t):
    """The square root of something above 0, and certainly so."""
    s = math.sqrt(t[0])
    p, e = two_prod(s, s)
    rest = ((t[0] - p) - e) + t[1]
    h, r = two_sum(s, rest / (2.0 * s))
    return h, r, 0.51 * t[2] / s + 1e-30 * s


@njit(error_model="numpy")
def nothing(t):
    return t[0] == 0.0 and t[1] == 0.0 and t[2] == 0.0


@njit(error_model="numpy")
def unclear(t):
    """Whether it might be 0 or below."""
    return not (t[0] > 8.0 * t[2] and t[0] > 1e-280)


@njit(error_model="numpy")
def certain(t):
    """The float nearest to it, or NaN."""
    if nothing(t):
        return 0.0
    y = abs(t[1]) + (t[2] * 1.0000001 + abs(t[1]) * 1e-15)
    if abs(t[0]) > 1e-280 and abs(t[0]) < 1e300 and t[0] + y == t[0] and t[0] - y == t[0]:
        return t[0]
    return np.nan


@njit(error_model="numpy")
def product(a, b):
    p, q = two_prod(a, b)
    return p, q, 0.0
'''

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

_FORMULAS: dict[str, tuple[str, str, str]] = {
    # names of the sums, sums around the means, the answer from those
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
def answer_{words}(n, {names}):
    whole = (n, 0.0, 0.0, 0.0)
{around}{narrow}{answer}"""


def _lower(name: str, fields: list[str], ddof: int, fewest: int) -> str:
    """The text of ``lower``, and of what it calls."""
    if name == "weighted_mean":
        return """

@njit(error_model="numpy")
def lower(p):
    weights, products = as_two((p[5], p[6], p[7], p[8])), as_two((p[9], p[10], p[11], p[12]))
    if nothing(weights):
        return np.inf
    if unclear((abs(weights[0]), 0.0, abs(weights[1]) + weights[2])):
        return np.nan
    return certain(over(products, weights))
"""
    names, around, answer = _FORMULAS[name]
    sums = names.split()
    assert len(sums) == len(fields)
    moved = [line.split()[0] for line in around.splitlines() if line.split()[0][0] == "t"]
    narrow = "".join(f"    {t} = as_two({t})\n" for t in moved)
    text = f"\nddof = {float(ddof)}\n"
    for words in ("two", "three"):
        text += _CENTRED.format(
            words=words,
            names=", ".join(sums),
            around=around.format(less="less2" if words == "two" else "less3"),
            narrow=narrow if words == "three" else "",
            answer=answer,
        )
    text = text.replace("    whole = (n, 0.0, 0.0, 0.0)", "    whole = (n, 0.0, 0.0)", 1)
    text += "\n\n@njit(error_model='numpy')\ndef lower(p):\n    n = p[0]\n"
    text += f"    if n < {fewest}:\n        return np.inf\n"
    for place, sum_ in enumerate(sums):
        at = 1 + 4 * place
        text += f"    {sum_} = in_order((p[{at}], p[{at + 1}], p[{at + 2}], p[{at + 3}]))\n"
    short = ", ".join(f"({s}[0], {s}[1], abs({s}[2]) + {s}[3])" for s in sums)
    return (
        text
        + f"    found = answer_two(n, {short})\n"
        + f"    return found if found == found else answer_three(n, {', '.join(sums)})\n"
    )


def _product(monomial: Monomial) -> list[str]:
    """The factors of a monomial."""
    return [f"x{i}" for i, power in enumerate(monomial) for _ in range(power)]


def _lifted(place: int, monomial: Monomial) -> str:
    """Lines that make the three words of one row's monomial."""
    factors = _product(monomial)
    if len(factors) == 1:
        return f"    m{place} = ({factors[0]}, 0.0, 0.0, 0.0)\n"
    start = f"    p, q = two_prod({factors[0]}, {factors[1]})\n"
    if len(factors) == 2:
        return start + f"    m{place} = (p, q, 0.0, 0.0)\n"
    if len(factors) == 3:
        return (
            start
            + f"    a, b = two_prod(p, {factors[2]})\n    c, d = two_prod(q, {factors[2]})\n"
            + f"    m{place} = put(put((a, b, 0.0, 0.0), c), d)\n"
        )
    return (
        start
        + "    a, b = two_prod(p, p)\n    c, d = two_prod(2.0 * p, q)\n    e, f = two_prod(q, q)\n"
        + f"    m{place} = put(put(put(put((a, b, 0.0, 0.0), c), d), e), f)\n"
    )


def _from_parts(place: int, monomial: Monomial) -> str:
    """The same from columns that hold its parts."""
    names = [f"m{place}_{i}" for i in range(PARTS[sum(monomial)])]
    text = f"({', '.join([*names, '0.0'][:2])}, 0.0, 0.0)"
    for name in names[2:]:
        text = f"put({text}, {name})"
    return f"    m{place} = {text}\n"


@cache
def power_kernels(
    kind: type[PowerSums], ddof: int, fewest: int, nulls: bool, parts: bool
) -> ModuleType:
    """The kernels of an aggregate over its inputs, or over the number of rows and parts of sums."""
    count = len(kind.monomials)
    if parts:
        inputs = ["rows_", *part_names(kind.monomials)]
        lines = [_from_parts(i, m) for i, m in enumerate(kind.monomials)]
    else:
        inputs = [f"x{i}" for i in range(len(kind.monomials[0]))]
        lines = [_lifted(i, m) for i, m in enumerate(kind.monomials)]
    words = ", ".join(f"m{i}[{k}]" for i in range(count) for k in range(4))
    text = _ARITHMETIC
    text += f"\nidentity = ({'0.0, ' * (1 + 4 * count)})\n"
    text += f"\n\n@njit(error_model='numpy')\ndef lift({', '.join(inputs)}):\n{''.join(lines)}"
    text += f"    return ({'rows_' if parts else '1.0'}, {words})\n"
    text += "\n\n@njit(error_model='numpy')\ndef combine(s, t):\n"
    for i in range(count):
        one, two = (", ".join(f"{x}[{1 + 4 * i + k}]" for k in range(4)) for x in ("s", "t"))
        text += f"    m{i} = join(({one}), ({two}))\n"
    text += f"    return (s[0] + t[0], {words})\n"
    text += _lower(kind.name, words.split(", ")[::4], ddof, fewest)
    types = ("np.float64",) * (1 + 4 * count)
    filled = from_functions(text, tuple(inputs), types, nulls)
    rendered = render(replace(filled, error_model="numpy"))
    return load(rendered, f"power_{kind.name}")


def part_names(monomials: tuple[Monomial, ...]) -> list[str]:
    """A name for every part of every monomial."""
    return [f"m{i}_{k}" for i, m in enumerate(monomials) for k in range(PARTS[sum(m)])]


KINDS = (Covariance, Correlation, Slope, WeightedMean, Skewness, Kurtosis)
