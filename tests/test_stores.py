"""Windows in stores: the same answers, also after crashes; nothing half-written, nothing left."""

import copy
import functools
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.redis_server import RedisServer

import windrow as wr
from tests import store_writer
from tests.effort import examples
from tests.test_amta import small_chunks
from windrow.errors import BadBytes, BadSpecification, Refused, StoreConflict, StoreUnavailable

KILLS = 50 if os.environ.get("WINDROW_TESTS") == "slow" else 5


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(params=["Memory", "Rocks", "Redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[wr.stores.Store]:
    if request.param == "Memory":
        made: wr.stores.Store = wr.stores.Memory()
    elif request.param == "Rocks":
        made = wr.stores.Rocks(tmp_path / "rocks")
    else:
        made = wr.stores.Redis(request.getfixturevalue("server").url)
        made.delete_many(list(made.keys()))
    yield made
    made.close()


def test_the_protocol(store: wr.stores.Store) -> None:
    odd = [b"a", b"a*", b"a[x]", b"a\\", b"\x00\xff", b"b"]
    assert store.get(b"a") is None
    store.put_many({key: key * 2 for key in odd})
    assert store.get_many([*odd, b"none"]) == [*(key * 2 for key in odd), None]
    assert sorted(store.keys(b"a")) == sorted(odd[:4])
    assert sorted(store.keys(b"a[")) == [b"a[x]"]
    assert sorted(store.keys()) == sorted(odd)
    store.write({b"b": b"new"}, [b"a", b"none"])
    assert store.get_many([b"a", b"b"]) == [None, b"new"]
    store.delete(b"b")
    store.delete_many(odd)
    assert list(store.keys()) == []
    store.write({b"h": b"1"}, expected=(b"h", None))
    store.write({b"h": b"2"}, expected=(b"h", b"1"))
    with pytest.raises(StoreConflict, match="another process"):
        store.write({b"h": b"3", b"x": b"y"}, expected=(b"h", b"1"))
    assert store.get_many([b"h", b"x"]) == [b"2", None]
    before = store.calls
    store.get_many(odd)
    assert store.calls == before + 1


# --- the same answers ----------------------------------------------------------------------------


def newer(total: Any, old: Any) -> bool:
    return old[1] is None or bool(total[1] - old[1] >= 30)


SPECS: dict[str, tuple[Any, ...]] = {
    "rows": (wr.rows(13), wr.Concat()),
    "rows, earlier": (wr.rows(9, ending=4), wr.Sum()),
    "time": (wr.time(12), wr.Max()),
    "time, earlier": (wr.time(9, ending=5, closed="both"), wr.Several(wr.Sum(), wr.Count())),
    "at most": (wr.at_most(wr.Sum(), 60), wr.Concat()),
    "useful": (wr.useful(wr.Max()) & wr.rows(20), wr.Mean()),
    "policy": (wr.policy(newer, over=[wr.Min(), wr.Sum()]) & wr.time(40), wr.First()),
}


def run_a_program(
    store: wr.stores.Store, name: str, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Insert, flush, close and crash at random: what is opened again goes on from a flush."""
    small_chunks(monkeypatch, 2)
    generator = random.Random(seed)
    window, aggregate = SPECS[name]
    timed = window.needs_time or generator.random() < 0.5
    lateness = generator.choice([None, 3]) if timed else None
    numbers = count()

    def opened() -> wr.Sliding:
        return wr.Sliding(window, aggregate, store=store, name="w", lateness=lateness)

    words = isinstance(aggregate, wr.Concat)
    if words:
        aggregate = wr.Concat("word")
        if name == "at most":
            window = wr.at_most(wr.Sum("n"), 60)
    sliding, flushed = opened(), 0
    oracle = wr.Sliding(window, aggregate, lateness=lateness)
    log: list[tuple[Any, int | None]] = []
    now = 0

    def insert(into: wr.Sliding, row: tuple[Any, int | None]) -> Any:
        return into.insert(row[0]) if row[1] is None else into.insert(row[0], at=row[1])

    for _ in range(steps):
        action = generator.random()
        if action < 0.9:
            now += generator.choice((0, 0, 1, 1, 2, 30 if generator.random() < 0.05 else 1))
            number = generator.choice((None, 0, 1, 5, 20, 70))
            value: Any = number
            if words:
                value = {"word": f"{next(numbers)} ", "n": number}
            early = generator.randrange(3) if lateness else 0
            log.append((value, max(0, now - early) if timed else None))
            assert insert(sliding, log[-1]) == insert(oracle, log[-1])
            assert len(sliding) == len(oracle)
            assert (sliding.oldest, sliding.youngest) == (oracle.oldest, oracle.youngest)
            continue
        if action < 0.94:
            sliding.flush()
            flushed = len(log)
        if action < 0.96:
            sliding.close()
            flushed = len(log)
        sliding = opened()  # where it was not closed: as after a crash
        assert flushed <= sliding.restored_through <= len(log)
        assert sliding.waiting + len(sliding) <= len(log)
        for row in log[sliding.restored_through :]:
            insert(sliding, row)
        assert sliding.query() == oracle.query()
        assert (len(sliding), sliding.waiting) == (len(oracle), oracle.waiting)
    sliding.window.check_invariants()
    sliding.delete()
    assert list(store.keys()) == []


@pytest.mark.parametrize("name", SPECS)
def test_random_programs(
    store: wr.stores.Store, name: str, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    remote = isinstance(store, wr.stores.Redis)
    for seed in range(2 if remote else 6):
        run_a_program(store, name, seed, 120 if remote else 400, monkeypatch)


@examples(20)
@given(st.integers(), st.sampled_from(sorted(SPECS)))
def test_random_programs_of_any_seed(seed: int, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run_a_program(wr.stores.Memory(), name, seed, 150, patch)


def test_large_windows_need_little_here_and_few_calls() -> None:
    store = wr.stores.Memory()
    sliding = wr.Sliding(wr.rows(20_000), wr.Max(), store=store, name="large")
    oracle = wr.Sliding(wr.rows(20_000), wr.Max())
    for i in range(50_000):
        assert sliding.insert(i * 7919 % 10_007) == oracle.insert(i * 7919 % 10_007)
    levels = sliding.window._levels  # type: ignore[attr-defined]
    assert max(len(chunks) for chunks in levels.chunks) <= 5
    assert store.calls < 50_000 / 100
    sliding.flush()
    inserted = store.calls
    for _ in range(19_000):
        sliding.window.evict()
    assert store.calls - inserted < 19_000 / 100


def test_bulk_eviction_deletes_in_the_background() -> None:
    store = wr.stores.Memory()
    sliding = wr.Sliding(wr.time(100_000), wr.Max(), store=store, name="bulk")
    for i in range(60_000):
        sliding.insert(i, at=i)
    sliding.flush()
    held, calls = len(store.data), store.calls
    sliding.insert(1, at=10_000_000)
    assert len(sliding) == 1
    assert store.calls - calls < 40  # O(log n)
    assert len(store.data) == held  # nothing is deleted before the next flush
    sizes: list[int] = []
    while len(store.data) > 3:
        sliding.insert(1, at=10_000_000)
        if len(sizes) % 2:
            sliding.close()  # what is left to delete is known after a reopening too
            sliding = wr.Sliding(wr.time(100_000), wr.Max(), store=store, name="bulk")
        else:
            sliding.flush()
        sizes.append(len(store.data))
    assert sizes[0] < held  # a few keys with each
    assert len(sizes) > 1
    assert len(sliding) == 1 + len(sizes)


# --- mistakes and damage --------------------------------------------------------------------------


def test_another_specification_is_refused(store: wr.stores.Store) -> None:
    with wr.Sliding(wr.rows(5), wr.Sum("x"), store=store, name="cpu") as sliding:
        sliding.insert({"x": 1})
    others: list[tuple[Any, Any]] = [
        (wr.rows(6), wr.Sum("x")),
        (wr.rows(5), wr.Sum("y")),
        (wr.rows(5), wr.Max("x")),
        (wr.rows(5), wr.Sum("x", nan="missing")),
        (wr.rows(5), wr.Several(wr.Sum("x"))),
        (wr.at_most(wr.Sum("x"), 5), wr.Sum("x")),
    ]
    for window, aggregate in others:
        with pytest.raises(
            BadSpecification, match=r"'cpu' in the store is another one(.|\n)*delete"
        ):
            wr.Sliding(window, aggregate, store=store, name="cpu")
    again = wr.Sliding(wr.rows(5), wr.Sum("x"), store=store, name="cpu")
    assert (again.restored_through, again.query()) == (1, 1)


def test_what_is_deleted_later_is_known_when_the_window_was_empty() -> None:
    store = wr.stores.Memory()
    emptied = wr.Sliding(wr.time(100), wr.Max(), store=store, name="e")
    for i in range(100_000):
        emptied.insert(i, at=i // 1000)
    emptied.advance(10_000)
    assert len(emptied) == 0
    emptied.close()
    for _ in range(20):
        again = wr.Sliding(wr.time(100), wr.Max(), store=store, name="e")
        again.advance(again._moving.now + 1)  # type: ignore[operator]
        again.close()
    assert len(store.data) == 1
    several = wr.Sliding(wr.rows(5), wr.Several(wr.Sum("x")), store=store, name="s")
    several.flush()
    with pytest.raises(BadSpecification, match="is another one"):
        wr.Sliding(wr.rows(5), wr.Several(wr.Sum("y")), store=store, name="s")


def test_a_policy_is_known_by_its_code_or_name() -> None:
    store = wr.stores.Memory()

    def window(limit: int, name: str | None = None) -> wr.Sliding:
        kept = wr.policy(lambda total, old: total - old > limit, over=wr.Sum(), name=name)
        return wr.Sliding(kept, wr.Max(), store=store, name=name or "p")

    window(3).flush()
    window(3)
    with pytest.raises(BadSpecification, match="is another one"):
        window(4)
    window(3, "named").flush()
    window(4, "named")

    def other(function: Any) -> wr.Sliding:
        kept = wr.policy(function, over=wr.Sum())
        return wr.Sliding(kept, wr.Max(), store=store, name="other")

    other(lambda t, o, k=3: t - o > k).flush()
    with pytest.raises(BadSpecification, match="is another one"):
        other(lambda t, o, k=4: t - o > k)

    class Rule:
        def leaves(self, total: int, old: int) -> bool:
            return total - old > 3

    for unknown in (Rule().leaves, functools.partial(Rule().leaves)):
        with pytest.raises(BadSpecification, match="Give it a name"):
            other(unknown)


def test_a_policy_from_another_version_of_python_is_opened_by_the_name_in_the_error() -> None:
    """Its code differs there, which another function with the same answers stands for here."""
    store = wr.stores.Memory()

    def opened(function: Any, name: str | None = None) -> wr.Sliding:
        kept = wr.policy(function, over=wr.Sum(), name=name)
        return wr.Sliding(kept, wr.Max(), store=store, name="w")

    with opened(lambda total, old: total - old > 3) as written:
        written.insert(4)
    with pytest.raises(BadSpecification, match="another version of Python") as caught:
        opened(lambda total, old: total > 3 + old)
    found = re.search("written as\n.* over ([^:]*): ", str(caught.value))
    assert found is not None
    assert opened(lambda total, old: total > 3 + old, found[1]).query() == 4


def test_mistakes() -> None:
    with pytest.raises(BadSpecification, match="needs a name="):
        wr.Sliding(wr.rows(5), wr.Sum(), store=wr.stores.Memory())
    with pytest.raises(BadSpecification, match="store= is a store"):
        wr.Sliding(wr.rows(5), wr.Sum(), name="x")
    with pytest.raises(Refused, match="Amta can"):
        wr.Sliding(wr.rows(5), wr.Sum(), "DabaLite", store=wr.stores.Memory(), name="x")
    memory = wr.Sliding(wr.rows(5), wr.Sum())
    for mistaken in (memory.flush, memory.delete):
        with pytest.raises(BadSpecification, match="store"):
            mistaken()
    memory.close()  # nothing to do
    closed = wr.Sliding(wr.rows(5), wr.Sum(), store=wr.stores.Memory(), name="x")
    closed.close()
    with pytest.raises(BadSpecification, match="was closed"):
        closed.insert(1)
    with pytest.raises(BadSpecification, match="was closed"):
        closed.drain()
    with pytest.raises(BadSpecification, match="not valid Unicode"):
        wr.Sliding(wr.rows(5), wr.Sum(), store=wr.stores.Memory(), name="\ud800")
    with pytest.raises(BadSpecification, match="redis://host"):
        wr.stores.Redis("127.0.0.1:6379")
    with pytest.raises(Refused, match="not bounded"):
        wr.Sliding(wr.rows(5), wr.Sum(), latency="worst_case", store=wr.stores.Memory(), name="x")


def test_names_do_not_meet(store: wr.stores.Store) -> None:
    names = ["a", "a/b", "a/", "ä %", "a*"]
    windows = [wr.Sliding(wr.rows(9), wr.Sum(), store=store, name=name) for name in names]
    for i, window in enumerate(windows):
        window.insert(i)
        window.flush()
    windows[0].delete()
    for i, name in enumerate(names[1:], 1):
        assert wr.Sliding(wr.rows(9), wr.Sum(), store=store, name=name).query() == i
    assert wr.Sliding(wr.rows(9), wr.Sum(), store=store, name="a").restored_through == 0


def test_one_process_at_a_time(tmp_path: Path, server: RedisServer) -> None:
    open_one = wr.stores.Rocks(tmp_path / "rocks")
    with pytest.raises(StoreUnavailable, match="One process at a time"):
        wr.stores.Rocks(tmp_path / "rocks")
    open_one.close()
    redis = wr.stores.Redis(server.url)
    first = wr.Sliding(wr.rows(5), wr.Sum(), store=redis, name="two")
    second = wr.Sliding(wr.rows(5), wr.Sum(), store=redis, name="two")
    first.insert(1)
    first.flush()
    second.insert(2)
    with pytest.raises(StoreConflict, match="only one may"):
        second.flush()


def test_two_writers_of_equally_many_rows(server: RedisServer) -> None:
    def opened() -> wr.Sliding:
        return wr.Sliding(wr.rows(5), wr.Sum(), store=wr.stores.Redis(server.url), name="equal")

    first, second = opened(), opened()
    for value in (1, 5):
        first.insert(value)
        second.insert(value + 1)
    first.flush()
    with pytest.raises(StoreConflict):
        second.flush()
    with pytest.raises(StoreConflict):
        second.close()  # and the connection is let go of
    assert opened().query() == 6


class Unsteady(wr.stores.Memory):
    """Fails when told to: before a write happens, after it, or while keys are listed."""

    fails = ""

    def write(self, *arguments: Any, **options: Any) -> None:
        when, self.fails = self.fails, "" if self.fails != "keys" else "keys"
        if when == "before":
            raise StoreUnavailable("gone")
        super().write(*arguments, **options)
        if when == "after":
            raise StoreUnavailable("the answer was lost")

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        if self.fails == "keys":
            self.fails = ""
            raise StoreUnavailable("gone")
        return super().keys(prefix)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_flush_whose_answer_was_lost(when: str) -> None:
    store = Unsteady()
    sliding = wr.Sliding(wr.rows(50), wr.Sum(), store=store, name="ack")
    for value in (1, 2, 3):
        sliding.insert(value)
        store.fails = when
        with pytest.raises(StoreUnavailable):
            sliding.flush()
    sliding.flush()
    sliding.close()
    assert wr.Sliding(wr.rows(50), wr.Sum(), store=store, name="ack").query() == 6


class Failing:
    """A database whose disk is bad."""

    def __getattr__(self, name: str) -> Any:
        def fails(*_: Any, **__: Any) -> Any:
            raise RuntimeError("Corruption: block checksum mismatch")

        return fails


def test_a_bad_disk_is_told_with_the_folder_and_lets_go(tmp_path: Path) -> None:
    store = wr.stores.Rocks(tmp_path)
    window = wr.Sliding(wr.rows(3), wr.Max(), store=store, name="w")
    window.insert(1)
    window.flush()
    window.insert(2)
    store._open = Failing()
    asked = [lambda: store.get(b"k"), lambda: store.put(b"k", b"v"), lambda: list(store.keys())]
    for ask in [*asked, window.flush]:
        with pytest.raises(StoreUnavailable, match=f"{tmp_path.name}' did not .*checksum mismatch"):
            ask()
    with pytest.raises(StoreUnavailable, match="did not close"):
        window.close(flush=False)
    window.close()  # it is closed
    with pytest.raises(BadSpecification, match="was closed"):
        window.insert(2)


def test_a_name_used_again_after_half_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Unsteady()

    def opened() -> wr.Sliding:
        return wr.Sliding(wr.rows(5000), wr.Sum(), store=store, name="again")

    sliding = opened()
    for _ in range(4000):
        sliding.insert(1)
    sliding.flush()
    store.fails = "keys"
    with pytest.raises(StoreUnavailable):
        sliding.delete()
    for done in range(0, 6000, 300):
        sliding = opened()
        assert sliding.restored_through == done
        for i in range(300):
            assert sliding.insert(2) == 2 * min(done + i + 1, 5000)
        sliding.flush()
    sliding.delete()
    assert not store.data


def test_what_cannot_be_written_is_refused_when_it_comes() -> None:
    class Whole(wr.Aggregate):
        identity = 0

        def combine(a: int, b: int) -> int:  # type: ignore[misc]  # noqa: N805
            return a + b

    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, 1)
        sliding = wr.Sliding(wr.rows(50), Whole(), store=wr.stores.Memory(), name="w")
        sliding.insert(2**62)
        for wrong in (1.5, 2**70):
            with pytest.raises(wr.errors.BadValue, match="declared int64"):
                sliding.insert(wrong)
        sliding.insert(2**62)
        with pytest.raises(wr.errors.BadValue, match="declared int64"):
            sliding.insert(5)  # what the first two rows add up to
        assert len(sliding) == 2
        texts = wr.Sliding(wr.rows(5), wr.Max(), store=wr.stores.Memory(), name="t")
        with pytest.raises(wr.errors.BadValue, match="not valid Unicode"):
            texts.insert("\ud800")
        texts.insert("fine")
        texts.close()


def test_copies_of_a_stored_window_are_refused() -> None:
    sliding = wr.Sliding(wr.rows(5), wr.Sum(), store=wr.stores.Memory(), name="x")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused, match="open it by its name"):
            copied(sliding)
    memory = wr.Sliding(wr.rows(5), wr.Sum())
    memory.insert(1)
    assert copy.deepcopy(memory).query() == 1


def test_a_time_that_was_refused_has_not_passed() -> None:
    class Away(wr.stores.Memory):
        away = False

        def get_many(self, keys: Any) -> Any:
            if self.away:
                raise StoreUnavailable("gone")
            return super().get_many(keys)

    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, 1)
        store = Away()
        sliding = wr.Sliding(wr.time(30), wr.Count(), store=store, name="x", lateness=5)
        for i in range(40):
            sliding.insert(1, at=i)
        sliding.flush()
        store.away = True
        with pytest.raises(StoreUnavailable):
            sliding.insert(1, at=60)
        store.away = False
        sliding.insert(1, at=41)
        sliding.insert(1, at=60)
        assert (len(sliding), sliding.waiting) == (29, 1)


def test_no_chunk_is_left_behind() -> None:
    store = wr.stores.Memory()
    sliding = wr.Sliding(wr.at_most(wr.Sum(), 600), wr.Count(), store=store, name="x")
    for _ in range(20):
        for _ in range(511):
            sliding.insert(1)
        sliding.insert(10**6)  # the window is empty, at the border of a chunk
        sliding.flush()
    for _ in range(5):
        sliding.insert(1)
        sliding.flush()
    assert len(store.data) <= 4


def test_chunks_of_another_window_are_not_taken() -> None:
    store = wr.stores.Memory()
    for name in ("a", "b"):
        with wr.Sliding(wr.rows(900), wr.Sum(), store=store, name=name) as sliding:
            for _ in range(1000):
                sliding.insert(1 if name == "a" else 1000)
    for key, value in list(store.data.items()):
        if key.startswith(b"windrow/b/c"):
            store.data[key.replace(b"/b/", b"/a/")] = value
    with pytest.raises(BadBytes, match="written by something else"):
        wr.Sliding(wr.rows(900), wr.Sum(), store=store, name="a")


@examples(60)
@given(st.data())
def test_damage_is_reported_with_the_key(data: Any) -> None:
    """Every byte of every value is under a checksum: no answer is ever made of damaged ones."""
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, 2)
        store = wr.stores.Memory()
        with wr.Sliding(wr.rows(50), wr.Sum(), store=store, name="d") as sliding:
            for i in range(70):
                sliding.insert(float(i))
        key = data.draw(st.sampled_from(sorted(store.data)))
        value = bytearray(store.data[key])
        how = data.draw(st.sampled_from(["flip", "cut", "gone", "swap"]))
        if how == "flip":
            value[data.draw(st.integers(0, len(value) - 1))] ^= data.draw(st.integers(1, 255))
        elif how == "cut":
            del value[data.draw(st.integers(0, len(value) - 1)) :]
        elif how == "swap":
            value = bytearray(store.data[data.draw(st.sampled_from(sorted(store.data)))])
        unchanged = how != "gone" and bytes(value) == store.data[key]
        if how == "gone":
            del store.data[key]
        else:
            store.data[key] = bytes(value)
        rows = list(map(float, range(70)))
        reported = ""
        try:
            again = wr.Sliding(wr.rows(50), wr.Sum(), store=store, name="d")
            if how == "gone" and key.endswith(b"/h"):
                assert again.restored_through == 0  # no head: a new window
                return
            for i in range(70, 200):
                rows.append(float(i))
                assert again.insert(float(i)) == sum(rows[-50:])
        except BadBytes as error:
            reported = str(error)
        assert not (unchanged and reported)
        assert not reported or repr(key)[2:-1] in reported


# --- crashes --------------------------------------------------------------------------------------


def killed_while_inserting(where: str, kind: str, seconds: float) -> tuple[int, int]:
    """Start the writer, kill it, and return what it had opened and what it had flushed last."""
    command = [sys.executable, "-m", "tests.store_writer", where, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        word, opened = child.stdout.readline().split()
        assert word == "opened"
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = child.stdout.read().splitlines()
    said = [line.split() for line in lines if line.startswith("flushed ")]
    return int(opened), max([int(opened), *(int(line[1]) for line in said if len(line) == 2)])


def check_reopened(where: str, kind: str, at_least: int) -> int:
    """What is opened equals a window in memory over the rows up to ``restored_through``."""
    sliding = store_writer.window(store_writer.store_at(where), kind)
    through = sliding.restored_through
    assert through >= at_least
    memory = (
        wr.Sliding(wr.rows(3000), wr.Sum(), "Recalc")
        if kind == "rows"
        else wr.Sliding(wr.time(700), wr.Max(), "Recalc", lateness=20)
    )
    oracle = memory
    lazy = oracle.query
    oracle.query = lambda: None  # type: ignore[method-assign]  # once, at the end
    for row in range(through):
        store_writer.insert(oracle, kind, row)
    assert sliding.query() == lazy()
    assert (len(sliding), sliding.waiting) == (len(oracle), oracle.waiting)
    assert (sliding.oldest, sliding.youngest) == (oracle.oldest, oracle.youngest)
    sliding.window.check_invariants()
    sliding.close()
    return through


@pytest.mark.parametrize("kind", ["rows", "time"])
def test_killed_processes_lose_nothing_that_was_flushed(kind: str, tmp_path: Path) -> None:
    generator = random.Random(time.time())
    where = str(tmp_path / "rocks")
    through = 0
    for _ in range((KILLS + 1) // 2):
        opened, flushed = killed_while_inserting(where, kind, generator.uniform(0.05, 0.6))
        assert opened == through
        through = check_reopened(where, kind, flushed)
    assert through > 0


def test_a_killed_redis_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    server = RedisServer(str(tmp_path))
    server.start()
    try:
        through = 0
        for _ in range(KILLS):
            timer = threading.Timer(random.uniform(0.3, 0.8), server.kill)
            store = wr.stores.Redis(server.url, retries=1)
            sliding = store_writer.window(store, "time")
            assert sliding.restored_through == through
            flushed, row = through, through
            timer.start()
            refused = ""
            while not refused:
                try:
                    store_writer.insert(sliding, "time", row)
                    row += 1
                    if row % 500 == 0:
                        sliding.flush()
                        flushed = row
                except StoreUnavailable as error:
                    refused = str(error)
            assert "did not answer, tried 2 times" in refused
            timer.join()
            if row - flushed < 500:  # refused rows were not taken: the same window goes on
                server.start()
                store_writer.insert(sliding, "time", row)
                row += 1
                sliding.flush()
                sliding.close()
                flushed = row
            else:
                server.start()
            through = check_reopened(server.url, "time", flushed)
        assert through > 0
    finally:
        server.kill()


def test_heads_and_cells_of_streams_have_the_same_frame(tmp_path: Path) -> None:
    """What is framed for a stream's state can lie in a store, and the other way round."""
    import pyarrow as pa

    from windrow.aggregates.schema import unframe
    from windrow.columns.cells import encoded

    store = wr.stores.Rocks(tmp_path / "rocks")
    cell = encoded(pa.table({"a": [1]}), {"n": 1})
    store.put(b"cell", cell)
    found = store.get(b"cell")
    assert found is not None
    unframe(b"C", b"windrow\0", found, "a cell")
    with wr.Sliding(wr.rows(5), wr.Sum(), store=store, name="s") as sliding:
        sliding.insert(1)
        sliding.flush()
        head = store.get(b"windrow/s/h")
    assert head is not None
    unframe(b"H", b"windrow\0", head, "a head")
