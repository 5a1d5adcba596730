"""Set-ups by hand on two real clusters, one with an older Kueue: the import adopts them and changes no field."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox
from tests.builders import namespace_object
from tests.cluster.definitions import held_definitions
from tests.cluster.importer.first_day import CONTEXTS, FirstDay, spec_changes
from tests.cluster.kueue.test_seeds import OTHER_KINDS
from tests.setups import BOTH, SETUPS, named
from tests.support import eventually, remove_namespace
from tests.unit.importer.test_seeds import FOLDERS, seed_files

NAMES = {"worker1": "east", "worker2": "west"}
HOW = {"apply": ("apply",), "create": ("create",), "applied": ("apply", "--server-side")}
SPACES = ("t-a", "t-b")
QUOTAS = {"nominalQuota", "borrowingLimit", "lendingLimit"}


@pytest.fixture
def day(clusters: Sandbox, tmp_path: Path) -> FirstDay:
    found = FirstDay(clusters, tmp_path)
    found.write_kubeconfig()
    return found


def send(day: FirstDay, cluster: str, manifests: Iterable[Manifest], *how: str) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    command = kubectl_command(day.sandbox.state, CONTEXTS[cluster], *how, "-f", "-")
    answer = subprocess.run(command, input=json.dumps(listed), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def is_served(api: ApiServer, manifest: Manifest) -> bool:
    """Whether this Kueue still knows the version; the kinds of KubeStellar come with the test."""
    is_of_kueue = manifest["apiVersion"].startswith("kueue.x-k8s.io/")
    known = {kind.kind for kind in api.kinds(manifest["apiVersion"])} if is_of_kueue else {"BindingPolicy"}
    return manifest["kind"] in known


def lives(day: FirstDay, cluster: str, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    api = day.api(cluster)
    yield from (api.get(api.path_of(manifest)) for manifest in manifests)


def contents(live: Manifest) -> tuple[object, ...]:
    """Everything but metadata and status. Kueue reads a quota of 4 and of "4" as the same; kfleet writes the second."""
    rest = {part: value for part, value in live.items() if part not in {"metadata", "status"}}
    return live["metadata"]["uid"], with_text_quotas(rest)


def with_text_quotas(value: object) -> object:
    if isinstance(value, dict):
        return {key: str(one) if key in QUOTAS else with_text_quotas(one) for key, one in value.items()}
    return [with_text_quotas(one) for one in value] if isinstance(value, list) else value


def all_contents(day: FirstDay, written: Mapping[str, Iterable[Manifest]]) -> dict[str, tuple[object, ...]]:
    return {
        f"{cluster}/{live['kind']}/{live['metadata']['name']}": contents(live)
        for cluster, some in written.items()
        for live in lives(day, cluster, some)
    }


def adopt(day: FirstDay, *contexts: str) -> None:
    """Import, plan, apply and plan again, and let the fleet go."""
    asked = (word for context in contexts for word in ("--context", context))
    done = day.kfleet("import", *asked, "--name", "found")
    assert done.returncode == 0, done.stdout + done.stderr
    plan = json.loads(day.kfleet("plan", "-o", "json").stdout)
    assert list(spec_changes(plan)) == []
    assert plan["refusals"] == []
    assert {name for name, count in plan["summary"].items() if count} == {"update"}
    day.commit()
    applied = day.kfleet("apply", "--yes", "--wait", "0")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    again = json.loads(day.kfleet("plan", "-o", "json").stdout)
    assert {name for name, count in again["summary"].items() if count} == {"keep"}, json.dumps(again, indent=1)
    released = day.kfleet("uninstall", "--keep-objects", "--yes")
    assert released.returncode == 0, released.stdout + released.stderr


def _is_gone(api: ApiServer, path: str) -> bool:
    return api.find(path) is None


def remove_all(day: FirstDay, cluster: str, manifests: Iterable[Manifest]) -> None:
    api = day.api(cluster)
    for path in [api.path_of(manifest) for manifest in manifests if manifest["kind"] != "Namespace"]:
        for remove in (api.delete, partial(api.patch, change={"metadata": {"finalizers": None}})):
            with suppress(ClusterError):  # it is gone already
                remove(path)
        eventually(partial(_is_gone, api, path))


def test_many_setups_are_adopted_without_a_change_and_released_again(day: FirstDay) -> None:
    assert len(SETUPS) >= 50
    made = {
        NAMES[cluster]: [
            (setup.get("how", "apply"), named(setup["object"], "t"))
            for setup in SETUPS
            if cluster in setup.get("clusters", BOTH)
        ]
        for cluster in BOTH
    }
    try:
        for cluster, setups in made.items():
            for how, options in HOW.items():
                send(day, cluster, (manifest for one, manifest in setups if one == how), *options)
        written = {cluster: [manifest for _, manifest in setups] for cluster, setups in made.items()}
        before = all_contents(day, written)
        adopt(day, *written)
        after = all_contents(day, written)
        changed = {name: (before[name], after[name]) for name in before if after[name] != before[name]}
        assert not changed, json.dumps(changed)
    finally:
        for cluster, setups in made.items():
            remove_all(day, cluster, (manifest for _, manifest in setups))
            for space in SPACES:
                remove_namespace(day.api(cluster), space)


@pytest.mark.parametrize("folder", FOLDERS)
def test_documents_of_a_walkthrough_are_adopted_without_a_change(day: FirstDay, folder: str) -> None:
    """In each file, because files of one walkthrough may be alternatives."""
    api = day.api("east")
    files = {name: [one for one in found if is_served(api, one)] for name, found in seed_files(folder).items()}
    assert any(files.values())
    for name, served in ((name, served) for name, served in files.items() if served):
        spaces = sorted({one["metadata"].get("namespace", "default") for one in served} - {"default"})
        with held_definitions(api, OTHER_KINDS):
            try:
                for space in spaces:
                    api.create(namespace_object(space))
                send(day, "east", served, "apply")
                before = [contents(live) for live in lives(day, "east", served)]
                own = FirstDay(day.sandbox, day.folder / name)
                own.folder.mkdir()
                own.write_kubeconfig()
                adopt(own, "east")
                assert [contents(live) for live in lives(day, "east", served)] == before
            finally:
                remove_all(day, "east", served)
                for space in spaces:
                    remove_namespace(api, space)
