"""Clicks as they come, late and in disorder: every visit so far, in one process, through a crash.

    python examples/visits_as_they_come.py

A morning of clicks of two hundred visitors is made up. Each click is answered with its visit so far
(a session: no pause of more than fifteen minutes) and the visitor's last hour. Halfway the process
"dies": what was not flushed is lost, and the clicks behind it come again, as a queue sends them.
"""

import tempfile
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

import windrow as wr

NOON = datetime(2024, 5, 1, 12)
BATCH = 500

features = wr.Rolling(
    key="visitor",
    time="at",
    windows={"visit": wr.session("15m"), "hour": "1h"},
    aggregates=[
        wr.Count().alias("clicks"),
        wr.Sum("spent").alias("spent"),
        wr.Min("at").over("visit").alias("began"),
    ],
    lateness="2m",
)


def clicks() -> pa.Table:
    """Eight thousand, in the order in which they arrive: up to two minutes late, some even more."""
    generator = np.random.default_rng(5)
    visitor = np.repeat(np.arange(200), 40)
    pauses = np.where(
        generator.random(len(visitor)) < 0.06,
        generator.uniform(20, 60, len(visitor)),
        generator.exponential(1.5, len(visitor)),
    )
    minutes = (
        pauses.reshape(200, 40).cumsum(axis=1).ravel() + generator.uniform(0, 90, 200)[visitor]
    )
    late = np.where(
        generator.random(len(visitor)) < 0.002, 30, generator.uniform(0, 2, len(visitor))
    )
    order = np.argsort(minutes + late, kind="stable")
    at = [NOON + timedelta(minutes=float(m)) for m in minutes[order].round(2)]
    bought = generator.random(len(visitor)) < 0.05
    spent = np.where(bought, generator.integers(5, 120, len(visitor)), 0)
    return pa.table({"visitor": visitor[order], "at": at, "spent": spent[order].astype(float)})


def main() -> None:
    """Feed the clicks, die, go on, and compare with the table of all of them."""
    came = clicks()
    folder = tempfile.mkdtemp(prefix="windrow-visits-")
    answered: list[pa.Table] = []
    late: list[pa.Table] = []
    for life in (1, 2):
        stream = features.stream(store=wr.stores.Rocks(folder), name="visits")
        print(f"life {life}: goes on behind click {stream.restored_through:,}")
        batches = range(stream.restored_through, came.num_rows, BATCH)
        for written, first in enumerate(batches):
            answers = stream.push(came.slice(first, BATCH))
            if life == 1 and first >= came.num_rows // 2:
                print(f"  click {first + BATCH:,}: dies, before its answers are written")
                break
            answered.append(answers)  # write what came out,
            late += [] if stream.late is None else [stream.late]
            stream.flush()  # then the state, then tell the queue
            if written % 4 == 0:
                print(
                    f"  click {first + BATCH:>5,}: all before {stream.frontier:%H:%M:%S} answered, "
                    f"{stream.waiting_rows:,} wait, {stream.late_rows} were late"
                )
        else:
            answered.append(stream.finish())
        stream.close()
    told = pa.concat_tables(answered)
    visits = told.group_by(["visitor", "began_visit"]).aggregate(
        [("clicks_visit", "max"), ("spent_visit", "max"), ("at", "max")]
    )
    print(f"\n{told.num_rows:,} clicks in {visits.num_rows:,} visits; those that spent most:")
    for visit in visits.sort_by([("spent_visit_max", "descending")]).slice(0, 5).to_pylist():
        lasted = visit["at_max"] - visit["began_visit"]
        print(
            f"  visitor {visit['visitor']:>3}  {visit['began_visit']:%H:%M}  "
            f"{lasted.total_seconds() / 60:>4.0f} min  {visit['clicks_visit_max']:>3} clicks  "
            f"{visit['spent_visit_max']:>6.2f}"
        )
    gone = sum(part.num_rows for part in late)
    in_time = came.filter(~mask_of(came, late)) if late else came
    by = [(name, "ascending") for name in ("visitor", "at", "spent")]
    same = features(in_time).sort_by(by).equals(told.sort_by(by))
    print(f"\n{gone} late clicks left out; the table of the others has the same answers: {same}")


def mask_of(came: pa.Table, late: list[pa.Table]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which clicks were late."""
    known = {(row["visitor"], row["at"]) for part in late for row in part.to_pylist()}
    pairs = zip(came["visitor"].to_pylist(), came["at"].to_pylist(), strict=True)
    return np.array([pair in known for pair in pairs])


if __name__ == "__main__":
    main()
