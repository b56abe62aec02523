"""``import windrow`` is quick and loads nothing heavy."""

import json
import subprocess
import sys

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


def probe() -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=True, text=True)
    shares, modules = json.loads(done.stdout)
    return shares, modules


def test_import_loads_nothing_heavy() -> None:
    _, modules = probe()
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


def test_import_takes_no_longer_than_two_of_numpys() -> None:
    """In processor time of the same process: seconds would say more about the machine."""
    assert min(probe()[0] for _ in range(3)) < 2
