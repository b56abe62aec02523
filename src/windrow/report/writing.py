"""A report written: whole or not at all, and refused beforehand where it cannot be."""

import os
import tempfile
from pathlib import Path
from typing import Any

from windrow.errors import WindrowError


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise where a report cannot be written, before anything runs."""
    target = Path(path)
    way = "name another path with --report"
    if target.is_dir():
        raise WindrowError(f"{target} is a folder: name a file in it, {target / 'report.html'}")
    folder = target.parent
    if not folder.exists():
        raise WindrowError(f"there is no folder {folder} for the report: make it, or {way}")
    if not folder.is_dir():
        raise WindrowError(f"{folder} is a file, not a folder: {way}")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise WindrowError(f"no permission to write {target}: {way}, or change the folder's mode")
    if target.is_file() and _is_something_else(target):
        raise WindrowError(f"{target} is there already, and is no report: {way}")


def _is_something_else(file: Path) -> bool:
    with file.open("rb") as opened:
        beginning = opened.read(9).lower()
    return beginning not in (b"", b"<!doctype")


def write(path: str | os.PathLike[str], *sections: Any, title: str | None = None) -> int:
    """Write a report of sections, or of runs of pipelines that were detailed; its size in bytes."""
    from windrow.report.page import page

    parts = [getattr(one, "section", one) for one in sections]
    if not parts or any(part is None for part in parts):
        raise WindrowError(
            "a report needs a section: report.section(…), or run(pipeline, detailed=True)"
        )
    check_path(path)
    text = page(parts, title or parts[0].name).encode("utf-8", "replace")
    target = Path(path)
    try:
        handle, hidden = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        os.chmod(hidden, 0o666 & ~_umask())
        os.replace(hidden, target)
    except OSError as error:
        raise WindrowError(f"{target} cannot be written: {error.strerror or error}") from error
    return len(text)


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
