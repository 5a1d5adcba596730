"""A real Chromium, and the page in it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

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
HOW = f"no Chromium is on this machine: install the package `chromium`, or set {CHROMIUM} to the path of one"


def find_chromium() -> str:
    """The one of the machine; root has it installed by apt-get where there is none."""
    found = _known()
    if not found and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(command, check=False, capture_output=True)
        found = _known()
    assert found, HOW
    return found


def _known() -> str:
    paths = (os.environ.get(CHROMIUM), *(shutil.which(name) for name in NAMES))
    return next((path for path in paths if path), "")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
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
