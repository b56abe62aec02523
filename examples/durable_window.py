"""A window that outlives its process: insert, stop, start again, and go on where it was.

python examples/durable_window.py            # three lives in a folder that is then removed
python examples/durable_window.py FOLDER     # one life; run it again, and it goes on
"""

import math
import sys
import tempfile

import windrow as wr


def live(folder: str, crash: bool = False) -> None:
    """Open the window, insert 9,000 requests more, and let go of it."""
    window = wr.Sliding(
        wr.at_most(wr.Sum("kilobytes"), 200_000) & wr.rows(100_000),
        wr.Several(wr.Max("kilobytes"), wr.Mean("kilobytes"), wr.Count()),
        store=wr.stores.Rocks(folder),
        name="requests",
    )
    start = window.restored_through
    print(f"{start:,} requests so far; the window holds {len(window):,} of them")
    for i in range(start, start + 9_000):
        answer = window.insert({"kilobytes": round(20 + 19 * math.sin(i / 900) + i % 7)})
    print(f"9,000 more: {answer}")
    window.close(flush=not crash)  # a crash loses what came after the last flush, and no more


def main() -> None:
    """One life in a folder that is given, three in one that is not."""
    if len(sys.argv) > 1:
        live(sys.argv[1])
        print(f"kept in {sys.argv[1]}; run me again")
        return
    with tempfile.TemporaryDirectory() as folder:
        live(folder)
        print("started again; this time it ends without a flush, as in a crash:")
        live(folder, crash=True)
        print("started again:")
        live(folder)


if __name__ == "__main__":
    main()
