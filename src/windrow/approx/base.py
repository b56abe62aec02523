"""One counter, one value at a time: the machine of ``layout``, on packed bits."""

import operator
from typing import Any, ClassVar, Self

import numpy as np

from windrow.approx import frame
from windrow.approx.bits import Packed
from windrow.approx.layout import Layout
from windrow.errors import BadSpecification, BadValue, InvariantBroken

Fields = tuple[int, int, int, int]


class Counter:
    """A count or sum of the last ``window`` values with a proven error and a known size.

    Two counters cannot be merged: each knows its own last W values, and which of the other's are
    still among the last W of both together is what neither has kept.
    """

    __slots__ = ("_epsilon", "_packed", "clamp", "layout")
    kind: ClassVar[int] = 0

    def __init__(self, layout: Layout, epsilon: Any, clamp: bool) -> None:
        self.layout = layout
        self._epsilon = epsilon
        self.clamp = clamp
        self._packed = Packed(layout.bits)

    @property
    def window(self) -> int:
        """How many values the window has."""
        return self.layout.W

    @property
    def epsilon(self) -> float:
        """The error that was allowed, as a share of window × maximum."""
        return float(self._epsilon)

    @property
    def algorithm(self) -> str:
        """Which algorithm keeps the window: 1, 2, 3, or exact storage."""
        return self.layout.algorithm

    @property
    def error_bound(self) -> float:
        """No answer is ever further from the truth than this, rounding of values included."""
        layout = self.layout
        if isinstance(layout.R, int):
            return float(layout.error_units * layout.R / layout.V)
        return float(layout.error_units) * layout.R / layout.V

    def bits(self) -> int:
        """The size of the state: the sum of ``field_widths()``."""
        return self.layout.bits

    def field_widths(self) -> dict[str, int]:
        """Bits of each field, by the paper's names."""
        return self.layout.widths()

    def lower_bound_bits(self) -> int:
        """The fewest bits that any algorithm with this guarantee can do with."""
        raise NotImplementedError

    def insert(self, value: Any) -> None:
        """Take the next value; the oldest one leaves the window."""
        self._take(self._units(value))

    def insert_many(self, values: Any) -> None:
        """Take many values in order: compiled, and either all of them or none."""
        several = values if hasattr(values, "__len__") else list(values)
        units = self._many_units(np.asarray(several))
        if not self.layout.fits_machine_words:
            for unit in units.tolist():
                self._take(self.layout.units_of(int(unit)))
            return
        from windrow.columns.approx.single import insert_many

        insert_many(self._packed.data, self.layout, units)

    def skip(self, count: int) -> None:
        """Take ``count`` zeros, in time that does not grow beyond the number of blocks."""
        if count < 0:
            raise BadSpecification(f"cannot skip {count} values")
        self._skip(count)

    def query(self) -> float:
        """The estimate for the last ``window`` values."""
        return self._answer(self._estimate())

    def query_with(self, value: Any) -> float:
        """The estimate as it would be after ``insert(value)``; nothing changes."""
        units = self._units(value)
        layout, packed = self.layout, self._packed
        head = packed.get(0, layout.head_bits)
        at, width = self._touched(head >> layout.y_bits + layout.m_bits)
        cell = packed.get(at, width)
        self._take(units)
        answer = self.query()
        packed.put(0, layout.head_bits, head)
        packed.put(at, width, cell)
        return answer

    def to_bytes(self) -> bytes:
        """A header of at most 16 bytes (version, parameters, checksum), then the packed fields."""
        return frame.write(self._parameters(), bytes(self._packed.data))

    @classmethod
    def from_bytes(cls, data: bytes, like: Self | None = None) -> Self:
        """The counter that these bytes are of.

        Parameters too long for the header (beyond about 2^40 for window × maximum, and those of
        ``RealSum``) are not in the bytes: ``like`` is then a counter with the same ones.
        """
        parameters, state = frame.read(data, like._parameters() if like is not None else None)
        counter = like._fresh() if like is not None else cls._made(parameters)
        frame.check_state(state, counter.bits())
        counter._packed.data[:] = state
        return counter

    def check_invariants(self) -> None:
        """Raise ``InvariantBroken`` unless B is the sum of the cells and y is what it may be."""
        layout = self.layout
        y, m, i, B = self._fields()
        cells = [self._cell(j) for j in range(layout.k)]
        if not layout.word and sum(cells) != B:
            raise InvariantBroken(f"B is {B}, but the cells sum to {sum(cells)}")
        if m >= layout.n or i >= layout.k or y >= layout.theta + m * layout.V:
            raise InvariantBroken(f"y={y}, m={m}, i={i} cannot be in blocks of {layout.n}")

    def __repr__(self) -> str:
        limit = "" if self.kind == 1 else f", maximum={getattr(self, 'maximum', None)}"
        limit += f", minimum={low}" if (low := getattr(self, "minimum", 0)) else ""
        of = f"window={self.window}{limit}, epsilon={self._epsilon}"
        return f"{type(self).__name__}({of}) in {self.bits()} bits"

    def _units(self, value: Any) -> int:
        return self.layout.units_of(self._checked(value))

    def _checked(self, value: Any) -> int:
        try:
            number = int(value) if isinstance(value, np.bool_) else operator.index(value)
        except TypeError:
            raise BadValue(
                f"{value!r} is not a whole number; for values with fractions use approx.RealSum"
            ) from None
        if 0 <= number <= self.layout.R:
            return number
        if self.clamp:
            return min(max(number, 0), int(self.layout.R))
        raise BadValue(
            f"{value!r} is not in 0..{self.layout.R}: the error bound holds for these only. Give a "
            "larger maximum=, or clamp=True to take what is beyond as the nearest of them"
        )

    def _many_units(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The values as the kernel takes them, checked."""
        if values.ndim != 1:
            raise BadValue(f"values have {values.ndim} dimensions: give one value after another")
        if values.dtype == bool:
            return values.view(np.uint8)
        if not len(values):
            return np.empty(0, np.int64)
        wide = self.layout.R >= 1 << 63
        if values.dtype.kind not in "iu" or wide:
            checked = [self._checked(value) for value in values.tolist()]
            return np.array(checked, object if wide else np.int64)
        if self.clamp:
            values = np.clip(values, 0, min(int(self.layout.R), np.iinfo(values.dtype).max))
        elif values.min() < 0 or values.max() > self.layout.R:
            row = int(np.argmax((values < 0) | (values > self.layout.R)))
            try:
                self._checked(values[row])
            except BadValue as error:
                raise BadValue(f"row {row}: {error}") from None
        return values if values.dtype == np.uint8 else values.astype(np.int64, copy=False)

    def _parameters(self) -> frame.Parameters:
        R = None if self.kind == 1 else self.layout.R
        return (self.kind, self.layout.W, R, self._epsilon, self.clamp)

    @classmethod
    def _made(cls, parameters: frame.Parameters) -> Self:
        kind, W, R, epsilon, clamp = parameters
        for made in (cls, *cls.__subclasses__()):
            if made.kind == kind:
                limit = () if R is None else (R,)
                return made(W, *limit, epsilon, clamp=clamp)  # type: ignore[misc, call-arg, arg-type]
        raise frame.wrong_kind(cls.__name__)

    def _fresh(self) -> Self:
        made = object.__new__(type(self))
        Counter.__init__(made, self.layout, self._epsilon, self.clamp)
        return made

    def _fields(self) -> Fields:
        layout = self.layout
        head = self._packed.get(0, layout.head_bits)
        y = head & ((1 << layout.y_bits) - 1)
        head >>= layout.y_bits
        m = head & ((1 << layout.m_bits) - 1)
        head >>= layout.m_bits
        i = head & ((1 << layout.i_bits) - 1)
        return y, m, i, head >> layout.i_bits & ((1 << layout.B_bits) - 1)

    def _write(self, y: int, m: int, i: int, B: int) -> None:
        layout = self.layout
        head = ((B << layout.i_bits | i) << layout.m_bits | m) << layout.y_bits | y
        self._packed.put(0, layout.head_bits - layout.seen_bits, head)

    def _cell(self, index: int) -> int:
        layout = self.layout
        return self._packed.get(layout.head_bits + index * layout.cell_bits, layout.cell_bits)

    def _touched(self, index: int) -> tuple[int, int]:
        """Place and width of what the next insert may overwrite."""
        layout = self.layout
        if layout.word:
            return layout.head_bits, layout.k * layout.cell_bits
        index &= (1 << layout.i_bits) - 1
        return layout.head_bits + index * layout.cell_bits, layout.cell_bits

    def _take(self, units: int) -> None:
        layout = self.layout
        y, m, i, B = self._fields()
        y += units
        m += 1
        if m == layout.n:
            y, i, B = self._close(y, i, B)
            m = 0
        self._write(y, m, i, B)

    def _close(self, y: int, i: int, B: int) -> tuple[int, int, int]:
        """The open block ends: its cell takes the place of the oldest one's."""
        layout, packed = self.layout, self._packed
        cell, y = divmod(y, layout.theta)
        at, width = self._touched(i)
        old = packed.get(at, width)
        if layout.word:
            packed.put(at, width, old >> layout.cell_bits | cell << width - layout.cell_bits)
            return y, 0, 0
        packed.put(at, width, cell)
        return y, i + 1 if i + 1 < layout.k else 0, B - old + cell

    def _skip(self, count: int) -> None:
        layout = self.layout
        y, m, i, B = self._fields()
        if m + count < layout.n:
            self._write(y, m + count, i, B)
            return
        y, i, B = self._close(y, i, B)
        blocks, m = divmod(m + count - layout.n, layout.n)
        for _ in range(min(blocks, layout.k)):  # y < θ from here on, so their cells are 0
            y, i, B = self._close(y, i, B)
        if not layout.word:
            i = (i + max(blocks - layout.k, 0)) % layout.k
        self._write(y, m, i, B)

    def _estimate(self) -> int:
        """Twice the estimate in units, so that it is a whole number."""
        layout = self.layout
        y, m, i, B = self._fields()
        if layout.word:
            size, mask = layout.cell_bits, (1 << layout.cell_bits) - 1
            word = self._packed.get(layout.head_bits, layout.k * size)
            oldest, next_oldest, B = word & mask, word >> size & mask, word.bit_count()
            if size > 1:
                B = sum(word >> size * j & mask for j in range(layout.k))
        elif layout.n == 1:
            oldest = next_oldest = 0
        else:
            oldest = self._cell(i)
            next_oldest = self._cell(i + 1 if i + 1 < layout.k else 0)
        lost = m + layout.surplus
        gone = lost * oldest
        if lost >= layout.n:
            gone = layout.n * oldest + (lost - layout.n) * next_oldest
        return 2 * (layout.theta * B + y - layout.V * gone) - (layout.theta - 1)

    def _answer(self, twice: int) -> float:
        layout = self.layout
        return float(min(max(twice, 0), 2 * layout.W * layout.V)) * layout.scale
