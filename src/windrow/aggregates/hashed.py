"""Sorted runs of 64-bit hashes: what a large table is kept as while it holds little."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
WIDTH = 8


def as_hashes(data: bytes, offset: int = 0, count: int = -1) -> Array:
    """The hashes that some bytes hold."""
    return np.frombuffer(data, "<u8", count=count, offset=offset)


def union(a: Array, b: Array) -> Array:
    """The hashes of both, each once."""
    return np.unique(np.concatenate([a, b]))


def added(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """Hashes and their counts, those of equal hashes added."""
    hashes, places = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    counts = np.zeros(len(hashes), "<u8")
    np.add.at(counts, places, np.concatenate([a[1], b[1]]))
    return hashes, counts
