"""Bytes of a counter: a header of at most 16 bytes, then its packed state.

Four bytes of checksum (CRC-32 of everything behind them), then bits: version (3), kind (3), clamp
(1), whether the parameters are here (1), and W, R and ε, each as short as it is. Parameters that
do not fit in 16 bytes are left out; 32 bits of their own checksum stand for them.
"""

import zlib
from fractions import Fraction
from typing import Any

from windrow.approx.bits import BitReader, BitWriter
from windrow.approx.parameters import read_epsilon, write_epsilon
from windrow.errors import BadBytes

VERSION = 2
HEADER = 16
Parameters = tuple[int, int, Any, Fraction, bool]


def write(parameters: Parameters, state: bytes) -> bytes:
    """Header and state."""
    header = _header(parameters)
    body = bytes([len(header) << 4 | VERSION]) + header + state
    return zlib.crc32(body).to_bytes(4, "little") + body


def _header(parameters: Parameters) -> bytes:
    kind, W, R, epsilon, clamp = parameters
    out = BitWriter()
    out.number(kind, 3)
    out.number(clamp, 1)
    short = isinstance(R, int | None) and W.bit_length() < 64 and (R or 0).bit_length() < 64
    out.number(short, 1)
    if short:
        out.sized(W)
        if R is not None:
            out.sized(R)
        write_epsilon(out, epsilon)
    if not short or len(out.to_bytes()) > HEADER - 5:
        out = BitWriter()
        out.number(kind, 3)
        out.number(clamp, 1)
        out.number(0, 1)
        out.number(zlib.crc32(repr(parameters).encode()), 32)
    return out.to_bytes()


def read(data: bytes, like: Parameters | None) -> tuple[Parameters, bytes]:
    """Parameters and state, checked."""
    if len(data) < 6 or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "little"):
        raise BadBytes(f"{len(data)} bytes that are no counter's: cut short or damaged")
    size, version = data[4] >> 4, data[4] & 15
    if version != VERSION:
        raise BadBytes(f"a counter of format {version}; this windrow reads format {VERSION}")
    header, state = data[5 : 5 + size], data[5 + size :]
    if like is not None:
        if _header(like) != header:
            raise BadBytes("these bytes are of a counter with other parameters than like= has")
        return like, state
    bits = BitReader(header)
    kind, clamp = bits.number(3), bool(bits.number(1))
    if not bits.number(1):
        raise BadBytes(
            "the parameters of this counter are too long for its header: give from_bytes(data, "
            "like=counter) one with the same parameters"
        )
    W = bits.sized()
    R = None if kind == 1 else bits.sized()
    return (kind, W, R, read_epsilon(bits), clamp), state


def check_state(state: bytes, bits: int) -> None:
    """Whether there are as many bytes as the fields need."""
    if len(state) != (bits + 7) >> 3:
        raise BadBytes(f"{len(state)} bytes of state, where {bits} bits are needed")


def wrong_kind(name: str) -> BadBytes:
    """The bytes are of another class."""
    return BadBytes(f"these bytes are of another kind of counter than {name}")
