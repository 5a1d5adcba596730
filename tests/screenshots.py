"""Pictures of the page for the documents: `make screenshots`."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser

from tests.cluster.web.browser import Tab, chromium
from tests.cluster.web.conftest import Scheme
from tests.cluster.web.served import Shown, served
from tests.unit.web.views import as_of, example_history, example_plan, example_view

# By the name of the picture. A worker shows more of quotas than the manager, which is at the top without a choice.
VIEWS = {name: name for name in ("fleet", "jobs", "plan", "capacity")} | {"queues": "queues?cluster=east"}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    source = Shown(as_of(example_view(), now))
    source.plan = {**example_plan(), "madeAt": now.isoformat()}
    with served(source, example_history(now)) as address, chromium() as browser:
        for scheme in SCHEMES:
            for name, view in VIEWS.items():
                picture(browser, address, view, scheme, folder / f"{name}-{scheme}.png")


def picture(browser: Browser, address: str, view: str, scheme: Scheme, file: Path) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 760})
    tab = Tab(context.new_page(), address)
    tab.show(view).screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
