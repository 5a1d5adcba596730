"""Members of tenants become RoleBindings to Kueue's own roles."""

from reconciler.render.compute import compute_desired
from reconciler.render.model import DesiredObject
from tests.unit.spec.fleet_texts import EAST, HUB, QUEUE, parsed

FLAVOR = "apiVersion: kfleet.dev/v1alpha1\nkind: Flavor\nmetadata: {name: a100}\nspec: {capacity: {source: nodes}}\n"
TENANT = """\
apiVersion: kfleet.dev/v1alpha1
kind: Tenant
metadata: {name: astro}
spec:
  namespaces: [astro, astro-ci]
  queue: research
  members:
  - {kind: Group, name: astro-devs}
  - {kind: User, name: ada}
  - {kind: ServiceAccount, name: ci, role: admin}
"""
NATIVE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: old, annotations: {kfleet.dev/clusters: all}}
spec: {namespaceSelector: {}}
"""


def objects(kind: str, *documents: str) -> list[DesiredObject]:
    desired = compute_desired(parsed(HUB, EAST, FLAVOR, *documents))
    return [entry for entry in desired.objects if entry.ref.kind == kind]


def test_members_are_bound_where_the_queue_runs() -> None:
    found = objects("RoleBinding", QUEUE, TENANT)
    assert [str(entry.ref) for entry in found] == [
        "east/RoleBinding/astro/kfleet-astro-admin",
        "east/RoleBinding/astro/kfleet-astro-user",
        "east/RoleBinding/astro-ci/kfleet-astro-admin",
        "east/RoleBinding/astro-ci/kfleet-astro-user",
    ]
    admin, user = found[2].manifest, found[1].manifest
    assert admin["roleRef"]["name"] == "kueue-batch-admin-role"
    assert admin["subjects"] == [{"kind": "ServiceAccount", "name": "ci", "namespace": "astro-ci"}]
    assert user["roleRef"]["name"] == "kueue-batch-user-role"
    assert [subject["name"] for subject in user["subjects"]] == ["astro-devs", "ada"]


def test_members_of_a_dispatched_queue_are_bound_on_the_manager_alone() -> None:
    dispatched = QUEUE.replace("  cohort: science", "  dispatch: multikueue")
    assert {entry.ref.cluster for entry in objects("RoleBinding", dispatched, TENANT)} == {"hub"}


def test_tenant_of_a_native_queue_gets_its_local_queues() -> None:
    found = objects("LocalQueue", NATIVE, TENANT.replace("research", "old"))
    assert {(entry.ref.cluster, entry.ref.namespace, entry.ref.name) for entry in found} == {
        (cluster, namespace, "old") for cluster in ("hub", "east") for namespace in ("astro", "astro-ci")
    }
