"""Where Spark runs: executors without the package, the preloading daemon."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import SLOW

TABLE = pa.table({"k": [1, 1, 2, 1], "t": [1, 2, 3, 9], "x": [1.0, 2.0, 3.0, 4.0]})
SPEC = 'wr.Rolling(key="k", time="t", windows=[wr.time(5)], aggregates=[wr.Sum("x")])'


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",  # a free port for Spark Connect
        **environment,
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


HIDE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
sys.path[:] = [path for path in sys.path if not path.endswith({source!r})]
"""

SHIP = """
import os, sys
import pyarrow as pa
import windrow as wr
os.environ["PYTHONPATH"] = sys.argv[1]  # where workers learn to look past the package
from pyspark.sql import SparkSession
builder = SparkSession.builder.config("spark.ui.enabled", "false")
spark = (builder.remote("local[1]") if sys.argv[2] == "connect" else builder.master("local[1]"))
spark = spark.getOrCreate()
df = spark.createDataFrame(pa.table({table}))
features = {spec}
try:
    features(df).collect()
except Exception as error:
    print("missing" if "No module named 'windrow'" in str(error) else error)
wr.spark.ship(spark)
print(sorted(row.x_sum_5 for row in features(df).collect()))
"""


@pytest.mark.parametrize("how", ["classic", "connect"] if SLOW else ["classic"])
def test_the_package_is_shipped_to_executors_that_lack_it(how: str, tmp_path: Path) -> None:
    source = str(Path(wr.__file__).parent.parent)
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(source=source))
    script = tmp_path / "script.py"
    script.write_text(SHIP.format(table=TABLE.to_pydict(), spec=SPEC))
    done = run([sys.executable, str(script), str(tmp_path), how], tmp_path)
    assert done.stdout.splitlines() == ["missing", "[1.0, 3.0, 3.0, 4.0]"], done.stderr[-2000:]


DAEMON = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.python.daemon.module", "windrow.spark.daemon").getOrCreate())

def loaded(batches):
    import pyarrow as pa
    for batch in batches:
        names = ["numba", "windrow.columns.builtin", "windrow.spark.worker"]
        yield pa.record_batch([pa.array([name in sys.modules for name in names])], names=["ok"])

print([row.ok for row in spark.range(1).mapInArrow(loaded, "ok boolean").collect()])
"""


def test_workers_of_the_daemon_have_the_kernels_loaded(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(DAEMON)
    done = run([sys.executable, str(script)], tmp_path)
    assert done.stdout.splitlines() == ["[True, True, True]"], done.stderr[-2000:]
