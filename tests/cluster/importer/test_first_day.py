"""The first day on three real clusters: doctor, import, plan and apply change nothing, and no job notices."""

import json
from collections.abc import Iterator, Mapping

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.importer.first_day import TEAM, FirstDay, identities, numberless, spec_changes, specs
from tests.cluster.live_fleet import KUEUE_ROOT
from tests.support import ROOT, eventually

PAGE = (ROOT / "docs" / "getting-started.md").read_text()
IMPORT = ("import", "--context", "hub", "--context", "east", "--context", "west")
TRACKING = {"annotations": {"argocd.argoproj.io/tracking-id": "queues:kueue.x-k8s.io/ClusterQueue:/batch"}}
INSTANCE = {"labels": {"app.kubernetes.io/instance": "queues"}}
AS_ARGO_CD = "--field-manager=argocd-controller"
# How an Application writes: by annotation or label, server-side or, as kubectl does it, client-side.
WAYS = {
    "kubectl": (TRACKING, ()),
    "server-side": (TRACKING, ("--server-side", AS_ARGO_CD)),
    "label tracking": (INSTANCE, (AS_ARGO_CD,)),
}


@pytest.fixture
def first_day(clusters: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstDay]:
    day = FirstDay(clusters, tmp_path_factory.mktemp("day"))
    day.write_kubeconfig()
    yield day
    if (day.folder / "fleet").exists():
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
    cluster, path = path_of(name)
    day.api(cluster).patch(path, {"metadata": {"finalizers": None}})
    day.api(cluster).delete(path)
    eventually(lambda: day.api(cluster).find(path) is None)


def path_of(name: str) -> tuple[str, str]:
    cluster, kind, namespace, own = name.split("/")
    middle = f"namespaces/{namespace}/" if namespace else ""
    return cluster, f"{KUEUE_ROOT}/{middle}{kind}/{own}"


def shown(command: str) -> str:
    """The lines of the page, without numbers."""
    return numberless(PAGE.partition(f"$ {command}\n")[2].partition("```")[0])


def said(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith(("error:", "warning:", "advice:"))}


def written(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("wrote ", "N objects"))]


def test_first_day_changes_nothing_and_goes_as_the_page_says(first_day: FirstDay) -> None:
    first_day.written()
    pod, before = first_day.start_job("train"), first_day.objects()
    examined = first_day.kfleet("doctor")
    assert examined.returncode == 1, examined.stdout + examined.stderr
    assert "[lost-local-queue]" in examined.stdout and "[token]" in examined.stdout, examined.stdout
    # The sandbox does not say which release of Kueue it runs, so nothing is said about releases.
    assert said(numberless(examined.stdout)) <= said(shown("kfleet doctor")), examined.stdout
    imported = first_day.kfleet(*IMPORT)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    assert written(numberless(imported.stdout)) == written(shown(f"kfleet {' '.join(IMPORT)}"))
    planned = first_day.kfleet("plan")
    assert numberless(planned.stdout.splitlines()[-1]) == shown("kfleet plan | tail -1"), planned.stdout
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


@pytest.mark.parametrize("way", WAYS)
def test_objects_of_argo_cd_and_of_kubectl_are_handed_over_without_a_change(first_day: FirstDay, way: str) -> None:
    marks, options = WAYS[way]
    first_day.written(marks, options)
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
    assert all(live["metadata"][part].items() >= own.items() for live in after.values() for part, own in marks.items())
    assert first_day.pods("train") == [pod]
    again = json.loads(first_day.kfleet("plan", "-o", "json").stdout)
    assert set(again["summary"].values()) == {0, again["summary"]["keep"]}
    remove_marks(first_day, marks)
    change_quota(first_day, "64", "48")
    assert first_day.pods("train") == [pod]


def remove_marks(day: FirstDay, marks: Mapping[str, Mapping[str, str]]) -> None:
    """The last steps of the hand-over."""
    nothing = {part: dict.fromkeys(own) for part, own in marks.items()}
    for name in day.objects():
        cluster, path = path_of(name)
        day.api(cluster).patch(path, {"metadata": nothing})


def change_quota(day: FirstDay, old: str, new: str) -> None:
    """From now on git decides, whoever wrote the fields before."""
    path = day.folder / "fleet" / "queues.yaml"
    path.write_text(path.read_text().replace(f"'{old}'", f"'{new}'"))
    day.commit()
    applied = day.kfleet("apply", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    for cluster in ("east", "west"):
        (group,) = day.objects()[f"{cluster}/clusterqueues//batch"]["spec"]["resourceGroups"]
        assert group["flavors"][0]["resources"][0]["nominalQuota"] == new
