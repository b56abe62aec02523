"""A window that outlives its process: insert, stop, start again, and go on where it was.

    python examples/durable_window.py [folder]

Run it several times: each run goes on from the one before.
"""

import math
import sys
import tempfile

import windrow as wr

folder = sys.argv[1] if len(sys.argv) > 1 else f"{tempfile.gettempdir()}/windrow-example"
with wr.Sliding(
    wr.at_most(wr.Sum("kilobytes"), 500_000) & wr.rows(100_000),
    wr.Several(wr.Max("kilobytes"), wr.Mean("kilobytes"), wr.Count()),
    store=wr.stores.Rocks(folder),
    name="requests",
) as window:
    start = window.restored_through
    print(f"{start:,} requests so far; the window holds {len(window):,} of them")
    for i in range(start, start + 20_000):
        answer = window.insert({"kilobytes": round(20 + 19 * math.sin(i / 900) + i % 7)})
    print(f"20,000 more: {answer}")
print(f"kept in {folder}; run me again")
