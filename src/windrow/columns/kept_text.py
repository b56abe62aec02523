"""What policies ask about, as statements of a kernel (``kept_kernel``).

Each is kept in one of three ways:

read off      counts, integer sums, first and last: from running totals or places, for any two ends
Two-Stacks    Max, Min and aggregates of users: suffixes up to ``mid``, one total after it
two words     float sums for ``at_most``: Two-Stacks with a bound on the error
"""

from dataclasses import dataclass, field
from typing import Any

from windrow.aggregates import Aggregate
from windrow.columns.ranges import Array

EXTREMES = {
    "max": ("a if a > b or a != a else b", "o# < t# or (t# != t# and o# == o#)"),
    "min": ("a if a < b or b != b else b", "o# > t# or (o# != o# and t# == t#)"),
}
"""⊕, and whether oldest rows ``o#`` are useless under a total ``t#``; see ``Max`` and ``Min``."""


@dataclass
class Dimension:
    """One aggregate that a policy asks about, as the kernel keeps it; ``number`` ends its names."""

    number: int
    aggregate: Aggregate
    way: str
    """rows, count, sum, first, last, max, min, own or float_sum."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """What the kernel is given: names without the number."""
    answers: Any = None
    """The NumPy type of its answers."""
    names: dict[str, Any] = field(default_factory=dict)
    """Functions and values that are in no text."""
    fields: int = 1
    inputs: tuple[str, ...] = ("x",)
    bits: int = 0
    """How long its integers can be; 0 for floats."""

    @property
    def stacked(self) -> bool:
        """Whether its totals are kept by Two-Stacks."""
        return self.way in ("max", "min", "own", "float_sum")

    @property
    def tuples(self) -> bool:
        """Whether a partial is a tuple."""
        return self.way == "own" and isinstance(self.aggregate.identity, tuple)

    def named(self, text: str) -> str:
        """A text with ``#`` for the number."""
        return text.replace("#", str(self.number))

    @property
    def arguments(self) -> list[str]:
        """The names of its arrays."""
        return [f"{name}{self.number}" for name in self.arrays]

    # --- read off ---------------------------------------------------------------------------------

    def read(self, out: str, end: str) -> str:
        """Statements: the answer over [low, end], and whether there is any value."""
        texts = {
            "rows": "@# = ! + 1 - low\n@has# = True",
            "count": "@# = c#[! + 1] - c#[low]\n@has# = True",
            "sum": "@# = p#[! + 1] - p#[low]\n@has# = c#[! + 1] > c#[low]",
            "first": "at = w#[low]\n@has# = at <= !\n@# = x#[at if @has# else low]",
            "last": "at = w#[!]\n@has# = at >= low\n@# = x#[at if @has# else low]",
        }
        return self.named(texts[self.way].replace("@", out).replace("!", end))

    # --- Two-Stacks -------------------------------------------------------------------------------

    def _lift(self, row: str) -> str:
        inputs = ", ".join(f"{name}#[{row}]" for name in self.inputs)
        return f"lift#({inputs})" if self.way == "own" else inputs

    def _grown(self, partial: str, has: str, row: str, older: bool) -> str:
        """A statement: the partial with one more row, an older or a younger one."""
        both = f"{self._lift(row)}, {partial}" if older else f"{partial}, {self._lift(row)}"
        if self.way == "own":  # which starts with its identity
            return f"{partial} = combine#({both})"
        return f"{partial} = combine#({both}) if {has} else {self._lift(row)}"

    def _start(self, row: str) -> str:
        return "identity#" if self.way == "own" else f"x#[{row}]"

    @property
    def _loaded(self) -> str:
        if not self.tuples:
            return "s0_#[low]"
        return "(" + "".join(f"s{f}_#[low], " for f in range(self.fields)) + ")"

    def functions(self) -> str:
        """⊕, and the suffixes of all rows from ``low`` to ``i``."""
        if self.way == "float_sum":
            return self.named(_FLOAT_FLIP)
        if not self.stacked:
            return ""
        out = ""
        if self.way != "own":
            out = f"@njit\ndef combine#(a, b):\n    return {EXTREMES[self.way][0]}\n\n\n"
        if self.tuples:
            stores = [f"s{f}_#[j] = p[{f}]" for f in range(self.fields)]
        else:
            stores = ["s0_#[j] = p"]
        arguments = ", ".join(f"{name}#" for name in self.arrays)
        out += _FLIP.format(
            arguments=arguments,
            start=self._start("low"),
            step=self._grown("p", "has", "j", older=True),
            stores="\n        ".join(stores),
        )
        return self.named(out)

    def reset(self) -> str:
        """Statements: nothing after ``mid``."""
        if self.way == "float_sum":
            return self.named("y# = z# = 0.0")
        return self.named(f"b# = {self._start('i')}\nbhas# = False")

    def enter(self) -> str:
        """Statements: row ``i`` comes in."""
        if self.way == "float_sum":
            return self.named("y#, e = two_sum(y#, x#[i])\nz# += e")
        step = self._grown("b#", "bhas#", "i", older=False)
        return self.named(f"if v#[i]:\n    {step}\n    bhas# = True")

    def flip(self) -> str:
        """A statement: all rows are before ``mid`` from here on."""
        if self.way == "float_sum":
            return self.named("flip#(x#, h#, l#, low, i)")
        return self.named(f"flip#({', '.join(f'{name}#' for name in self.arrays)}, low, i)")

    def total(self) -> str:
        """Statements: the partial over [low, i], after a flip if one was due."""
        if not self.stacked:
            return self.read("t", "i")
        both = f"combine#({self._loaded}, b#)"
        if self.way != "own":
            both = f"{both} if g#[low] and bhas# else ({self._loaded} if g#[low] else b#)"
        return self.named(f"t# = {both}\nthas# = g#[low] or bhas#")

    def oldest_start(self) -> str:
        """Statements: no oldest rows yet."""
        return self.named(f"o# = {self._start('low')}\nohas# = False") if self.stacked else ""

    def oldest_step(self) -> str:
        """Statements: one more of the oldest rows, ``j``."""
        if not self.stacked:
            return self.read("o", "j")
        step = self._grown("o#", "ohas#", "j", older=False)
        return self.named(f"if v#[j]:\n    {step}\n    ohas# = True")

    def answer(self, name: str) -> str:
        """An expression: the answer of a partial."""
        return self.named(f"lower#({name}#)" if self.way == "own" else f"{name}#")


_FLIP = """@njit(nogil=True)
def flip#({arguments}, low, i):
    p = {start}
    has = False
    for back in range(i + 1 - low):
        j = i - back
        if v#[j]:
            {step}
            has = True
        {stores}
        g#[j] = has


"""

_FLOAT_FLIP = """@njit(nogil=True)
def flip#(x#, h#, l#, low, i):
    high = low_word = 0.0
    for back in range(i + 1 - low):
        j = i - back
        high, e = two_sum(high, x#[j])
        low_word += e
        h#[j] = high
        l#[j] = low_word


"""
