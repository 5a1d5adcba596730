"""A small fleet with the shipped rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests.builders import flavor, main_tenant, sent_queue
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet, give_account, take_account


@pytest.fixture
def live_fleet(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[AccountLiveFleet]:
    """A queue that one worker serves, not yet applied."""
    names = {f"{unique}-manager": "manager", f"{unique}-worker1": "worker1"}
    for context, role in (("manager", Role.MANAGER), ("worker1", Role.WORKER)):
        give_account(fleet, context, role)
    made = AccountLiveFleet(fleet, tmp_path / unique, unique, names)
    wanted = ["--context", "worker1", "--manager-context", "manager", "--kubeconfig", str(fleet.state.kubeconfig)]
    assert cli.execute(["bootstrap", "worker", f"{unique}-worker1", "--apply", *wanted]) == 0
    made.log_in(f"{unique}-manager")
    made.commit(flavor(f"{unique}-cpu"), sent_queue(f"{unique}-q", f"{unique}-cpu"), main_tenant(unique, f"{unique}-q"))
    yield made
    made.clean()
    for context, role in (("manager", Role.MANAGER), ("worker1", Role.WORKER)):
        take_account(fleet, context, role)
