"""A small fleet with the shipped rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.choices import Role
from tests.cluster.deploy.worlds import AccountWorld, give_account, take_account
from tests.documents import flavor, sent_queue, tenant


@pytest.fixture
def world(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[AccountWorld]:
    """A queue that one worker serves, not yet applied."""
    names = {f"{unique}-manager": "manager", f"{unique}-worker1": "worker1"}
    for context, role in (("manager", Role.MANAGER), ("worker1", Role.WORKER)):
        give_account(fleet, context, role)
    made = AccountWorld(fleet, tmp_path / unique, unique, names)
    wanted = ["--context", "worker1", "--manager-context", "manager", "--kubeconfig", str(fleet.state.kubeconfig)]
    assert cli.execute(["bootstrap", "worker", f"{unique}-worker1", "--apply", *wanted]) == 0
    made.log_in(f"{unique}-manager")
    made.commit(flavor(f"{unique}-cpu"), sent_queue(f"{unique}-q", f"{unique}-cpu"), tenant(unique, f"{unique}-q"))
    yield made
    made.clean()
    for context, role in (("manager", Role.MANAGER), ("worker1", Role.WORKER)):
        take_account(fleet, context, role)
