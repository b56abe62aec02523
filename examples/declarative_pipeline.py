"""Windows in a declarative pipeline of Spark: tables are declared, ``spark-pipelines`` runs them.

    python examples/declarative_pipeline.py

The declarations are in ``declarative/``: a project file, and a module with two materialized views.
This script puts a year of flights beside a copy of them, runs the command, and shows what it wrote.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from flights import departures

DECLARED = Path(__file__).parent / "declarative"


def prepare(folder: Path) -> None:
    """The data, and the declarations with the folder's name filled in."""
    shutil.copytree(DECLARED, folder, dirs_exist_ok=True)
    for file in (folder / "spark-pipeline.yml", folder / "transformations" / "airports.py"):
        file.write_text(file.read_text().replace("FOLDER", str(folder)))
    table = departures().drop(columns="plane")
    table.to_parquet(folder / "flights.parquet", index=False, coerce_timestamps="us")


def main() -> None:
    """Run the pipeline, and print the tables it made."""
    command = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{command}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",  # Spark Connect takes a free port
    }
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        prepare(folder)
        done = subprocess.run(
            [str(command / "spark-pipelines"), "run", "--spec", "spark-pipeline.yml"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
        warehouse = folder / "spark-warehouse"
        answered = pq.read_table(warehouse / "departures_with_features").to_pandas()
        worst = pq.read_table(warehouse / "worst_hours").to_pandas().sort_values("origin")
    print(f"departures_with_features: {len(answered):,} rows, {len(answered.columns)} columns\n")
    latest = answered.sort_values(["at", "flight"]).tail(3)
    shown = ["flight", "origin", "at", "late", "late_mean_1h", "late_p95_24h", "left_24h"]
    with pd.option_context("display.width", 120):
        print(latest[shown].round(1).to_string(index=False), end="\n\n")
        print("worst_hours:")
        print(worst.round(1).to_string(index=False))


if __name__ == "__main__":
    main()
