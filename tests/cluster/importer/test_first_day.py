"""The first day on three real clusters: doctor, import, plan and apply change nothing, and no job notices."""

import json
from collections.abc import Iterator

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.importer.first_day import TEAM, FirstDay, identities, numberless, spec_changes, specs
from tests.cluster.live_fleet import KUEUE_ROOT
from tests.support import ROOT, eventually

PAGE = (ROOT / "docs" / "getting-started.md").read_text()
IMPORT = ("import", "--context", "hub", "--context", "east", "--context", "west")
TRACKING = {"argocd.argoproj.io/tracking-id": "queues:kueue.x-k8s.io/ClusterQueue:/batch"}


@pytest.fixture
def first_day(clusters: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstDay]:
    day = FirstDay(clusters, tmp_path_factory.mktemp("day"))
    day.write_kubeconfig()
    yield day
    released = day.kfleet("uninstall", "--keep-objects", "--yes")
    assert released.returncode == 0, released.stdout + released.stderr
    path = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
    for job in list(day.api("hub").list(path)):
        day.api("hub").delete(f"{path}/{job['metadata']['name']}?propagationPolicy=Background")
    eventually(lambda: not is_used(day), 60)
    for name in sorted(day.objects(), key=lambda name: "queue" not in name):
        remove(day, name)
    for name in ("east-login", "west-login"):
        day.api("hub").delete(f"/api/v1/namespaces/kueue-system/secrets/{name}")


def is_used(day: FirstDay) -> bool:
    found = (live for name, live in day.objects().items() if "/clusterqueues/" in name)
    return any((live.get("status") or {}).get("reservingWorkloads") for live in found)


def remove(day: FirstDay, name: str) -> None:
    cluster, kind, namespace, own = name.split("/")
    middle = f"namespaces/{namespace}/" if namespace else ""
    path = f"{KUEUE_ROOT}/{middle}{kind}/{own}"
    day.api(cluster).patch(path, {"metadata": {"finalizers": None}})
    day.api(cluster).delete(path)
    eventually(lambda: day.api(cluster).find(path) is None)


def shown(command: str) -> str:
    """The lines of the page, without numbers."""
    return numberless(PAGE.partition(f"$ {command}\n")[2].partition("```")[0])


def test_first_day_changes_nothing_and_goes_as_the_page_says(first_day: FirstDay) -> None:
    first_day.written()
    pod, before = first_day.start_job("train"), first_day.objects()
    examined = first_day.kfleet("doctor")
    assert examined.returncode == 1 and "[lost-local-queue]" in examined.stdout, examined.stdout + examined.stderr
    imported = first_day.kfleet(*IMPORT)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    changes = json.loads(first_day.kfleet("plan", "-o", "json").stdout)
    assert list(spec_changes(changes)) == []
    assert changes["refusals"] == [] and changes["summary"]["update"] >= len(before)
    first_day.commit()
    applied = first_day.kfleet("apply", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    after = first_day.objects()
    assert specs(after) == specs(before) and identities(after) == identities(before)
    assert first_day.pods("train") == [pod]
    done = "\n".join(line for line in applied.stdout.splitlines() if "changes done" in line)
    assert numberless(done) == shown("kfleet apply --yes | grep done")
    assert numberless(first_day.kfleet("plan").stdout) == shown("kfleet plan")


@pytest.mark.parametrize("manager", ["", "argocd-controller"])
def test_objects_of_argo_cd_and_of_kubectl_are_handed_over_without_a_change(first_day: FirstDay, manager: str) -> None:
    """Both ways of Argo CD: client-side as kubectl does it, and server-side."""
    first_day.written(TRACKING, manager)
    pod, before = first_day.start_job("train"), first_day.objects()
    left = first_day.kfleet(*IMPORT, "--into", "left")
    assert left.returncode == 0 and "import them with --managed-by kfleet" in left.stderr, left.stdout + left.stderr
    taken = first_day.kfleet(*IMPORT, "--managed-by", "kfleet")
    assert taken.returncode == 0 and "To hand them over, so that nothing is deleted" in taken.stderr, (
        taken.stdout + taken.stderr
    )
    changes = json.loads(first_day.kfleet("plan", "-o", "json").stdout)
    assert list(spec_changes(changes)) == []
    assert changes["refusals"] == []
    first_day.commit()
    applied = first_day.kfleet("apply", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    after = first_day.objects()
    assert specs(after) == specs(before) and identities(after) == identities(before)
    assert all(live["metadata"]["annotations"].items() >= TRACKING.items() for live in after.values())
    assert first_day.pods("train") == [pod]
    again = json.loads(first_day.kfleet("plan", "-o", "json").stdout)
    assert set(again["summary"].values()) == {0, again["summary"]["keep"]}
