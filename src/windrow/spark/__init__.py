"""Spark: the same specification on tables and streams. The only package that imports pyspark."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from windrow.version import __version__


def ship(session: Any) -> None:
    """Make windrow available to executors that lack it, for this session.

    Its files are sent along as a zip; NumPy, PyArrow and numba must be there. Kernels are then
    compiled once on every executor: for more than a try, install the package there.
    """
    package = Path(__file__).parent.parent
    folder = Path(tempfile.mkdtemp(prefix="windrow-"))
    path = folder / f"windrow-{__version__}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(package.rglob("*.py")):
            archive.write(file, file.relative_to(package.parent))
    session.addArtifacts(str(path), pyfile=True)
