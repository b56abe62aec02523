"""Run as a program: writes the checkpoint of a small stream, for later versions to go on from.

python -m tests.stream_upgrade FILE.zip

Paths are taken out of it, so that it can be laid down anywhere.
"""

# mypy: disable-error-code="misc,index,operator"

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow as wr
from tests.stream_session import Pipe, random_stream, split

PARTS = split(random_stream(160, 4, 71, 20).select(["k", "t", "id", "x", "i", "s"]), 4, 71)
WRITTEN = 2
"""How many of the parts the checkpoint has seen."""
_ROOT = "/windrow-upgrade"


def specification() -> wr.Rolling:
    return wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={"w": wr.time("40s"), "long": wr.time("2h"), "r": wr.rows(4, within="1m")},
        aggregates=[wr.Sum("x"), wr.Count(), wr.Max("i"), wr.Last("s")],
        lateness="20s",
    )


def table() -> pa.Table:
    return pa.concat_tables(PARTS)


def _is_text(path: Path) -> bool:
    return path.suffix not in (".zip", ".changelog", ".crc", ".sst")


def write(spark: Any, target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        pipe = Pipe(spark, folder, "end").feed(*PARTS[:WRITTEN])
        pipe.run(specification(), buckets=2)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(pipe.checkpoint.rglob("*")) + sorted(pipe.sink.glob("*.parquet")):
                if path.is_dir() or path.suffix == ".crc":
                    continue
                data = path.read_bytes()
                if _is_text(path) and path.suffix != ".parquet":
                    data = data.replace(name.encode(), _ROOT.encode())
                archive.writestr(str(path.relative_to(folder)), data)


def lay_down(source: Path, folder: Path) -> None:
    """The checkpoint and the answers so far, as if they had been written there."""
    with zipfile.ZipFile(source) as archive:
        archive.extractall(folder)
    for path in (folder / "checkpoint").rglob("*"):
        if path.is_file() and _is_text(path):
            data = path.read_bytes()
            path.write_bytes(data.replace(_ROOT.encode(), str(folder).encode()))


def main() -> None:
    from tests.spark_session import local_session

    spark = local_session()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    write(spark, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
