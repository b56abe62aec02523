"""Kernels for moments from power sums, as texts for ``template``: answers with a proof, or NaN.

A row's monomials are floats whose sum they are exactly; a kernel adds these to sums in three words
(``power_arithmetic``), and ends with the aggregate's own formula (``power_formulas``). Adding up is
written out, number by number: in the loops of ``template`` a partial is plain scalars.
"""

from functools import cache
from types import ModuleType

from windrow.aggregates.moments import StdDev, Variance
from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.aggregates.relations import Correlation, Covariance, Slope, WeightedMean
from windrow.aggregates.shape import Kurtosis, Skewness
from windrow.columns.power_arithmetic import ARITHMETIC
from windrow.columns.power_formulas import lower_text
from windrow.columns.template import Parts, load, render

PARTS = {1: 1, 2: 2, 3: 4, 4: 6}
"""How many floats hold a product of so many floats exactly."""


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
                source=ARITHMETIC + _functions(columns, rows, parts) + lower_text(kind.name, count),
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


KINDS = (Variance, StdDev, Covariance, Correlation, Slope, WeightedMean, Skewness, Kurtosis)
