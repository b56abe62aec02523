"""Build the site; every warning is an error. ``python -m tools.site [folder]``, offline."""

import os
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.site.reference import PAGES, page

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "build" / "site"
NO_PAGES = (".*", "__pycache__", "*.egg-info", "build", "dist", "checkpoints")
HOME = "docs/README.html"


def stage(folder: Path) -> None:
    """The repository as Sphinx sees it: a copy of what is there, and the reference's pages.

    Pages keep their places, so that relative links are the same in files and in the site.
    """
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NO_PAGES))
    (folder / "api").mkdir()
    for one in PAGES:
        (folder / "api" / f"{one.name}.rst").write_text(page(one))


def build(site: Path) -> int:
    work = site.parent / f"{site.name}-work"
    for old in (site, work):
        shutil.rmtree(old, ignore_errors=True)
    stage(work / "source")
    conf = str(Path(__file__).parent)
    options = ["-W", "--keep-going", "-n", "-q", "-c", conf, "-d", str(work / "read")]
    code = build_main([*options, str(work / "source"), str(site)])
    (site / "index.html").write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>windrow</title>"
        f'<meta http-equiv=refresh content="0; url={HOME}"><a href="{HOME}">windrow</a></html>\n'
    )
    shutil.rmtree(work)
    return code


if __name__ == "__main__":
    wanted = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE
    code = build(wanted)
    print(f"{os.path.relpath(wanted)}/index.html" if not code else "the site has mistakes")
    sys.exit(code)
