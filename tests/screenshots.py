"""Pictures of the page for the documents: `make screenshots`."""

import sys
from pathlib import Path

from playwright.sync_api import Browser

from tests.cluster.web.browser import Tab, chromium
from tests.cluster.web.conftest import Scheme
from tests.cluster.web.served import Shown, served
from tests.cluster.web.test_views import PLAN

VIEWS = ("fleet", "queues", "jobs", "plan", "capacity")
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = Shown()
    source.plan = PLAN
    with served(source) as address, chromium() as browser:
        for scheme in SCHEMES:
            for view in VIEWS:
                picture(browser, address, view, scheme, folder)


def picture(browser: Browser, address: str, view: str, scheme: Scheme, folder: Path) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 760})
    tab = Tab(context.new_page(), address)
    tab.show(view).screenshot(path=folder / f"{view}-{scheme}.png")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
