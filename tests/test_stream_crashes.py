"""Streams elsewhere: through Connect, and killed altogether."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.spark_session import SLOW
from tests.stream_elsewhere import MANY, OTHER_RULES, RULES, SOME
from tests.stream_session import Pipe
from tests.test_stream_rules import put

ROOT = Path(__file__).parent.parent
PATIENCE = 180.0


def command(what: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.stream_elsewhere", what, str(folder)]


@pytest.mark.skipif(not SLOW, reason="tables go through Connect in CI, streams in the long run")
def test_the_same_answers_through_connect(tmp_path: Path) -> None:
    done = subprocess.run(
        command("connect", tmp_path),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("same: ")]
    assert said == ["same: connect"], done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]


def written(folder: Path) -> int:
    """The number of the last batch that is in a log of the checkpoint."""
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


class Query:
    """The program in a process group of its own, which does not outlive the block."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.log = folder / "said"
        self.arguments = [*command("killed", folder / "stream"), *names]
        self.checkpoints = [folder / "stream" / f"checkpoint_{name}" for name in names]

    def __enter__(self) -> "Query":
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                self.arguments,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                start_new_session=True,
            )
        self.until = time.monotonic() + PATIENCE
        return self

    def __exit__(self, *_: object) -> None:
        """Python and Spark's JVM are killed at once; workers go with them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text()[-3000:]

    def batches(self, log: str) -> list[int]:
        """Of each query: the last batch in a log of its checkpoint."""
        return [written(checkpoint / log) for checkpoint in self.checkpoints]

    @property
    def unfinished(self) -> int:
        """How many queries are in the middle of a batch."""
        pairs = zip(self.batches("commits"), self.batches("offsets"), strict=True)
        return sum(done < begun for done, begun in pairs)

    def wait_for(self, log: str, batches: list[int]) -> None:
        """Until every query has a batch in a log of its checkpoint."""
        self.wait_until(
            lambda: all(n >= m for n, m in zip(self.batches(log), batches, strict=True))
        )

    def wait_until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < self.until, self.said()
            time.sleep(0.02)


def planned(checkpoint: Path) -> tuple[int, int]:
    """How many files the batches of a query have taken, and the last one's watermark."""
    log = checkpoint / "offsets"
    lines = (log / str(written(log))).read_text().splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    milliseconds = next(part["batchWatermarkMs"] for part in found if "batchWatermarkMs" in part)
    return next(part["logOffset"] for part in found if "logOffset" in part) + 1, milliseconds


@pytest.mark.parametrize(
    ("names", "kills"),
    [
        pytest.param(["rows"], 20 if SLOW else 1, id="rows"),
        pytest.param(
            ["changes", "ticks", "rules"],
            8,
            id="keys",
            marks=pytest.mark.skipif(not SLOW, reason="three queries, eight kills: minutes"),
        ),
    ],
)
def test_nothing_is_lost_or_twice_when_the_query_is_killed(
    names: list[str], kills: int, tmp_path: Path
) -> None:
    """Rules are others after the first kill; the batch that it hit is done with the old ones."""
    generator = np.random.default_rng()
    pipe = Pipe(None, tmp_path / "stream", "end")
    put(tmp_path / "stream" / "rules", "first.toml", RULES, 10**9)
    waiting = list(MANY if names == ["rows"] else SOME)
    share = len(waiting) // (kills + 1)
    unfinished = 0
    for number in range(kills):
        pipe.feed(waiting.pop(0))
        with Query(tmp_path, names) as query:
            # a batch of its own
            query.wait_for("offsets", [begun + 1 for begun in query.batches("offsets")])
            query.wait_for("commits", [0] * len(names))
            for _ in range(int(generator.integers(1, share + 1))):
                if len(waiting) > 1:
                    pipe.feed(waiting.pop(0))
                time.sleep(generator.random() * 1.5)
            if number == kills - 1 and not unfinished:  # one of them has to hit a batch
                pipe.feed(waiting.pop(0))
                query.wait_until(lambda query=query: query.unfinished > 0)  # type: ignore[misc]
            assert query.process.poll() is None, query.said()
        unfinished += query.unfinished
        if number == 0 and "rules" in names:
            files, frontier = planned(query.checkpoints[names.index("rules")])
            text = json.dumps({"files": files, "frontier": 1000 * frontier})
            (tmp_path / "stream" / "reload.json").write_text(text)
            put(tmp_path / "stream" / "rules", "second.toml", OTHER_RULES, 10**9 + 5)
    assert unfinished, "no kill hit a batch"
    pipe.feed(*waiting, end=True)
    with Query(tmp_path, names) as query:
        query.process.wait(PATIENCE + 20 * len(waiting))
    assert [line for line in query.said().splitlines() if line.startswith("same: ")] == [
        f"same: {name}" for name in names
    ], query.said()
    assert query.process.returncode == 0, query.said()
