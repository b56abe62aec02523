"""Fields of any width in a run of bytes: what makes a counter as small as its theorem says."""


class Packed:
    """Whole numbers at bit offsets, lowest bit first; an access touches one field's bytes."""

    __slots__ = ("data",)

    def __init__(self, bits: int) -> None:
        self.data = bytearray((bits + 7) >> 3)

    def get(self, offset: int, width: int) -> int:
        """The number in ``width`` bits from ``offset`` on.

        >>> packed = Packed(20); packed.put(3, 12, 2026); packed.get(3, 12), len(packed.data)
        (2026, 3)
        """
        end = offset + width
        taken = self.data[offset >> 3 : (end + 7) >> 3]
        return int.from_bytes(taken, "little") >> (offset & 7) & ((1 << width) - 1)

    def put(self, offset: int, width: int, value: int) -> None:
        """Write a number that fits in ``width`` bits; its neighbours stay as they are."""
        first, last = offset >> 3, (offset + width + 7) >> 3
        shift = offset & 7
        word = int.from_bytes(self.data[first:last], "little")
        word = word & ~(((1 << width) - 1) << shift) | value << shift
        self.data[first:last] = word.to_bytes(last - first, "little")


class BitWriter:
    """Numbers one behind the other, for headers."""

    def __init__(self) -> None:
        self.word = 0
        self.size = 0

    def number(self, value: int, width: int) -> None:
        """A number in a fixed width."""
        self.word |= value << self.size
        self.size += width

    def sized(self, value: int) -> None:
        """A number of up to 63 bits behind six bits that say how long it is."""
        self.number(value.bit_length(), 6)
        self.number(value, value.bit_length())

    def to_bytes(self) -> bytes:
        """What was written, in whole bytes."""
        return self.word.to_bytes((self.size + 7) >> 3, "little")


class BitReader:
    """Reads what ``BitWriter`` wrote; past the end there are zeros."""

    def __init__(self, data: bytes) -> None:
        self.word = int.from_bytes(data, "little")
        self.size = 0

    def number(self, width: int) -> int:
        """A number of a fixed width."""
        value = self.word >> self.size & ((1 << width) - 1)
        self.size += width
        return value

    def sized(self) -> int:
        """A number behind its length."""
        return self.number(self.number(6))
