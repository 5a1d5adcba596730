"""A real Chromium, and the page in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, Request, expect, sync_playwright

from tests.support import SLOWEST

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = "KFLEET_CHROMIUM"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW = (
    "no Chromium is on this machine, and neither apt-get nor Playwright could install one: install the package "
    f"`chromium`, run `playwright install chromium`, or set {CHROMIUM} to the path of one"
)
# apt-get of another process may hold its lock.
INSTALLS = (
    ("apt-get", "-o", "DPkg::Lock::Timeout=300", "update"),
    ("apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "chromium"),
)
DOWNLOAD = (sys.executable, "-m", "playwright", "install", "chromium")
PATIENCE = SLOWEST * 5_000  # milliseconds; only what fails waits that long


def find_chromium(playwright: Playwright) -> str:
    """The one of the machine; root has it installed by apt-get where there is none, others get that of Playwright."""
    if not _known(playwright) and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in INSTALLS:
            subprocess.run(command, check=False, capture_output=True)
    if not _known(playwright):
        subprocess.run(DOWNLOAD, check=False, capture_output=True)
    found = _known(playwright)
    assert found, HOW
    return found


def _known(playwright: Playwright) -> str:
    paths = (os.environ.get(CHROMIUM), *(shutil.which(name) for name in NAMES), playwright.chromium.executable_path)
    return next((path for path in paths if path and Path(path).exists()), "")


@contextmanager
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A tab, with everything that went wrong in it."""

    page: Page
    base: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(3 * PATIENCE)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("request", self._remember)

    def show(self, address: str) -> Page:
        """Open an address of the page, and wait until it shows data."""
        self.page.goto(f"{self.base}/{address}")
        self.page.wait_for_selector("main[aria-busy=false] h1")
        return self.page

    def violations(self) -> list[str]:
        """What axe-core finds, one line each."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return width

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.problems.append(text)

    def _remember(self, request: Request) -> None:
        self.requests.append(request.url)
