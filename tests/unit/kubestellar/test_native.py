"""Objects of kueue-ks as people wrote them for older releases of KubeStellar."""

import pytest

from reconciler.render.compute import compute_desired
from reconciler.spec.settings import MOVED, in_shape, is_old_policy, shape_of_release
from tests.builders import Document, fleet_document, spec_of

CLAUSE = {"apiGroup": "batch", "resources": ["jobs"]}
CLUSTERS = [{"matchLabels": {"name": "c1"}}]


def policy(*clauses: Document, **spec: object) -> Document:
    content = {"clusterSelectors": CLUSTERS, "downsync": list(clauses), **spec}
    return {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "BindingPolicy",
        "metadata": {"name": "jobs", "annotations": {"kfleet.dev/clusters": "manager"}},
        "spec": content,
    }


def test_singleton_of_the_policy_goes_into_its_clauses_where_the_release_has_it_there() -> None:
    written = policy(CLAUSE, {**CLAUSE, "wantSingletonReportedState": False}, wantSingletonReportedState=True)
    made, note = in_shape(written, shape_of_release("0.30.0"))
    assert made["spec"] == {
        "clusterSelectors": CLUSTERS,
        "downsync": [
            {"wantSingletonReportedState": True, **CLAUSE},
            {"wantSingletonReportedState": False, **CLAUSE},
        ],
    }
    assert note == MOVED


@pytest.mark.parametrize("release", ["0.22.0", "0.25.1"])
def test_older_releases_get_the_policy_as_it_is_written(release: str) -> None:
    written = policy(CLAUSE, wantSingletonReportedState=True)
    assert in_shape(written, shape_of_release(release)) == (written, "")


def test_policy_of_the_new_shape_and_other_objects_stay() -> None:
    for manifest in (policy(CLAUSE), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}):
        assert in_shape(manifest, shape_of_release("0.30.0")) == (manifest, "")
    written = policy(CLAUSE, wantSingletonReportedState=True)
    assert in_shape(written, None) == (written, "")


def test_definition_is_read_where_a_native_policy_depends_on_it() -> None:
    assert is_old_policy(policy(CLAUSE, wantSingletonReportedState=True))
    assert not is_old_policy(policy(CLAUSE))


def test_fleet_sends_the_shape_of_its_release() -> None:
    written = policy(CLAUSE, wantSingletonReportedState=True)
    for version, is_moved in (("0.30", True), ("0.22", False)):
        hub = {"apiVersion": "kfleet.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "hub"}}
        fleet = fleet_document(kubestellar={"version": version})
        spec = spec_of({**hub, "spec": {"role": "manager"}}, written, base=(fleet,))
        (made,) = (one for one in compute_desired(spec).objects if one.ref.kind == "BindingPolicy")
        assert ("wantSingletonReportedState" not in made.manifest["spec"]) is is_moved
        assert made.notes == ((MOVED,) if is_moved else ())
