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

from functools import cache
from types import ModuleType

from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.aggregates.relations import Correlation, Covariance, Slope, WeightedMean
from windrow.aggregates.shape import Kurtosis, Skewness
from windrow.columns.template import Parts, load, render

PARTS = {1: 1, 2: 2, 3: 4, 4: 6}
"""How many floats hold a product of so many floats exactly."""

_ARITHMETIC = '''
from windrow.columns.fused import fma


@njit(error_model="numpy", forceinline=True)
def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(error_model="numpy", forceinline=True)
def two_prod(a, b):
    p = a * b
    return p, fma(a, b, -p)


@njit(error_model="numpy", forceinline=True)
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


@njit(error_model="numpy", forceinline=True)
def in_order(t):
    """The same number, its words as far apart as they can be."""
    a, r = two_sum(t[0], t[1])
    b, c = two_sum(r, t[2])
    a, b = two_sum(a, b)
    b, c = two_sum(b, c)
    return a, b, c, t[3]


@njit(error_model="numpy", forceinline=True)
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


@njit(error_model="numpy", forceinline=True)
def add(s, t):
    """Two words each, and bounds."""
    h, r = two_sum(s[0], t[0])
    small = abs(s[1]) + abs(t[1])
    r += s[1] + t[1]
    e = 0.0 if small == 0.0 else 4e-16 * (abs(r) + small)
    h, r = two_sum(h, r)
    return h, r, s[2] + t[2] + e


@njit(error_model="numpy", forceinline=True)
def times(s, t):
    p, q = two_prod(s[0], t[0])
    small = s[0] * t[1] + s[1] * t[0]
    e = abs(s[1] * t[1])
    if s[1] != 0.0 or t[1] != 0.0:
        e += 5e-16 * (abs(q) + abs(s[0] * t[1]) + abs(s[1] * t[0]))
    h, r = two_sum(p, q + small)
    wide = 1.0000001 * (abs(s[0]) * t[2] + abs(t[0]) * s[2]) + s[2] * t[2]
    return h, r, wide + e


@njit(error_model="numpy", forceinline=True)
def by(s, c):
    return times(s, (c, 0.0, 0.0))


@njit(error_model="numpy", forceinline=True)
def negative(s):
    return -s[0], -s[1], s[2]


@njit(error_model="numpy", forceinline=True)
def less2(t, s, c):
    """t - c·s, two words."""
    return add(t, by(s, -c))


@njit(error_model="numpy", forceinline=True)
def over(s, t):
    """s / t; t is not 0, and certainly so."""
    q = s[0] / t[0]
    p, e = two_prod(q, t[0])
    rest = (((s[0] - p) - e) + s[1]) - q * t[1]
    h, r = two_sum(q, rest / t[0])
    wide = 1.01 * (s[2] + abs(q) * t[2]) / (abs(t[0]) - 2.0 * t[2])
    return h, r, wide + 1e-30 * abs(q)


@njit(error_model="numpy", forceinline=True)
def root(t):
    """The square root of something above 0, and certainly so."""
    s = math.sqrt(t[0])
    p, e = two_prod(s, s)
    rest = ((t[0] - p) - e) + t[1]
    h, r = two_sum(s, rest / (2.0 * s))
    return h, r, 0.51 * t[2] / s + 1e-30 * s


@njit(error_model="numpy", forceinline=True)
def nothing(t):
    return t[0] == 0.0 and t[1] == 0.0 and t[2] == 0.0


@njit(error_model="numpy", forceinline=True)
def unclear(t):
    """Whether it might be 0 or below."""
    return not (t[0] > 8.0 * t[2] and t[0] > 1e-280)


@njit(error_model="numpy", forceinline=True)
def certain(t):
    """The float nearest to it, or NaN."""
    if nothing(t):
        return 0.0
    y = abs(t[1]) + (t[2] * 1.0000001 + abs(t[1]) * 1e-15)
    if abs(t[0]) > 1e-280 and abs(t[0]) < 1e300 and t[0] + y == t[0] and t[0] - y == t[0]:
        return t[0]
    return np.nan


@njit(error_model="numpy", forceinline=True)
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


def _lower(name: str, count: int) -> str:
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


def _put(words: str, values: list[str]) -> str:
    """Lines that add values to the four numbers whose names begin with ``words``, as ``put``."""
    lines = []
    for value in values:
        left = value
        for k in range(3):
            lines += [
                f"u = {words}{k} + {left}",
                f"v = u - {words}{k}",
                f"v = ({words}{k} - (u - v)) + ({left} - v)",
                f"{words}{k} = u",
            ]
            if k < 2:
                lines.append("w = v")
                left = "w"
        lines.append(f"{words}3 += abs(v)")
    return "\n".join(lines)


def _row(place: int, monomial: Monomial, parts: bool) -> tuple[str, list[str]]:
    """How to make the floats that one row's monomial consists of, and their names."""
    names = [f"m{place}_{i}" for i in range(PARTS[sum(monomial)])]
    if parts:
        return "".join(f"{name} = {name}_[U(j)]\n" for name in names), names
    factors = [f"y{i}" for i, power in enumerate(monomial) for _ in range(power)]
    if len(factors) == 1:
        return "", factors
    first = f"m{place}_0 = {factors[0]} * {factors[1]}\n"
    first += f"m{place}_1 = fma({factors[0]}, {factors[1]}, -m{place}_0)\n"
    if len(factors) == 2:
        return first, names
    first = f"p, q = two_prod({factors[0]}, {factors[1]})\n"
    if len(factors) == 3:
        pairs = [("p", factors[2]), ("q", factors[2])]
    else:
        pairs = [("p", "p"), ("2.0 * p", "q"), ("q", "q")]
    for k, (a, b) in enumerate(pairs):
        first += f"{names[2 * k]}, {names[2 * k + 1]} = two_prod({a}, {b})\n"
    return first, names


@cache
def power_kernels(kind: type[PowerSums], parts: bool) -> ModuleType:
    """The kernels of an aggregate over its inputs, or over the floats that its sums consist of.

    The first input says how many rows each row stands for, 0 where it is missing.
    """
    monomials = kind.monomials
    count = len(monomials)
    columns = [f"x{i}" for i in range(len(monomials[0]))]
    if parts:
        columns = [f"{name}_" for name in part_names(monomials)]
    rows = [_row(i, m, parts) for i, m in enumerate(monomials)]
    load_inputs = "" if parts else "".join(f"y{i} = x{i}[U(j)]\n" for i in range(len(columns)))
    made = load_inputs + "".join(text for text, _ in rows)

    def step(side: str) -> str:
        added = "\n".join(_put(f"{side}{i}_", names) for i, (_, names) in enumerate(rows))
        return f"{side}n += rows_[U(j)]\n{made}{added}"

    def names(side: str) -> list[str]:
        return [f"{side}n", *(f"{side}{i}_{k}" for i in range(count) for k in range(4))]

    fields = 1 + 4 * count
    zero = "\n".join(f"{name} = 0.0" for name in names("#"))
    merged = [f"g{name[1:]} = s{i}[k]" for i, name in enumerate(names("#"))]
    merged += ["gn += bn"]
    for i in range(count):
        merged += [_put(f"g{i}_", [f"b{i}_{k}" for k in range(3)]), f"g{i}_3 += b{i}_3"]
    merged += [f"p = ({', '.join(names('g'))})"]
    lift = f"lift({', '.join(f'{c}[U(j)]' for c in ['rows_', *columns])})"
    return load(
        render(
            Parts(
                source=_ARITHMETIC + _functions(columns, rows, parts) + _lower(kind.name, count),
                inputs=("rows_", *columns),
                types=("np.float64",) * fields,
                front_start=zero.replace("#", "f"),
                front_step=step("f"),
                store="\n".join(f"s{i}[k] = {name}" for i, name in enumerate(names("f"))),
                back_start=zero.replace("#", "b"),
                back_step=step("b"),
                merge="\n".join(merged),
                emit="out[U(i)] = lower(p, ddof, fewest)",
                empty="out[U(i)] = np.inf",
                extra="ddof, fewest, ",
                lift=lift,
            )
        ),
        f"power_{kind.name}",
    )


def _functions(columns: list[str], rows: list[tuple[str, list[str]]], parts: bool) -> str:
    """``identity``, ``lift`` and ``combine``, for ways of sliding that go by those."""
    count = len(rows)
    text = f"\n\nidentity = ({'0.0, ' * (1 + 4 * count)})\n"
    text += f"\n\n@njit\ndef lift(rows_, {', '.join(columns)}):\n"
    made = "".join(lines for lines, _ in rows)
    if parts:
        made = "".join(f"{c[:-1]} = {c}\n" for c in columns)
    else:
        made = "".join(f"y{i} = x{i}\n" for i in range(len(columns))) + made
    text += "".join(f"    {line}\n" for line in made.splitlines())
    for i, (_, names) in enumerate(rows):
        start = f"({', '.join([*names, '0.0'][:2])}, 0.0, 0.0)"
        for name in names[2:]:
            start = f"put({start}, {name})"
        text += f"    m{i} = {start}\n"
    words = ", ".join(f"m{i}[{k}]" for i in range(count) for k in range(4))
    text += f"    return (rows_, {words})\n"
    text += "\n\n@njit\ndef combine(s, t):\n"
    for i in range(count):
        one, two = (", ".join(f"{x}[{1 + 4 * i + k}]" for k in range(4)) for x in "st")
        text += f"    m{i} = join(({one}), ({two}))\n"
    return text + f"    return (s[0] + t[0], {words})\n"


def part_names(monomials: tuple[Monomial, ...]) -> list[str]:
    """A name for every part of every monomial."""
    return [f"m{i}_{k}" for i, m in enumerate(monomials) for k in range(PARTS[sum(m)])]


KINDS = (Covariance, Correlation, Slope, WeightedMean, Skewness, Kurtosis)
