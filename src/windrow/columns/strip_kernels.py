"""Kernels for sums and moments by running sums: what an aggregate does, put into ``strip_texts``.

A monomial of a row is made as two floats, p + q; ``power_formulas`` has the answers.
"""

from functools import cache
from types import ModuleType

from windrow.aggregates.power_sums import Monomial
from windrow.columns.power_arithmetic import ARITHMETIC
from windrow.columns.power_formulas import FORMULAS, INLINE
from windrow.columns.power_kernels import PARTS, part_names
from windrow.columns.skeletons import HEAD
from windrow.columns.strip_texts import (
    CUT,
    FILL,
    MOVING,
    PIECES,
    RUNNING,
    SLIDE,
    STRIP,
    UNITS,
)
from windrow.columns.template import load

_TOTAL = (
    "",
    """    s, t = two_sum(v0, v1)
    return (s + (t + v2)) / (n if ddof == 1.0 else 1.0) + 0.0
""",
)
"""Three parts that are exact, whose sum is rounded once; with ``ddof=1`` the mean."""


def _value(place: int, monomial: Monomial, parts: bool) -> list[str]:
    """Lines that make p and q of one monomial of one row."""
    power = sum(monomial)
    p, q = f"p{place}", f"q{place}"
    if parts:
        names = [f"m{place}_{i}" for i in range(PARTS[power])]
        lines = [f"{p} = {names[0]}", f"{q} = 0.0"]
        for name in names[1:]:
            lines += [f"{p}, r = two_sum({p}, {name})", f"{q} += r"]
        return lines
    factors = [f"x{i}" for i, times in enumerate(monomial) for _ in range(times)]
    if power == 1:
        return [f"{p} = {factors[0]}", f"{q} = 0.0"]
    lines = [f"{p} = {factors[0]} * {factors[1]}", f"{q} = fma({factors[0]}, {factors[1]}, -{p})"]
    if power == 3:
        x = factors[2]
        lines += [f"r = {p} * {x}", f"{q} = fma({q}, {x}, fma({p}, {x}, -r))", f"{p} = r"]
    if power == 4:
        lines += [f"r = {p} * {p}", f"{q} = fma(2.0 * {p}, {q}, fma({p}, {p}, -r))", f"{p} = r"]
    return lines


ROUNDED = {1: 0.0, 2: 0.0, 3: 2.1, 4: 4.2}
"""In u² of a monomial's largest value, by its degree: how far p + q may be from it."""
ROUNDED_PARTS = {1: 0.0, 2: 0.0, 3: 8.0, 4: 24.0}
"""The same where a row comes in parts."""


@cache
def strip_kernels(name: str, monomials: tuple[Monomial, ...], parts: bool = False) -> ModuleType:
    """The kernels of a formula over its inputs, or over the floats that its sums consist of."""
    names, formula = _TOTAL if name == "total" else FORMULAS[name]
    count = 3 * len(monomials)
    inputs = part_names(monomials) if parts else [f"x{i}" for i in range(len(monomials[0]))]
    text = HEAD + f"STRIP = {STRIP}\nWIDE = STRIP + 1\n\n"
    text += ARITHMETIC + CUT
    text += INLINE + f"def parts_of_row({', '.join(inputs)}, units):\n"
    for place, monomial in enumerate(monomials):
        for line in _value(place, monomial, parts):
            text += f"    {line}\n"
        target = ", ".join(f"v{3 * place + k}" for k in range(3))
        magic = f"units[{2 * place}], units[{2 * place + 1}]"
        text += f"    {target} = cut(p{place}, q{place}, {magic})\n"
    row = ", ".join(f"v{k}" for k in range(count))
    text += f"    return {row}\n"
    text += INLINE + f"def answer(n, {row}, bounds, ddof):\n"
    for place, sum_ in enumerate(names.split()):
        found = ", ".join(f"v{3 * place + k}" for k in range(3))
        text += f"    {sum_} = words({found}, bounds[{place}])\n"
    text += formula

    def at(array: str, place: str, k: int) -> str:
        return f"{array}[U({place}) + U({k} * WIDE)]"

    def all_of(array: str, place: str) -> str:
        return ", ".join(at(array, place, k) for k in range(count))

    def lines(pattern: str, depth: int) -> str:
        return ("\n" + " " * depth).join(
            pattern.replace("#s", at("sums", "k", k))
            .replace("#n", at("sums", "k + 1", k))
            .replace("#g", at("young", "g", k))
            .replace("#h", at("old", "h", k))
            .replace("#0", at("sums", "0", k))
            .replace("#", str(k))
            for k in range(count)
        )

    gaps = {
        "inputs": ", ".join(inputs),
        "count": str(count),
        "zeros": f"({'0.0, ' * count})",
        "row": row,
        "row_tuple": f"({row})",
        "left": row.replace("v", "w"),
        "at_row": ", ".join(f"{name}[U(start + k)]" for name in inputs),
        "at_old": ", ".join(f"{name}[U(old + k)]" for name in inputs),
        "get": all_of("sums", "k"),
        "get_next": all_of("sums", "k + 1"),
    }
    text += FILL.format(
        **gaps,
        set_next=lines("#n = v#", 8),
        set_first=lines("#0 = v#", 4),
        add_up=lines("v# += #s", 8) + "\n        " + lines("#s = v#", 8),
    )
    text += RUNNING.format(
        **gaps,
        set_difference=lines("#n = v# - w#", 16),
        add_up=lines("v# += #s", 16) + "\n                " + lines("#s = v#", 16),
    )
    text += SLIDE.format(**gaps, set_gathered=lines("#s = #g - #h", 12))
    text += MOVING.format(**gaps)
    text += _units_and_pieces(gaps, monomials, len(inputs), parts)
    return load(text, f"strips_{name}{'_parts' * parts}")


def _units_and_pieces(
    gaps: dict[str, str], monomials: tuple[Monomial, ...], count: int, parts: bool
) -> str:
    """Both work on how large each input is."""
    sizes = [f"z{i}" for i in range(count)]
    made, place = [], 0
    for k, monomial in enumerate(monomials):
        if parts:
            used = sizes[place : place + PARTS[sum(monomial)]]
            place += len(used)
            made.append(f"m{k} = {' + '.join(used)}")
        else:
            factors = [sizes[i] for i, times in enumerate(monomial) for _ in range(times)]
            made.append(f"m{k} = {' * '.join(factors)}")
    rounded = ROUNDED_PARTS if parts else ROUNDED
    units = [
        f"a{k}, b{k}, e{k} = unit_of(m{k}, rows, steps, {rounded[sum(monomial)]})"
        for k, monomial in enumerate(monomials)
    ]
    text = UNITS.format(
        sizes=", ".join(sizes),
        make_sizes="\n    ".join(made),
        monomials=", ".join(["0.0", *(f"m{k}" for k in range(len(monomials)))]),
        make_units="\n    ".join(units),
        units="".join(f"a{k}, b{k}, " for k in range(len(monomials))),
        bounds="".join(f"e{k}, " for k in range(len(monomials))),
    )

    def each(pattern: str, depth: int) -> str:
        names = gaps["inputs"].split(", ")
        return ("\n" + " " * depth).join(
            pattern.replace("#x", name).replace("#", str(i)) for i, name in enumerate(names)
        )

    return text + PIECES.format(
        **gaps,
        input_count=count,
        no_bits=each("z# = U(0)", 8),
        run_bits=each("y# = largest(#x, end, run_end)", 12),
        all_alike=each("alike(z#, y#)", 0).replace("\n", " and "),
        more_bits=each("z# = max(z#, y#)", 12),
        give_bits=each("bits_of[#] = z# >> U(1)", 8),
        float_sizes=", ".join(f"float_of[{i}]" for i in range(count)),
    )
