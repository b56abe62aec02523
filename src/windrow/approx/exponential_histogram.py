"""The exponential histogram: counts and sums within a *share* of the true answer.

The last W values are kept as buckets of 2^j ones each, newest first, with the time of each bucket's
newest one; a value x is x ones at once. There are at most ⌈k/2⌉ + 1 buckets of each size, with
k = ⌈1/ε⌉: one more and the two oldest become one of the next size. Only the oldest bucket can be
partly out of the window. With size C, between 1 and C of its ones are in; all sizes below have at
least ⌈k/2⌉ buckets, which hold k/2 · (C − 1) ones. Taking the middle, the error is at most
(C − 1)/2 / (1 + k/2 · (C − 1)) < 1/k ≤ ε of the truth.

Buckets with the same time and size are written once with how many there are, so a value costs
O(log(WR)) amortised whatever it is.

Needs: order. Time: O(log WR) amortised. Space: (1/(2ε) + 1) · log(2WRε + 1) buckets of
⌈log W⌉ + ⌈log log WR⌉ bits: where an error of a fixed size will do, ``Count`` and ``Sum`` need a
small fraction of it. Published: Datar, Gionis, Indyk, Motwani, "Maintaining Stream Statistics over
Sliding Windows" (SIAM J. Comput. 31, 2002).
"""

import math
import zlib
from collections import deque
from fractions import Fraction
from typing import Any, Self

import numpy as np

from windrow.approx.bits import BitReader, BitWriter
from windrow.approx.parameters import checked_epsilon, checked_maximum, checked_window
from windrow.errors import BadBytes, BadValue


class ExponentialHistogram:
    """The count or sum of the last ``window`` values, within a share ``epsilon`` of itself.

    >>> h = ExponentialHistogram(window=1000, epsilon=0.1)
    >>> h.insert_many([True, False] * 2000)
    >>> abs(h.query() - 500) <= 0.1 * 500
    True
    """

    def __init__(self, window: int, epsilon: Any, maximum: int = 1, *, clamp: bool = False) -> None:
        self.window = checked_window(window)
        self.maximum = checked_maximum(maximum)
        self._epsilon = checked_epsilon(epsilon)
        self.clamp = clamp
        self._limit = -(-math.ceil(1 / self._epsilon) // 2) + 1
        self._levels: list[deque[list[int]]] = []  # runs [time, buckets], oldest first
        self._counts: list[int] = []
        self._now = 0
        self._total = 0

    @property
    def epsilon(self) -> float:
        """The largest error, as a share of the true answer."""
        return float(self._epsilon)

    @property
    def error_bound(self) -> float:
        """How far the present answer can be from the truth: half of the oldest bucket."""
        return (self._oldest_size() - 1) / 2

    def insert(self, value: Any) -> None:
        """Take the next value; what is older than the window goes."""
        value = int(value) if isinstance(value, (bool, np.bool_)) else value
        if not isinstance(value, (int, np.integer)) or (
            not 0 <= value <= self.maximum and not self.clamp
        ):
            raise BadValue(
                f"{value!r} is not a whole number in 0..{self.maximum}: give a larger maximum=, or "
                "clamp=True to take what is beyond as the nearest of them"
            )
        self._now += 1
        self._expire()
        copies = min(max(int(value), 0), self.maximum)
        self._total += copies
        self._add(copies)

    def insert_many(self, values: Any) -> None:
        """Take many values in order."""
        for value in np.asarray(values).tolist():
            self.insert(value)

    def query(self) -> float:
        """The estimate: all buckets, less half of the oldest one's uncertain part."""
        return self._total - (self._oldest_size() - 1) / 2

    def buckets(self) -> int:
        """How many buckets there are now."""
        return sum(self._counts)

    def most_buckets(self) -> int:
        """How many there can be: ⌈k/2⌉ + 1 of every size that window × maximum reaches."""
        levels = 1
        while (self._limit - 1) * ((1 << levels) - 1) < self.window * self.maximum:
            levels += 1
        return self._limit * levels

    def bucket_bits(self) -> int:
        """An age below W and a size's exponent."""
        largest = (self.window * self.maximum).bit_length()
        return max((self.window - 1).bit_length(), 1) + largest.bit_length()

    def bits(self) -> int:
        """The size of the present state."""
        return self.buckets() * self.bucket_bits()

    def to_bytes(self) -> bytes:
        """Version and checksum, parameters, then every bucket's age and exponent, packed."""
        out = BitWriter()
        out.number(1, 4)
        out.number(self.clamp, 1)
        for number in (self.window, self.maximum, *self._epsilon.as_integer_ratio()):
            out.number(number.bit_length(), 11)
            out.number(number, number.bit_length())
        out.number(self.buckets(), 48)
        ages, exponents = self._age_bits()
        width, parts = ages + exponents, []
        for level, runs in enumerate(self._levels):
            for time, copies in runs:
                parts += [level << ages | self._now - time] * copies
        word = "".join(f"{part:0{width}b}" for part in reversed(parts))
        out.number(int(word or "0", 2), width * len(parts))
        body = out.to_bytes()
        return zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The histogram that these bytes are of."""
        if len(data) < 8 or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "little"):
            raise BadBytes(f"{len(data)} bytes that are no histogram's: cut short or damaged")
        bits = BitReader(data[4:])
        if bits.number(4) != 1:
            raise BadBytes("a histogram of another format")
        clamp = bool(bits.number(1))
        window, maximum, p, q = (bits.number(bits.number(11)) for _ in range(4))
        made = cls(window, Fraction(p, q), maximum, clamp=clamp)
        ages, exponents = made._age_bits()
        count, width = bits.number(48), ages + exponents
        text = bin(bits.number(width * count) | 1 << width * count)[3:]
        made._now = window
        for end in range(len(text), 0, -width):
            part = int(text[end - width : end], 2)
            level, age = part >> ages, part & ((1 << ages) - 1)
            while len(made._levels) <= level:
                made._levels.append(deque())
                made._counts.append(0)
            made._append(level, made._now - age, 1)
            made._counts[level] += 1
            made._total += 1 << level
        return made

    def __repr__(self) -> str:
        of = f"window={self.window}, epsilon={self._epsilon}, maximum={self.maximum}"
        return f"ExponentialHistogram({of}) in {self.bits()} bits"

    def _age_bits(self) -> tuple[int, int]:
        ages = max((self.window - 1).bit_length(), 1)
        return ages, self.bucket_bits() - ages

    def _oldest_size(self) -> int:
        return 1 << len(self._levels) - 1 if self._levels else 1

    def _expire(self) -> None:
        while self._levels:
            runs = self._levels[-1]
            if runs and runs[0][0] > self._now - self.window:
                return
            if runs:
                _, copies = runs.popleft()
                self._counts[-1] -= copies
                self._total -= copies << len(self._levels) - 1
            if not runs:
                self._levels.pop()
                self._counts.pop()

    def _add(self, copies: int) -> None:
        incoming = [[self._now, copies]] if copies else []
        level = 0
        while incoming:
            if level == len(self._levels):
                self._levels.append(deque())
                self._counts.append(0)
            for time, many in incoming:
                self._append(level, time, many)
                self._counts[level] += many
            incoming = self._merged(level)
            level += 1

    def _append(self, level: int, time: int, copies: int) -> None:
        runs = self._levels[level]
        if runs and runs[-1][0] == time:
            runs[-1][1] += copies
        else:
            runs.append([time, copies])

    def _merged(self, level: int) -> list[list[int]]:
        """The oldest buckets of a level, two by two, until no more than the limit are left."""
        pairs = max(self._counts[level] - self._limit + 1, 0) // 2
        self._counts[level] -= 2 * pairs
        runs, out = self._levels[level], []
        while pairs:
            run = runs[0]
            whole = min(run[1] // 2, pairs)
            if whole:
                out.append([run[0], whole])
                run[1] -= 2 * whole
                pairs -= whole
            if run[1] == 0:
                runs.popleft()
            elif pairs:  # one is left: its partner is the next run's first
                runs.popleft()
                runs[0][1] -= 1
                out.append([runs[0][0], 1])
                pairs -= 1
                if runs[0][1] == 0:
                    runs.popleft()
        return out
