"""The steps that `kfleet import` prints for Helm, by the real helm: nothing is deleted, and git decides at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.objects import Manifest
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import cluster_queue, cpu_group, local_queue, namespace_object, resource_flavor
from tests.cluster.importer.first_day import CONTEXTS, FirstDay, identities, specs
from tests.cluster.live_fleet import KUEUE_ROOT
from tests.support import remove_namespace
from tests.unit.deploy.charted import helm

TEAM = "helm-team"
OBJECTS: tuple[Manifest, ...] = (
    resource_flavor("helm-cpu"),
    cluster_queue("helm-batch", cpu_group("64", of="helm-cpu")),
    local_queue("main", TEAM, "helm-batch"),
)
KEEP = {"helm.sh/resource-policy": "keep"}
MARKS = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")


@pytest.fixture
def day(clusters: Sandbox, tmp_path: Path) -> Iterator[FirstDay]:
    found = FirstDay(clusters, tmp_path)
    found.write_kubeconfig()
    found.api("east").create(namespace_object(TEAM))
    yield found
    released = found.kfleet("uninstall", "--keep-objects", "--yes")
    assert released.returncode == 0, released.stdout + released.stderr
    for manifest in reversed(OBJECTS):
        found.api("east").delete(found.api("east").path_of(manifest))
    remove_namespace(found.api("east"), TEAM)


def write_chart(day: FirstDay, *manifests: Manifest) -> Path:
    folder = day.folder / "chart"
    (folder / "templates").mkdir(parents=True, exist_ok=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: queues\nversion: 0.1.0\n")
    (folder / "templates" / "queues.yaml").write_text(fast_yaml.safe_dump_all(manifests))
    return folder


def release(day: FirstDay, command: str, *arguments: str) -> None:
    access = (f"--kubeconfig={day.sandbox.state.kubeconfig}", f"--kube-context={CONTEXTS['east']}")
    done = helm(command, "queues", *arguments, "--namespace=default", *access, home=day.folder)
    assert done.returncode == 0, done.stderr


def kept(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": KEEP}}


def test_objects_of_helm_are_handed_over_by_the_printed_steps(day: FirstDay) -> None:
    chart = str(write_chart(day, *OBJECTS))
    release(day, "install", chart)
    before = day.objects()
    write_chart(day, *map(kept, OBJECTS))
    release(day, "upgrade", chart)
    taken = day.kfleet("import", "--context", "east", "--managed-by", "kfleet")
    assert taken.returncode == 0 and "helm.sh/resource-policy: keep" in taken.stderr, taken.stdout + taken.stderr
    day.commit()
    applied = day.kfleet("apply", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    write_chart(day)
    release(day, "upgrade", chart)
    release(day, "uninstall")
    after = day.objects()
    assert specs(after) == specs(before) and identities(after) == identities(before)
    remove_marks(day)
    change_quota(day)


def remove_marks(day: FirstDay) -> None:
    api = day.api("east")
    for manifest in OBJECTS:
        api.patch(api.path_of(manifest), {"metadata": {"annotations": dict.fromkeys(MARKS)}})


def change_quota(day: FirstDay) -> None:
    """As the last step says, the fleet adopts nothing any more that others claim."""
    fleet, queues = (day.folder / "fleet" / name for name in ("fleet.yaml", "queues.yaml"))
    fleet.write_text(fleet.read_text().replace("adopt: always", "adopt: unowned"))
    queues.write_text(queues.read_text().replace("'64'", "'48'"))
    day.commit()
    applied = day.kfleet("apply", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    queue = day.api("east").get(f"{KUEUE_ROOT}/clusterqueues/helm-batch")
    (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
    assert flavor["resources"][0]["nominalQuota"] == "48"
