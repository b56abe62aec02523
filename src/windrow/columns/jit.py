"""Where compiled code is kept: by every source that a kernel can reach, not by its own file alone.

Numba looks at the file of a function, not at those of the functions it calls: after an upgrade
that changes a kernel, its callers' old code, which has the old kernel built in, would run. Here the
folder of a kernel's code is named after its file, the files of this package that it imports, and
theirs. So code is never stale, and installations with equal sources share it.

Every kernel is compiled by this module's ``njit``.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CacheImpl, _CacheLocator

__all__ = ["cache_folder", "njit"]

_HERE = Path(__file__).parent
_PACKAGE = "windrow.columns"
_IMPORT = re.compile(rf"^from ({re.escape(_PACKAGE)}[\w.]*) import", re.MULTILINE)
_KEPT = 30 * 24 * 3600
"""Seconds that code stays after it was last used."""


@cache
def cache_folder() -> Path:
    """Where generated modules and compiled code live: a folder of the user's own."""
    chosen = os.environ.get("WINDROW_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = Path(chosen) if chosen else Path.home() / ".cache"
    candidates = [home / "windrow", Path(tempfile.gettempdir()) / f"windrow-{os.getuid()}"]
    for folder in candidates:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            return folder
    return Path(tempfile.mkdtemp(prefix="windrow-"))


@cache
def _text(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """The files of this package that a file imports from; of a folder, all of them."""

    def found() -> Iterator[Path]:
        for name in _IMPORT.findall(_text(file).decode()):
            path = _HERE.joinpath(*name.split(".")[2:])
            if path.with_suffix(".py").exists():
                yield path.with_suffix(".py")
            else:
                yield from path.glob("*.py")

    return tuple(found())


@cache
def sources_of(file: Path) -> str:
    """A name for the sources that a file's kernels are made of."""
    reached, waiting = {file}, [file]
    while waiting:
        new = set(_imported(waiting.pop())) - reached
        reached |= new
        waiting += new
    texts = sorted(blake2b(_text(path), digest_size=16).digest() for path in reached)
    return blake2b(b"".join(texts), digest_size=8).hexdigest()


@cache
def _folder_of(file: Path) -> Path:
    """The folder of a file's compiled code; of its other versions, what is long unused goes."""
    inside = file.is_relative_to(_HERE)
    name = ".".join(file.relative_to(_HERE).with_suffix("").parts) if inside else file.stem
    folder = cache_folder() / "compiled" / f"{name}-{sources_of(file)}"
    if folder.exists():
        os.utime(folder)
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.glob(f"{name}-*"):
        with suppress(FileNotFoundError):  # another process may be faster
            if other.stat().st_mtime < time.time() - _KEPT:
                shutil.rmtree(other, ignore_errors=True)
    return folder


class _BySources(_CacheLocator):  # type: ignore[misc]
    """Tells numba where the code of this package's kernels is, generated ones included."""

    def __init__(self, function: Any, file: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._file = file

    def get_cache_path(self) -> str:
        """The folder."""
        return str(_folder_of(self._file))

    def get_source_stamp(self) -> str:
        """What the code was made of."""
        return sources_of(self._file)

    def get_disambiguator(self) -> str:
        """What tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, name: str) -> "_BySources | None":
        """A locator, for functions that are this package's."""
        file = Path(name)
        if not file.is_absolute() or not (
            file.is_relative_to(_HERE) or file.parent == cache_folder()
        ):
            return None
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


CacheImpl._locator_classes.insert(0, _BySources)
