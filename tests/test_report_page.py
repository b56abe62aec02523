"""Reports in a real browser: what is drawn, told, and never done."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.browser import Page, browser
from tests.reports import HOSTILE, batches, readings, specification
from windrow import report
from windrow.looks.axis import Axis
from windrow.report.words import number

CHART = '[data-features="0"] .chart'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def answers() -> Any:
    return specification()(readings())


@pytest.fixture(scope="module")
def file(answers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sections, a table and a stream, with names that want to be more than names."""
    path: Path = tmp_path_factory.mktemp("report") / "hostile <title> & name.html"
    spec = specification()
    about = {"Source": HOSTILE[0]}
    table = report.section(
        spec, answers, name=HOSTILE[1], about=about, seconds={"run": 1.5}, plan=HOSTILE[0]
    )
    stream = report.section(spec, answers.slice(0, 500), name="stream", batches=batches())
    report.write(path, table, stream, title=HOSTILE[0])
    return path


@pytest.fixture
def opened(page: Page, file: Path) -> Page:
    return page.open(file)


def known(answers: Any) -> dict[tuple[str, str, str], list[float]]:
    """What may be told: values by key, time and window."""
    axis = Axis.of(answers.schema.field("at").type)
    ticks = axis.ticks(answers["at"])[0].tolist()
    found: dict[tuple[str, str, str], list[float]] = {}
    for row, tick in zip(answers.to_pylist(), ticks, strict=True):
        for window in ("10m", "2h", "1d"):
            for stem in ("value_mean", "<i>peak</i>", "count"):
                told = (row["sensor"], axis.shown(tick)[:16], f"{stem}, {window}")
                found.setdefault(told, []).append(row[f"{stem}_{window}"])
    return found


def is_one_of(told: str, values: list[float]) -> bool:
    """Whether six digits are those of a value; where the next is a 5, both ways are right."""
    shown = float(told.replace(",", "").replace("−", "-"))
    return any(math.isclose(shown, v, rel_tol=5.01e-6) for v in values if v is not None)


def tip(page: Page) -> list[str]:
    """The value, which answer, which key, and when."""
    assert not page.run(f"return document.querySelector('{CHART} .tip').hidden")
    return page.texts(f"{CHART} .tip > *")


def test_hover_tells_what_the_table_holds(opened: Page, answers: Any) -> None:
    told, expected = set(), known(answers)
    for x in range(12, 95, 6):
        for y in (0.2, 0.8):
            opened.point(CHART, x / 100, y)
            value, what, key, when = tip(opened)
            assert is_one_of(value, expected[key, when[:16], what]), (value, what, key, when)
            assert when.endswith(("GMT+1", "CET"))
            told.add((what, when))
    assert len(told) > 15
    assert {what for what, _ in told} >= {"value_mean, 10m", "value_mean, 1d"}
    assert opened.complaints() == []


def test_nothing_is_asked_for_and_nothing_is_executed(opened: Page, file: Path) -> None:
    assert opened.run("return document.documentElement.dataset.ready") == "true"
    assert opened.run("return window.hacked") is None
    assert opened.requests() == [file.as_uri()]
    assert opened.complaints() == []
    assert opened.run("return document.title") == HOSTILE[0]
    assert opened.run("return document.images.length") == 0
    options = opened.texts('[data-features="0"] [data-pick="key"] option')
    assert [re.sub(r" \([\d,]+ rows\)$", "", text) for text in options] == list(HOSTILE)
    opened.run(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3';"
        "document.body.append(s)"
    )
    assert opened.run("return window.hacked") is None  # by the page's own policy
    assert any("Content Security Policy" in text for text in opened.complaints())


def choose(page: Page, what: str, place: int) -> None:
    page.run(
        "const s = document.querySelector(`[data-features='0'] [data-pick='${arguments[0]}']`);"
        "s.selectedIndex = arguments[1]; s.dispatchEvent(new Event('change', {bubbles: true}))",
        what,
        place,
    )


def test_pickers_change_what_is_drawn(opened: Page, answers: Any) -> None:
    expected = known(answers)
    paths = set()
    for key in range(len(HOSTILE)):
        choose(opened, "key", key)
        opened.point(CHART, 0.5, 0.5)
        value, what, told, when = tip(opened)
        assert told == HOSTILE[key]
        assert is_one_of(value, expected[told, when[:16], what])
        paths.add(opened.run(f"return document.querySelector('{CHART} .line').getAttribute('d')"))
    assert len(paths) == len(HOSTILE)
    choose(opened, "stem", 1)
    opened.point(CHART, 0.5, 0.5)
    assert tip(opened)[1].startswith("<i>peak</i>, ")
    assert opened.run(f"return document.querySelectorAll('{CHART} .line').length") == 3
    opened.run("document.querySelector('[data-window=\"0\"]').click()")
    assert opened.run(f"return document.querySelectorAll('{CHART} .line').length") == 2
    assert opened.texts('[data-features="0"] [data-ends] th') == ["2h", "1d"]
    opened.run(
        "document.querySelectorAll('[data-features=\"0\"] [data-window]')"
        ".forEach((b) => b.checked && b.click())"
    )
    assert opened.texts(f"{CHART} svg text") == ["No numbers to draw for this choice"]


def test_keyboard_goes_from_point_to_point(opened: Page, answers: Any) -> None:
    opened.run(f"document.querySelector('{CHART}').focus()")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "ArrowLeft", "Home", "PageDown"):
        opened.press(key)
        seen.append(tip(opened))
    first = answers.filter(opened_key(answers)).slice(0, 1).to_pylist()[0]
    assert seen[0][0] == number(first["value_mean_10m"])
    assert seen[0] != seen[1]
    assert (seen[1][1], seen[2][1]) == ("value_mean, 10m", "value_mean, 2h")
    assert seen[5][3] == seen[0][3]
    assert ", ".join(seen[-1]) == opened.texts('[data-features="0"] output')[0]
    opened.press("Escape")
    assert opened.run(f"return document.querySelector('{CHART} .tip').hidden")
    outline = opened.run(f"return getComputedStyle(document.querySelector('{CHART}')).outlineStyle")
    assert outline != "none"


def opened_key(answers: Any) -> Any:
    import pyarrow.compute as pc

    return pc.equal(answers["sensor"], HOSTILE[0])


def test_batches_are_told(opened: Page) -> None:
    box = '[data-small="1-1"]'
    assert len(opened.texts('[data-small^="1-"]')) == 9
    opened.point(box, 0.6, 0.5)
    value, which = opened.texts(f"{box} .tip > *")
    place = int(which.removeprefix("batch "))
    seconds = batches()[place]["seconds"]
    assert value == f"{number(seconds)} s"
    assert "Late rows" in opened.texts("#quality-1 h4")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_width_and_print(page: Page, file: Path, scheme: str) -> None:
    page.open(file, 360, scheme)
    assert page.run(f"return matchMedia('(prefers-color-scheme: {scheme})').matches")
    wide, window = page.widths()
    assert wide <= window == 360
    for width in (360, 1100):
        page.open(file, width, scheme)
        page.point(CHART, 0.5, 0.5)
        worst = page.contrasts()
        assert len(worst) > 200
        assert worst[0][0] >= 4.5, worst[:5]
    page.command("Emulation.setEmulatedMedia", media="print")
    assert page.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    page.command("Emulation.setEmulatedMedia", media="")


def test_structure_can_be_read_aloud(opened: Page) -> None:
    found = opened.run("""
    const all = (s) => [...document.querySelectorAll(s)];
    const named = (e) => document.getElementById(e.getAttribute('aria-labelledby'));
    return {
      lang: document.documentElement.lang,
      landmarks: ['header', 'nav', 'main', 'footer'].map((n) => all(n).length),
      unlabelled: all('select, input').filter((e) => !e.labels.length).length,
      charts: all('.chart').filter((e) => e.tabIndex !== 0 || !e.getAttribute('aria-label')).length,
      images: all('svg[role=img]').filter((e) => !e.getAttribute('aria-label')).length,
      sections: all('section').filter((e) => !named(e)).length,
      ids: all('[id]').map((e) => e.id),
      links: all('a[href^="#"]').filter((e) => !document.getElementById(e.hash.slice(1))).length,
      headings: all('h1, h2, h3, h4').map((e) => Number(e.tagName[1])),
      heads: all('th').filter((e) => !e.scope).length,
    }""")
    assert found["lang"] == "en"
    assert found["landmarks"] == [1, 1, 1, 1]
    assert len(found["ids"]) == len(set(found["ids"]))
    for name in ("unlabelled", "charts", "images", "sections", "links", "heads"):
        assert found[name] == 0, name
    levels = found["headings"]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_large_numbers_have_room(page: Page, tmp_path: Path) -> None:
    """An outlier of 1e15 once took a third of a phone's chart, and cells broke inside numbers."""
    rows = readings(500, keys=("a",))
    value = rows["value"].to_numpy(zero_copy_only=False).copy()
    value[:20], value[::50] = 20.0, 123_456_789_012_345.0
    rows = rows.set_column(2, "value", pa.array(value))
    spec = specification()
    report.write(tmp_path / "large.html", report.section(spec, spec(rows)))
    for width in (360, 1100):
        page.open(tmp_path / "large.html", width)
        assert any("e13" in label or "e14" in label for label in page.texts(f"{CHART} text"))
        clipped = page.run(
            "return [...document.querySelectorAll('.wide')]"
            ".filter((e) => e.scrollWidth > e.clientWidth + 1).length"
        )
        assert clipped == 0
        left = page.run(
            "const all = [...document.querySelectorAll(arguments[0] + ' .grid')];"
            "return all[0].x1.baseVal.value",
            CHART,
        )
        assert left < 80
