"""A window that is larger than the memory it may use: it lives in RocksDB, on disk.

    python examples/larger_than_memory.py [rows]

The same window twice, in a store and in memory, and by how much the process grew for each. What the
first one needs does not depend on the window's size: a few chunks of each of its log2 n levels.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import windrow as wr


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def fed(window: Any, rows: int) -> tuple[Any, float, float]:
    """The last answer, by how many MB the process grew, and microseconds a row."""
    before, start = peak(), time.perf_counter()
    for i in range(rows + rows // 4):  # a quarter more than it holds: rows leave, too
        answer = window.insert(i * 7_919 % 1_000_003)
    return answer, peak() - before, (time.perf_counter() - start) / rows / 1.25 * 1e6


def main(rows: int = 400_000) -> None:
    """Print both, side by side."""
    with tempfile.TemporaryDirectory() as folder:
        store = wr.stores.Rocks(f"{folder}/window")
        with wr.Sliding(wr.rows(rows), wr.Max(), store=store, name="window") as window:
            answer, stored, slow = fed(window, rows)
            assert len(window) == rows
            window.flush()
            files = Path(folder, "window").glob("*.*")
            disk = sum(file.stat().st_size for file in files) / 1e6
    own = wr.Sliding(wr.rows(rows), wr.Max(), algorithm="Amta")
    same, held, quick = fed(own, rows)
    print(f"a window of {rows:,} rows; the largest of them is {answer:,}")
    print(f"in a store:  {stored:6.1f} MB of memory, {disk:6.1f} MB on disk, {slow:5.1f} µs a row")
    print(f"in memory:   {held:6.1f} MB of memory, {quick:31.1f} µs a row")
    print(f"the same answer: {answer == same}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
