"""A headless Chromium for tests: pages opened from files, pointed at, typed to, and measured."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
_CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgb(text) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
  const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255];
}
function light(c) {
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = c.map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let e = element; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c[3] > 0.99) return c;
  }
  return [255, 255, 255, 1];
}
const out = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) continue;
  if (!element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const colour = rgb(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const both = [colour, behind(element)].map((c) => light(c.slice(0, 3)));
  const [a, b] = both.sort((x, y) => y - x);
  out.push([(a + 0.05) / (b + 0.05), element.tagName + ' ' + element.textContent.slice(0, 30)]);
}
return out.sort((x, y) => x[0] - y[0]);
"""


class Page:
    """What is open in the browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def run(self, script: str, *arguments: Any) -> Any:
        """JavaScript in the page; what it returns."""
        return self.driver.execute_script(script, *arguments)

    def command(self, name: str, **options: Any) -> Any:
        """A command of the browser's own protocol."""
        return self.driver.execute_cdp_cmd(name, options)

    def open(self, path: Path, width: int = 1100, scheme: str = "light") -> "Page":
        """A file, in a window of this width."""
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        return self

    def complaints(self) -> list[str]:
        """What the console has to say."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Everything that was asked for since the page was opened."""
        told = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in told
            if event["method"] == "Network.requestWillBeSent"
        ]

    def widths(self) -> tuple[int, int]:
        """How wide the page is, and how wide the window."""
        found = self.run("return [document.documentElement.scrollWidth, window.innerWidth]")
        return found[0], found[1]

    def contrasts(self) -> list[tuple[float, str]]:
        """Every text that is shown: its contrast with what is behind it, the least first."""
        return [(ratio, what) for ratio, what in self.run(_CONTRAST)]

    def point(self, selector: str, x: float, y: float) -> None:
        """Move the mouse to a place in an element, given as shares of its size."""
        left, top, wide, high = self.run(
            "const e = document.querySelector(arguments[0]);"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            selector,
        )
        self.command(
            "Input.dispatchMouseEvent", type="mouseMoved", x=left + x * wide, y=top + y * high
        )

    def press(self, *keys: str) -> None:
        """Type keys by their names."""
        for key in keys:
            code = _CODES[key]
            for kind in ("keyDown", "keyUp"):
                self.command(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=code,
                )

    def texts(self, selector: str) -> list[str]:
        """The texts of elements."""
        found = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )
        return list(found)


_CODES = {
    "Tab": 9,
    "Escape": 27,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


@contextmanager
def browser() -> Iterator[Page]:
    """Start it, with nothing that anybody left behind, and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next((path for path in map(shutil.which, names) if path), None)
    program = shutil.which("chromedriver")
    assert binary, "Chromium is missing: make browser"
    assert program, "chromedriver is missing: make browser"
    options = Options()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(program))
        try:
            yield Page(driver)
        finally:
            driver.quit()
