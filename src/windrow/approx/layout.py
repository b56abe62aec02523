"""Where a counter's fields lie, what it can be wrong by, and how few bits anyone could do with.

Every counter here is one machine with different numbers in it. Values are turned into *units*
x' = Round(x · V / R), whole numbers from 0 to V. The stream is cut in blocks of n values. y holds
the units that no block accounts for yet; when a block ends its cell takes c = ⌊y / θ⌋ and y keeps
the rest. So at the end of every block 0 ≤ y < θ, and over the k newest blocks

    θ · B + y  =  y₀ + (units of these blocks and of the open one),    B the sum of the cells,

where y₀, 0 ≤ y₀ ≤ θ − 1, is what the forgotten past had left over: the one thing not known.
Algorithm 1 is V = R = 1, Algorithm 2 is θ = n·V with cells of one bit, Algorithm 3 is n = 1 with
cells that hold more than one bit, and exact storage is Algorithm 3 with θ = 1 and V = R.

**Blocks that do not divide the window.** k = ⌈W / n⌉ blocks are kept, d = k·n − W values more than
the window has. When the open block has m values, m + d values of the kept blocks have left. Those
are the first m + d of the oldest block, or, from n on, the oldest block and the first m + d − n of
the next. A block whose cell is 1 is assumed to lose V units with every value. In the proof of
Theorem 7 only the block that is partly gone matters, so with ``lost`` values of it gone

    error before centring  =  y₀ + Σ(x' of the lost) − V · lost · c   and   0 ≤ error ≤ θ − 1:

for c = 1, y₀ + Σ(all of the block) ≥ θ = n·V leaves at least θ − V·(n − lost) − V·lost = 0, and at
most y₀ remains since x' ≤ V; for c = 0 the sum is at most θ − 1 as the block did not reach θ.
Taking (θ − 1)/2 off centres it: the error is at most (θ − 1)/2 units, for every W and every n ≤ W,
from the first value on, because the window starts as W zeros. (The paper takes off θ/2, which is
the same but for half a unit.)

**Rounding** adds at most ``rounding`` units for each of the W values in the window, so in all

    |error|  ≤  R/V · ((θ − 1)/2 + W · rounding)  ≤  R·W·ε.
"""

from dataclasses import dataclass, field
from fractions import Fraction

SLACK_BITS = 8
"""Rounding multiplies by V/R, kept with this many bits more than R has."""

ROUNDING = Fraction(1, 2) + Fraction(1, 1 << SLACK_BITS)
"""What rounding one value costs at most, in units: half a unit, and the rounded reciprocal."""

WORD = 48
"""Cells of up to so many bits in all are one word, which is shifted and needs neither i nor B."""

LONGEST_WORD = 512
"""Where the lower bound leaves no room for i and B, so many bits are shifted: still a constant."""


@dataclass(frozen=True)
class Layout:
    """The numbers of one counter and the places of its fields."""

    algorithm: str
    W: int
    R: int | float
    V: int
    n: int
    theta: int
    rounding: Fraction
    word: bool = False
    y_bits: int = 0
    seen_bits: int = 0
    k: int = field(init=False)
    cell_bits: int = field(init=False)
    m_bits: int = field(init=False)
    i_bits: int = field(init=False)
    B_bits: int = field(init=False)
    factor: int = field(init=False)
    shift: int = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        k = -(-self.W // self.n)
        largest = (self.theta - 1 + self.n * self.V) // self.theta
        put(self, "k", k)
        put(self, "cell_bits", largest.bit_length())
        put(self, "m_bits", (self.n - 1).bit_length())
        put(self, "i_bits", 0 if self.word else (k - 1).bit_length())
        most = k if largest == 1 else (self.theta - 1 + self.W * self.V) // self.theta
        put(self, "B_bits", 0 if self.word else most.bit_length())
        exact = not self.rounding or isinstance(self.R, float)
        shift = 0 if exact else int(self.R).bit_length() + SLACK_BITS
        put(self, "shift", shift)
        put(self, "factor", 1 if exact else (self.V << shift) // int(self.R))

    @property
    def head_bits(self) -> int:
        """All fields but the cells."""
        return self.y_bits + self.m_bits + self.i_bits + self.B_bits + self.seen_bits

    @property
    def bits(self) -> int:
        """The whole state."""
        return self.head_bits + self.k * self.cell_bits

    @property
    def surplus(self) -> int:
        """How many values the kept blocks have more than the window: d."""
        return self.k * self.n - self.W

    @property
    def error_units(self) -> Fraction:
        """The largest error, in units."""
        return Fraction(self.theta - 1, 2) + self.W * self.rounding

    @property
    def scale(self) -> float:
        """What half a unit is worth."""
        return self.R / (2 * self.V)

    def units_of(self, value: int) -> int:
        """x' = Round(x · V / R): multiplied by a rounded reciprocal, off by at most 1/2 + 2⁻⁸."""
        return (value * self.factor + (1 << self.shift >> 1)) >> self.shift

    @property
    def in_pieces(self) -> bool:
        """Whether the word of cells is longer than a machine's, or has cells of several bits."""
        return self.word and (self.cell_bits > 1 or self.k > WORD)

    def widths(self) -> dict[str, int]:
        """Bits of each field, by the paper's names."""
        named = {"y": self.y_bits, "m": self.m_bits, "i": self.i_bits, "B": self.B_bits}
        if self.seen_bits:
            named["seen"] = self.seen_bits
        return named | {"b": self.k * self.cell_bits}

    @property
    def fits_machine_words(self) -> bool:
        """Whether compiled code can run it: every number within a word."""
        fields = max(self.y_bits, self.m_bits, self.i_bits, self.B_bits, self.cell_bits)
        return fields <= 56 and (self.V << self.shift).bit_length() <= 61


def counting_bound(W: int, epsilon: Fraction) -> int:
    """Theorem 5: ⌊max(log W, 1/(2ε + 1/W))⌋ bits, whatever the algorithm."""
    return max(W.bit_length() - 1, int(1 / (2 * epsilon + Fraction(1, W))))
