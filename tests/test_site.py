"""The site: built with warnings as errors, complete, and whole without a network."""

import html
import importlib
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from tools.site.reference import PAGES

import windrow as wr
from tests.blocks import ROOT

PACKAGES = (
    "shared",
    "filters",
    "approx",
    "stores",
    "windows",
    "rules",
    "testing",
    "pipeline",
    "report",
)


def test_every_public_name_is_in_the_reference() -> None:
    told = {f"{page.module}.{name}" for page in PAGES for name in page.names}
    modules = {page.module for page in PAGES}
    for name in wr.__all__:
        elsewhere = {f"windrow.{module}.{name}" for module in ("rules", "shared")}
        known = told | modules | {"windrow.__version__"}
        assert f"windrow.{name}" in known or elsewhere & told, name
    for package in PACKAGES:
        module = importlib.import_module(f"windrow.{package}")
        assert {f"windrow.{package}.{name}" for name in module.__all__} <= told, package
    for page in PAGES:
        for name in page.names:
            thing = getattr(importlib.import_module(page.module), name)
            assert not callable(thing) or (thing.__doc__ or "").strip(), f"{page.module}.{name}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "tools.site", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_links_lead_somewhere(site: Path) -> None:
    texts = {path: path.read_text() for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for target in re.findall(r'<a [^>]*?href="([^"]+)"', text):
            address, _, anchor = html.unescape(unquote(target)).partition("#")
            if "://" in address or address.startswith("mailto:"):
                continue
            place = (path.parent / address).resolve() if address else path
            known = place.is_file() and (not anchor or anchor in anchors.get(place, {anchor}))
            if not known and not (anchor and path.name in ("genindex.html", "search.html")):
                broken.append(f"{path.relative_to(site)} → {target}")
    assert not broken, broken[:20]
    assert len(texts) > 100


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text()
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//[^\s\"'>]+", text)
        loaded += re.findall(
            r"<link(?![^>]*rel=\"?(?:index|search|next|prev))[^>]+href=\"https?://[^\"]+", text
        )
        loaded += re.findall(r"@import[^;]+https?://[^;]+|url\([\"']?https?://[^)]+", text)
        assert not loaded, (path, loaded)
