"""Who issues the tokens of a fleet that Argo CD writes."""

import json
import os
import subprocess

from tests.cluster.argocd.test_plugin import WAVE
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import commit_sent, connect_all, secret_path
from tests.support import kfleet_program

ARGO_CD = "argocd-controller"


def sync(live_fleet: LiveFleet) -> None:
    """What Argo CD does with the answer of the plugin, wave by wave."""
    for cluster, context in live_fleet.contexts.items():
        answer = subprocess.run(
            [kfleet_program(), "argocd", "generate"],
            cwd=live_fleet.folder / "fleet",
            env=os.environ | {"ARGOCD_APP_SOURCE_PATH": "fleet", "ARGOCD_ENV_CLUSTER": cluster},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        objects = [json.loads(text) for text in answer.stdout.split("---\n") if text]
        for manifest in sorted(objects, key=lambda entry: int(entry["metadata"]["annotations"][WAVE])):
            live_fleet.sandbox.api(context).apply(manifest, manager=ARGO_CD)


def test_rotate_issues_the_tokens_of_a_fleet_that_argo_cd_writes(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet)
    sync(wide_live_fleet)
    assert wide_live_fleet.api("manager").find(secret_path(wide_live_fleet)) is None
    answer = wide_live_fleet.run("credentials rotate")
    assert answer.code == 0, answer
    connect_all(wide_live_fleet)
    queue = wide_live_fleet.queue(f"{wide_live_fleet.name}-q", "manager")
    assert {entry["manager"] for entry in queue["metadata"]["managedFields"]} == {ARGO_CD, "kueue"}
