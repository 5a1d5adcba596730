"""Who issues the tokens of a fleet that Argo CD writes."""

import json
import os
import subprocess

from tests.cluster.argocd.test_plugin import WAVE
from tests.cluster.engine.worlds import World
from tests.cluster.multikueue.worlds import commit_sent, connect_all, secret_path
from tests.support import kfleet_program

ARGO_CD = "argocd-controller"


def sync(world: World) -> None:
    """What Argo CD does with the answer of the plugin, wave by wave."""
    for cluster, context in world.contexts.items():
        answer = subprocess.run(
            [kfleet_program(), "argocd", "generate"],
            cwd=world.folder / "fleet",
            env=os.environ | {"ARGOCD_APP_SOURCE_PATH": "fleet", "ARGOCD_ENV_CLUSTER": cluster},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        objects = [json.loads(text) for text in answer.stdout.split("---\n") if text]
        for manifest in sorted(objects, key=lambda entry: int(entry["metadata"]["annotations"][WAVE])):
            world.sandbox.api(context).apply(manifest, manager=ARGO_CD)


def test_rotate_issues_the_tokens_of_a_fleet_that_argo_cd_writes(wide_world: World) -> None:
    commit_sent(wide_world)
    sync(wide_world)
    assert wide_world.api("manager").find(secret_path(wide_world)) is None
    answer = wide_world.run("credentials rotate")
    assert answer.code == 0, answer
    connect_all(wide_world)
    queue = wide_world.queue(f"{wide_world.name}-q", "manager")
    assert {entry["manager"] for entry in queue["metadata"]["managedFields"]} == {ARGO_CD, "kueue"}
