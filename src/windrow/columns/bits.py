"""A set of small numbers as bits, with counts above them: members are found by their place.

Three levels: 64 numbers a word, 64 words a block, 256 blocks a heap; counts of heaps are kept only
where there are several, for all members would change the same one. Where the k-th member is, is
found from where another one was (a *finger*: a word, and how many members come before it), word by
word, and by blocks and heaps where it is far: a window that slides moves it a word at most.
"""

# mypy: disable-error-code="no-untyped-def"

import platform
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_features  # type: ignore[import-untyped]
from llvmlite.ir import FunctionType  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from windrow.columns.jit import njit

_WORD = np.uint64(6)
_BLOCK = np.uint64(12)
_HEAP = np.uint64(20)
_BLOCKS = np.uint64(8)
_IN_WORD = np.uint64(63)
_IN_HEAP = np.uint64(255)
_ONE = np.uint64(1)
_NOTHING = np.uint64(0)


@intrinsic  # type: ignore[untyped-decorator]
def popcount(typing_context: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set; 64 where none is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def made(size):
    """The three levels for numbers below ``size``, empty."""
    words = np.zeros((size >> 6) + 2, np.uint64)
    blocks = np.zeros((size >> 12) + 2, np.int64)
    heaps = np.zeros((size >> 20) + 2, np.int64)
    return words, blocks, heaps


@njit(cache=True, nogil=True)
def flip(words, blocks, heaps, number, step):
    """Put a number in (step 1), or take it out (step -1)."""
    words[number >> _WORD] ^= _ONE << (number & _IN_WORD)
    blocks[number >> _BLOCK] += step
    if len(heaps) > 2:
        heaps[number >> _HEAP] += step


@njit(cache=True, nogil=True)
def seek(words, blocks, heaps, k, word, before):
    """The word that holds the k-th member, and how many come before it; there must be that many."""
    while k < before:
        if word & _IN_WORD == _NOTHING:
            block = word >> _WORD
            while True:
                if block & _IN_HEAP == _NOTHING:
                    heap = block >> _BLOCKS
                    while k < before - heaps[heap - _ONE]:
                        heap -= _ONE
                        before -= heaps[heap]
                    block = heap << _BLOCKS
                if k >= before - blocks[block - _ONE]:
                    break
                block -= _ONE
                before -= blocks[block]
            word = block << _WORD
        word -= _ONE
        before -= np.int64(popcount(words[word]))
    while True:
        here = np.int64(popcount(words[word]))
        if k < before + here:
            return word, before
        before += here
        word += _ONE
        if word & _IN_WORD == _NOTHING:
            block = word >> _WORD
            while k >= before + blocks[block]:
                if block & _IN_HEAP == _NOTHING:
                    heap = block >> _BLOCKS
                    while k >= before + heaps[heap]:
                        before += heaps[heap]
                        heap += _ONE
                    block = heap << _BLOCKS
                    if k < before + blocks[block]:
                        break
                before += blocks[block]
                block += _ONE
            word = block << _WORD


@njit(cache=True, nogil=True)
def halved(bits, k):
    """The place of the k-th bit of a word that is set; by halves, without a branch."""
    at = _NOTHING
    left = np.uint64(k)
    for half in (32, 16, 8, 4, 2, 1):
        size = np.uint64(half)
        below = popcount(bits & ((_ONE << size) - _ONE))
        above = _ONE if left >= below else _NOTHING
        left -= below * above
        bits >>= size * above
        at += size * above
    return at


@intrinsic  # type: ignore[untyped-decorator]
def _deposit(typing_context: Any, bits: Any, mask: Any) -> Any:
    """The lowest bits, put where the mask has ones: an instruction of x86."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = arguments[0].type
        kind = FunctionType(word, [word, word])
        name = "llvm.x86.bmi.pdep.64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return types.uint64(types.uint64, types.uint64), generate


@njit(cache=True, nogil=True)
def _deposited(bits, k):
    """The place of the k-th bit of a word that is set, in two instructions."""
    return lowest(_deposit(_ONE << np.uint64(k), bits))


def _can_deposit() -> bool:
    """Unless numba was told to compile for another processor than this one."""
    here = not (config.CPU_NAME or config.CPU_FEATURES)
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return here and x86 and bool(get_host_cpu_features().get("bmi2"))


place_in = _deposited if _can_deposit() else halved


@njit(cache=True, nogil=True)
def following(words, blocks, number):
    """The member after a number; there must be one."""
    word = number >> _WORD
    bits = words[word] & ~((_ONE << (number & _IN_WORD)) | ((_ONE << (number & _IN_WORD)) - _ONE))
    while bits == _NOTHING:
        word += _ONE
        if word & _IN_WORD == _NOTHING:
            while blocks[word >> _WORD] == 0:
                word += np.uint64(64)
        bits = words[word]
    return (word << _WORD) + lowest(bits)
