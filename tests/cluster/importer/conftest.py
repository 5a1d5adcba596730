"""One sandbox for all tests of this package."""

from collections.abc import Iterator

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.support import start_fleet


@pytest.fixture(scope="package")
def clusters(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """Clusters of this package's own: doctor would also report what other tests have there."""
    sandbox = start_fleet("firstday")
    yield sandbox
    sandbox.discard()
