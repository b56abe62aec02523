"""A pipeline in a file: ``pipeline/flights.toml``, checked, tried on a few rows, and run.

    python examples/pipeline_in_a_file.py

The commands are those that one types; an aggregate of one's own lies beside the file.
"""

import os
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from flights import departures

from windrow.cli import main as windrow

PIPELINE = Path(__file__).parent / "pipeline" / "flights.toml"


def typed(*words: str) -> None:
    """A command as it stands in a terminal."""
    print(f"$ windrow {' '.join(words)}", flush=True)
    code = windrow([*words[:1], *(str(PIPELINE) if w == "flights.toml" else w for w in words[1:])])
    if code:
        raise SystemExit(code)
    print(flush=True)


def main() -> None:
    """The first three months: check, sample, run; then look at what was written."""
    with tempfile.TemporaryDirectory() as folder:
        table = departures().drop(columns="plane")
        table = table[table["at"] < "2013-04-01"].copy()
        table["at"] = table["at"].dt.strftime("%Y-%m-%d %H:%M:%S")
        table.to_csv(f"{folder}/flights.csv", index=False)
        os.environ["FLIGHTS"] = folder  # the file says ${FLIGHTS}
        typed("run", "flights.toml", "--check")
        typed("run", "flights.toml", "--sample", "5")
        typed("run", "flights.toml", "--quiet")
        written = pq.read_table(f"{folder}/features.parquet")
        print(f"{written.num_rows:,} rows with {written.num_columns} columns were written")
        busy = written.filter(pc.field("left_day") >= 200).sort_by("share_late_day")
        worst = busy.slice(busy.num_rows - 1).to_pylist()[0]
        print(
            f"the worst day of the winter: {worst['share_late_day']:.0%} of {worst['left_day']} "
            f"left late at {worst['origin']} before {worst['at']:%d %B, %H:%M}"
        )


if __name__ == "__main__":
    main()
