"""Every fenced block of README.md and docs/ is run, or its words are checked."""

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.blocks import PAGES, ROOT, Block, blocks, fences, page_folder, run_page
from tests.pipelines import payments, prepared, windrow, write_csv
from tests.spark_session import spark  # noqa: F401
from tests.test_pipeline_docs import PAGES as PIPELINE_PAGES
from windrow.cli.main import parser
from windrow.rules.texts import read_rules

LANGUAGES = {"python", "console", "sh", "toml", "text"}
ELSEWHERE = {"docs/serving.md": "tests/test_kafka.py, which has a broker"}
"""Pages whose programs another test runs."""
BLOCKS = [block for page in PAGES for block in blocks(page)]
PROGRAMS = sorted({block.page for block in BLOCKS if block.is_program} - set(ELSEWHERE))


def of(*languages: str) -> list[Any]:
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.language in languages]


def test_every_block_is_of_a_kind_that_is_run() -> None:
    for page in PAGES:
        found = fences(page)
        assert found == 2 * len(list(blocks(page))), f"{page.name}: a fence is not closed"
    unknown = [f"{b} is {b.language!r}" for b in BLOCKS if b.language not in LANGUAGES]
    assert not unknown, unknown
    skipped = [str(block) for block in BLOCKS if "+SKIP" in block.text]
    assert not skipped, f"these say that they are run, and are not: {skipped}"
    hidden = r"^(>>> |\$ |(import|from|def|class|with) \w|(make|pip|windrow|python) \w)"
    code = [str(b) for b in BLOCKS if b.language == "text" and re.search(hidden, b.text, re.M)]
    assert not code, f"text blocks hold pictures and data, not code: {code}"


def test_commands_are_run_on_their_pages() -> None:
    """What a console block prints is compared by the test of pipeline pages."""
    named = {page.relative_to(ROOT).as_posix() for page in PIPELINE_PAGES}
    assert {b.page for b in BLOCKS if b.language == "console"} <= named
    assert {b.page for b in BLOCKS if b.file} <= named | set(PROGRAMS)


@pytest.mark.parametrize("block", of("sh", "console"))
def test_the_words_of_commands(block: Block) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {f"bench-{name}" for name in _variable("BENCHES").split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for line in re.sub(r"\\\n", " ", block.text).splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue
        for part in line.removeprefix("$ ").split("&&"):
            _check_words(shlex.split(part, comments=True), targets, set(extras), f"{block}: {line}")


def _check_words(words: list[str], targets: set[str], extras: set[str], place: str) -> None:
    match words:
        case []:
            pass
        case ["make", *names]:
            assert {name for name in names if "=" not in name} <= targets, place
        case ["windrow", *arguments]:
            parser().parse_args(arguments)
        case ["pip", "install", package]:
            found = re.fullmatch(r"(?:windrow|\.)(?:\[([\w,]+)\])?", package)
            assert found, place
            assert set((found[1] or "").split(",")) - {""} <= extras, place
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None, place
        case ["python", file, *_]:
            assert (ROOT / file).is_file(), place
        case _:
            pytest.fail(f"{place}: nobody checks this; teach the test, or use console")


def _variable(name: str) -> str:
    found = re.search(rf"^{name} := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("block", of("toml"))
def test_toml_is_a_pipeline_a_part_of_one_or_rules(
    block: Block, tmp_path: Path, capsys: Any
) -> None:
    if "[[rule]]" in block.text:
        errors = [rule.error for rule in read_rules(block.text)]
        assert errors == [None] * block.text.count("[[rule]]")
    elif "[source]" in block.text:
        assert block.file is not None, "a pipeline has a name, so that the test of its page runs it"
    else:
        path = prepared(tmp_path)
        path.write_text(path.read_text() + block.text)
        code, _, said = windrow(capsys, "run", path, "--check")
        assert code == 0, said


@pytest.fixture(scope="module")
def folder(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:  # noqa: F811
    """What the pages' programs find: tables of payments and of labels, and rules."""
    from pyspark.sql import functions as F

    folder = tmp_path_factory.mktemp("pages")
    write_csv(folder / "payments.csv", payments(60))
    rows = spark.read.csv(str(folder / "payments.csv"), header=True, inferSchema=True)
    rows = rows.withColumns({"ts": "at", "user_id": "user", "event_id": "payment"})  # as pages say
    spark.sql(f"CREATE DATABASE pages LOCATION '{folder / 'database'}'")
    for name in ("payments", "payments_archive"):
        rows.coalesce(1).write.parquet(str(folder / name))
        spark.sql(f"CREATE TABLE pages.{name} USING parquet LOCATION '{folder / name}'")
    labels = rows.select("user", "user_id", F.col("user").alias("customer"))
    labels = labels.withColumn("asked_at", F.lit(datetime(2024, 3, 3, tzinfo=UTC)))
    labels.distinct().coalesce(1).write.parquet(str(folder / "labels"))
    spark.sql(f"CREATE TABLE pages.labels USING parquet LOCATION '{folder / 'labels'}'")
    settings = dict(spark.conf.getAll)
    spark.sql("USE pages")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP DATABASE pages CASCADE")
    for name in filter(spark.conf.isModifiable, set(spark.conf.getAll) - set(settings)):
        spark.conf.unset(name)
    for name in filter(spark.conf.isModifiable, settings):
        spark.conf.set(name, settings[name])


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs(
    spark: Any,  # noqa: F811
    folder: Path,
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with page_folder(spark, tmp_path, monkeypatch) as names:
        assert run_page(ROOT / page, names)
