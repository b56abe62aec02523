"""``import windrow`` is quick and loads nothing heavy."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROBE = """
import json, sys, time
start = time.process_time()
import numpy
numpys = time.process_time() - start
before = set(sys.modules)
start = time.process_time()
import windrow
shares = (time.process_time() - start) / numpys
print(json.dumps([shares, sorted(set(sys.modules) - before)]))
"""


def probe(kept: Path) -> tuple[float, list[str]]:
    """With modules compiled to bytecode in a folder, as they are where they were installed."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": ""}
    run = [sys.executable, "-c", PROBE]
    done = subprocess.run(run, capture_output=True, check=True, text=True, env=environment)
    shares, modules = json.loads(done.stdout)
    return shares, modules


def test_import_loads_nothing_heavy(tmp_path: Path) -> None:
    _, modules = probe(tmp_path)
    roots = {name.partition(".")[0] for name in modules}
    assert "windrow" in roots
    heavy = {
        "datasketches",
        "numba",
        "llvmlite",
        "pyspark",
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "hypothesis",
    }
    assert not roots & heavy


def test_import_takes_no_longer_than_two_of_numpys(tmp_path: Path) -> None:
    """In processor time of the same process: seconds would say more about the machine."""
    assert min(probe(tmp_path)[0] for _ in range(4)) < 2
