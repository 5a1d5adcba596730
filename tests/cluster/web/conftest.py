"""One Chromium for the folder, and a tab per test."""

from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.cluster.web.browser import Tab, chromium
from tests.cluster.web.served import Shown, served

OpenTab = Callable[..., Tab]
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="package")
def browser(loopback: None) -> Iterator[Browser]:  # noqa: ARG001
    with chromium() as running:
        yield running


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[OpenTab]:
    """A tab in a context of its own."""
    opened: list[Tab] = []

    def make(base: str, width: int = 1280, height: int = 900, scheme: Scheme = "light") -> Tab:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        opened.append(Tab(context.new_page(), base))
        return opened[-1]

    yield make
    for tab in opened:
        tab.page.context.close()


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
def address(shown: Shown, loopback: None) -> Iterator[str]:  # noqa: ARG001
    with served(shown) as base:
        yield base
