"""``import windrow`` is quick and loads nothing heavy."""

import json
import subprocess
import sys

PROBE = """
import json, sys, time
import numpy
before = set(sys.modules)
start = time.process_time()
import windrow
print(json.dumps([time.process_time() - start, sorted(set(sys.modules) - before)]))
"""


def probe() -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=True, text=True)
    seconds, modules = json.loads(done.stdout)
    return seconds, modules


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


def test_import_takes_little_more_than_numpy() -> None:
    assert min(probe()[0] for _ in range(3)) < 0.15
