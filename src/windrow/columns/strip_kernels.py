"""Kernels for sums and moments by running sums, as texts: many answers side by side.

A monomial of a row is two floats, p + q, and is cut into three parts: a multiple of a unit, a
multiple of a finer unit, and a rest. The units are so large that sums of the first two parts never
round (``strips`` chooses them), so that rows can be added and taken out again, and so small that
what the third part rounds off is far below the last bit of an answer. No bounds are carried along
row by row: one bound holds for a whole region of rows.

Rows are worked on in strips. In a strip only adding up depends on the row before; cutting before it
and answering after it are loops without branches, of which the processor does several rows at once.

``running``  the last ``width`` rows of one run: the parts of the row that comes less those of the
             row that leaves are added up
``moving``   ranges [lo, hi) that only move forward: two running sums, of rows up to hi and up to
             lo, and their difference, which is exact for the first two parts
"""

from functools import cache
from types import ModuleType

from windrow.aggregates.power_sums import Monomial
from windrow.columns.power_kernels import PARTS, part_names
from windrow.columns.skeletons import HEAD
from windrow.columns.strip_formulas import ARITHMETIC, FORMULAS
from windrow.columns.template import load

STRIP = 128
"""Rows that are worked on at once: their parts stay in the processor's nearest cache."""

_CUT = '''

@njit(error_model="numpy", forceinline=True)
def cut(p, q, magic, finer):
    """p + q in three parts; ``magic`` and ``finer`` round to units when added and taken away."""
    a = (p + magic) - magic
    s, e = two_sum(p - a, q)
    b = (s + finer) - finer
    return a, b, (s - b) + e
'''

_INLINE = '\n\n@njit(error_model="numpy", forceinline=True)\n'

_FILL = '''

@njit(nogil=True, error_model="numpy")
def fill({inputs}, start, count, units, totals, sums):
    """Running sums of the parts before each of some rows, and after the last; the latter."""
    for k in range(count):
        {row} = parts_of_row({at_row}, units)
        {set_next}
    {row} = totals
    {set_first}
    for k in range(1, count + 1):
        {add_up}
    return {row_tuple}
'''

_RUNNING = """

@njit(cache=True, nogil=True, error_model="numpy")
def running({inputs}, width, first, last, counts, units, bounds, ddof, fewest, out):
    sums = np.empty({count} * WIDE)
    rows = np.empty(STRIP)
    doubts = 0
    totals = fill({inputs}, max(first - width, 0), 0, units, {zeros}, sums)
    i = max(first - width, 0)
    while i < first:
        size = min(STRIP, first - i)
        totals = fill({inputs}, i, size, units, totals, sums)
        i += size
    while i < last:
        size = min(STRIP, last - i)
        if i < width:  # windows that still grow
            size = min(size, width - i)
            totals = fill({inputs}, i, size, units, totals, sums)
        else:
            start = i
            old = i - width
            for k in range(size):
                {row} = parts_of_row({at_row}, units)
                {left} = parts_of_row({at_old}, units)
                {set_difference}
            {row} = totals
            for k in range(1, size + 1):
                {add_up}
            totals = {row_tuple}
        if len(counts):
            for k in range(size):
                rows[U(k)] = counts[U(i + k + 1)] - counts[U(max(i + k + 1 - width, 0))]
        else:
            for k in range(size):
                rows[U(k)] = min(i + k + 1, width)
        answers = out[i : i + size]
        for k in range(size):
            n = rows[U(k)]
            {row} = {get_next}
            found = answer(n, {row}, bounds, ddof)
            found = found if n >= fewest else 0.0
            doubts += found != found
            answers[U(k)] = found
        i += size
    return doubts
"""

_MOVING = """

@njit(cache=True, nogil=True, error_model="numpy")
def moving({inputs}, lo, hi, first, last, counts, units, bounds, ddof, fewest, out):
    young = np.empty({count} * WIDE)
    old = np.empty({count} * WIDE)
    sums = np.empty({count} * WIDE)
    rows = np.empty(STRIP)
    doubts = 0
    begin = end = lo[first] if first < last else 0  # the rows up to which the two sums go
    totals = left = {zeros}
    i = first
    while i < last:
        size = min(STRIP, last - i)
        low = lo[i + size - 1]
        high = max(hi[i + size - 1], low)
        while size > 1 and (low - begin > STRIP or high - end > STRIP):
            size = (size + 1) // 2
            low = lo[i + size - 1]
            high = max(hi[i + size - 1], low)
        while low - begin > STRIP:  # a window that is far from the one before
            left = fill({inputs}, begin, STRIP, units, left, old)
            begin += STRIP
        while high - end > STRIP:
            totals = fill({inputs}, end, STRIP, units, totals, young)
            end += STRIP
        more = low - begin
        new = high - end
        left = fill({inputs}, begin, more, units, left, old)
        totals = fill({inputs}, end, new, units, totals, young)
        for k in range(size):
            low = lo[U(i + k)]
            high = max(hi[U(i + k)], low)
            rows[U(k)] = counts[U(high)] - counts[U(low)] if len(counts) else high - low
            g = U(high - end)
            h = U(low - begin)
            {set_gathered}
        begin += more
        end += new
        answers = out[i : i + size]
        for k in range(size):
            n = rows[U(k)]
            {row} = {get}
            found = answer(n, {row}, bounds, ddof)
            found = found if n >= fewest else 0.0
            doubts += found != found
            answers[U(k)] = found
        i += size
    return doubts
"""


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
    names, formula = FORMULAS[name]
    count = 3 * len(monomials)
    inputs = part_names(monomials) if parts else [f"x{i}" for i in range(len(monomials[0]))]
    text = HEAD + f"from windrow.columns.fused import fma\n\nSTRIP = {STRIP}\nWIDE = STRIP + 1\n\n"
    text += ARITHMETIC + _CUT
    text += _INLINE + f"def parts_of_row({', '.join(inputs)}, units):\n"
    for place, monomial in enumerate(monomials):
        for line in _value(place, monomial, parts):
            text += f"    {line}\n"
        target = ", ".join(f"v{3 * place + k}" for k in range(3))
        magic = f"units[{2 * place}], units[{2 * place + 1}]"
        text += f"    {target} = cut(p{place}, q{place}, {magic})\n"
    row = ", ".join(f"v{k}" for k in range(count))
    text += f"    return {row}\n"
    text += (
        f'\n\n@njit(error_model="numpy", forceinline=True)\ndef answer(n, {row}, bounds, ddof):\n'
    )
    for place, sum_ in enumerate(names.split()):
        found = ", ".join(f"v{3 * place + k}" for k in range(3))
        text += f"    {sum_} = words({found}, bounds[{place}])\n"
    text += formula

    def each(line: str, depth: int) -> str:
        return ("\n" + " " * depth).join(line.format(k=k) for k in range(count))

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
    text += _FILL.format(
        **gaps,
        set_next=lines("#n = v#", 8),
        set_first=lines("#0 = v#", 4),
        add_up=lines("v# += #s", 8) + "\n        " + lines("#s = v#", 8),
    )
    text += _RUNNING.format(
        **gaps,
        set_difference=lines("#n = v# - w#", 16),
        add_up=lines("v# += #s", 16) + "\n                " + lines("#s = v#", 16),
    )
    text += _MOVING.format(**gaps, set_gathered=lines("#s = #g - #h", 12))
    return load(text, f"strips_{name}{'_parts' * parts}")
