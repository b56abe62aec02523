"""Kernels from an aggregate: one text per way of sliding, filled in with what the aggregate does.

A partial is a few scalars in registers; stacks are one array per field. The filled-in text is
written to a file in the user's cache folder and imported, since numba keeps compiled code on disk
only for functions of real files whose parts are globals of the same module (numba issue 6264). The
file's name is the hash of its text: a changed aggregate is another file, and nothing is ever stale.

Five ways of sliding, all over rows sorted by key and time, and one of folding:

``bounded``   Two-Stacks over ranges [lo, hi) that only move forward; flips when the front is empty
``block``     the same for the last ``width`` rows of one run: flips fall on blocks of ``width``
``steady``    DABA Lite over ranges that only move forward: no flip, a bounded step per row
``tree``      base intervals (B-INT), for ranges in any order
``greedy``    the fewest combines there can be (``windrow.greedy``), for ranges that move forward
``fold``      the partial of each run of rows

Indices are unsigned where they index: signed ones would be checked for being negative at every
access, which makes these loops two to three times as slow.
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from windrow.columns import skeletons
from windrow.columns.jit import cache_folder


@dataclass(frozen=True)
class Parts:
    """What a kernel does with an aggregate, as text. Fields are arrays ``s0, s1, …`` of a stack."""

    source: str
    """Functions that the steps call: ``combine``, ``lift``, ``identity`` and the like."""
    inputs: tuple[str, ...]
    types: tuple[str, ...]
    """NumPy types of the stack's fields, in order."""
    front_start: str
    front_step: str
    store: str
    back_start: str
    back_step: str
    merge: str
    emit: str
    empty: str
    extra: str = ""
    outs: str = "out"
    allocate: str = ""
    error_model: str = "numpy"
    lift: str | None = None
    """The partial of row ``j``, where the aggregate has ``combine`` and ``identity``."""
    result: str = "0"


def _indent(text: str, depth: int) -> str:
    lines = text.strip("\n").split("\n")
    return ("\n" + " " * depth).join(lines)


def render(parts: Parts) -> str:
    """The text of the module with all kernels."""
    common = {
        "inputs": ", ".join(parts.inputs),
        "extra": parts.extra,
        "outs": parts.outs,
        "error_model": parts.error_model,
        "allocate": _indent(parts.allocate or "pass", 4)
        + "\n    "
        + _allocate(parts.types, "16", 4),
        "allocate_more": _allocate(parts.types, "capacity", 12),
        "front_start": _indent(parts.front_start, 8),
        "front_step": _indent(parts.front_step, 12),
        "store": _indent(parts.store, 12),
        "back_start": _indent(parts.back_start, 8),
        "back_step": _indent(parts.back_step, 16),
        "merge": _indent(parts.merge, 12),
        "emit": _indent(parts.emit, 12),
        "empty": _indent(parts.empty, 12),
        "result": parts.result,
    }
    out = skeletons.HEAD + parts.source
    out += skeletons.TWO_STACKS.format(**common)
    depths = {
        "allocate_block": _indent(parts.allocate or "pass", 4)
        + "\n    "
        + _allocate(parts.types, "width", 4),
        "front_start4": _indent(parts.front_start, 4),
        "store4": _indent(parts.store, 4),
        "back_start4": _indent(parts.back_start, 4),
        "back_step8": _indent(parts.back_step, 8),
        "back_step12": _indent(parts.back_step, 12),
        "merge8": _indent(parts.merge, 8),
        "emit8": _indent(parts.emit, 8),
    }
    out += skeletons.BLOCK.format(**common, **depths)
    if parts.lift is not None:
        count = len(parts.types)
        load = ", ".join(f"s{i}[k]" for i in range(count))
        store = "\n".join(_stores("v", count))
        middles = [f"m{i}" for i in range(count)]
        out += (skeletons.STEADY + skeletons.TREE + skeletons.GREEDY + skeletons.FOLD).format(
            **common
            | {
                "first_input": parts.inputs[0],
                "middles": ", ".join(middles),
                "store_middle": _indent("\n".join(_stores("p", count, "m")), 8),
                "allocate_ring": _allocate(parts.types, "size", 4),
                "allocate_tree": _allocate(parts.types, "2 * size + 2", 4),
                "load": f"({load})" if count > 1 else load,
                **{f"store_{depth}": _indent(store, depth) for depth in (8, 12, 16, 20, 24)},
                "lift_E": parts.lift.replace("U(j)", "U(E)"),
                "lift_j": parts.lift,
                "emit8": _indent(parts.emit, 8),
            }
        )
    return out


def _allocate(types: tuple[str, ...], size: str, depth: int) -> str:
    return _indent("\n".join(f"s{i} = np.empty({size}, {t})" for i, t in enumerate(types)), depth)


def _stores(partial: str, fields: int, stack: str = "s") -> list[str]:
    if fields == 1:
        return [f"{stack}0[k] = {partial}"]
    return [f"{stack}{i}[k] = {partial}[{i}]" for i in range(fields)]


def from_functions(
    source: str, inputs: tuple[str, ...], types: tuple[str, ...], nulls: bool
) -> Parts:
    """Parts for an aggregate given as functions ``lift``, ``combine``, ``lower``, ``identity``."""
    fields = len(types)
    arguments = ", ".join(f"{name}[U(j)]" for name in inputs)
    load = ", ".join(f"s{i}[k]" for i in range(fields))
    if_valid = "if valid[U(j)]:\n    " if nulls else ""
    count = "counts[U(high)] - counts[U(low)]" if nulls else "rows"
    return Parts(
        source=source,
        inputs=(*inputs, "valid"),
        types=types,
        front_start="p = identity",
        front_step=f"{if_valid}p = combine(lift({arguments}), p)",
        store="\n".join(_stores("p", fields)),
        back_start="q = identity",
        back_step=f"{if_valid}q = combine(q, lift({arguments}))",
        merge=f"p = combine({f'({load})' if fields > 1 else load}, q)",
        emit=f"if {count} >= least:\n    out[U(i)] = lower(p)",
        empty="pass",
        extra="counts, least, ",
        error_model="python",
        lift=f"lift({arguments})" + (" if valid[U(j)] else identity" if nulls else ""),
    )


def load_with(text: str, names: dict[str, Any]) -> ModuleType:
    """Run a generated text with functions that are in no file; what it compiles is not kept."""
    module = ModuleType("windrow_kernel_in_memory")
    vars(module).update(names)
    exec(compile(text.replace("cache=True, ", ""), "<windrow kernel>", "exec"), vars(module))
    return module


def load(text: str, label: str) -> ModuleType:
    """Import a generated text from its file, which is written whole or not at all.

    Several processes may do this at once: each writes a file of its own and renames it.
    """
    digest = hashlib.blake2b(f"{sys.version} {text}".encode(), digest_size=10).hexdigest()
    module_name = f"windrow_kernel_{label}_{digest}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    path = cache_folder() / f"{module_name}.py"
    written = text.encode()  # whatever the locale: Python reads sources as UTF-8
    if not path.exists() or path.read_bytes() != written:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(written)
        os.replace(temporary, path)
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[module_name] = module
    return module
