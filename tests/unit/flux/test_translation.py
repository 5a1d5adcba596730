"""v1alpha1 in the words of v1alpha2."""

from typing import Any

import pytest

from reconciler.flux.render import lost_in, operator_job, to_current
from tests.builders import Document
from tests.unit.flux.lammps import CURRENT, OLD, lammps


def translated(**spec: Any) -> Document:
    found = to_current(lammps(OLD, **spec)).manifest
    assert found["apiVersion"] == CURRENT
    return dict(found["spec"])


def test_current_mini_cluster_and_other_objects_stay_as_they_are() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job"}
    assert to_current(job).manifest is job
    current = lammps()
    assert (to_current(current).manifest, to_current(current).notes) == (current, ())


def test_what_is_called_the_same_is_kept_and_the_status_is_not() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "jobs"}
    old = {**lammps(OLD, jobLabels=labels, tasks=4), "status": {"jobid": "7"}}
    upgraded = to_current(old)
    assert upgraded.manifest == lammps(jobLabels=labels, tasks=4)
    assert upgraded.notes == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"test": True}, {"logging": {"quiet": True}}),
        ({"test": False}, {}),
        ({"test": True, "logging": {"quiet": False, "debug": True}}, {"logging": {"quiet": False, "debug": True}}),
        ({"localDeploy": True, "diagnostics": True, "users": []}, {}),
    ],
)
def test_options_of_the_cluster_are_translated(old: Document, new: Document) -> None:
    assert translated(**old) == {"size": 2, "containers": [{"image": "lammps"}], **new}


@pytest.mark.parametrize(
    ("old", "new", "flux"),
    [
        ({"preCommand": "env"}, {"commands": {"pre": "env"}}, {}),
        ({"postStartExec": "env"}, {"lifeCycle": {"postStartExec": "env"}}, {}),
        ({"fluxOptionFlags": "-ompi", "fluxLogLevel": 7}, {}, {"optionFlags": "-ompi", "logLevel": 7}),
        ({"cores": 4, "diagnostics": True, "fluxUser": {"name": "ada"}}, {}, {}),
        (
            {"securityContext": {"privileged": True, "addCapabilities": ["SYS_ADMIN"]}},
            {"securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}},
            {},
        ),
        ({"securityContext": {"privileged": True}}, {"securityContext": {"privileged": True}}, {}),
        (
            {"existingVolumes": {"data": {"path": "/data", "claimName": "disk"}}},
            {"volumes": {"data": {"path": "/data", "claimName": "disk"}}},
            {},
        ),
    ],
)
def test_options_of_a_container_are_translated(old: Document, new: Document, flux: Document) -> None:
    found = translated(containers=[{"image": "lammps", **old}])
    assert found["containers"] == [{"image": "lammps", **new}]
    assert found.get("flux", {}) == flux


def test_volume_of_the_host_moves_to_the_containers_that_mount_it() -> None:
    container = {"image": "lammps", "volumes": {"data": {"path": "/data", "readOnly": True}}}
    found = translated(containers=[container], volumes={"data": {"path": "/mnt/disk"}})
    assert "volumes" not in found
    assert found["containers"][0]["volumes"] == {"data": {"path": "/data", "readOnly": True, "hostPath": "/mnt/disk"}}


def test_what_v1alpha2_cannot_say_is_named_and_kept_to_be_seen() -> None:
    disk = {"path": "/x", "storageClass": "csi", "secret": "s"}
    old = lammps(OLD, users=[{"name": "ada"}], fluxRestful={"port": 80}, volumes={"disk": disk})
    assert [lost.path for lost in lost_in(old)] == [
        ("spec", "users"),
        ("spec", "fluxRestful"),
        ("spec", "volumes", "disk"),
    ]
    assert "of storage class csi" in [*lost_in(old)][2].problem and "claimName" in [*lost_in(old)][2].problem
    assert {"users", "fluxRestful", "volumes"} <= to_current(old).manifest["spec"].keys()
    assert [*lost_in(lammps(volumes={"disk": disk}))] == []


@pytest.mark.parametrize("field", ["storageClass", "class"])
def test_volume_of_a_storage_class_never_becomes_a_folder_of_the_host(field: str) -> None:
    mounted = {"image": "lammps", "volumes": {"data": {"path": "/data"}}}
    found = translated(containers=[mounted], volumes={"data": {"path": "/x", field: "csi"}})
    assert found["containers"][0]["volumes"] == {"data": {"path": "/data"}} and "data" in found["volumes"]
    on_host = translated(containers=[mounted], volumes={"data": {"path": "/x", field: "hostpath"}})
    assert on_host["containers"][0]["volumes"] == {"data": {"path": "/data", "hostPath": "/x"}}


def test_fields_that_v1alpha2_no_longer_has_are_named() -> None:
    old = lammps(
        OLD,
        flux={"installRoot": "/usr", "curveCertSecret": "cert", "logLevel": 7},
        containers=[{"image": "lammps", "commands": {"runFluxAsRoot": True, "pre": "x"}}],
        services=[{"image": "db", "cores": 2, "preCommand": "y"}],
    )
    upgraded = to_current(old)
    spec = upgraded.manifest["spec"]
    assert spec["containers"] == [{"image": "lammps", "commands": {"pre": "x"}}]
    assert spec["services"] == [{"image": "db", "commands": {"pre": "y"}}]
    assert spec["flux"] == {"curveCertSecret": "cert", "logLevel": 7}
    assert "cores, commands.runFluxAsRoot, flux.installRoot: left out, v1alpha2 has no such field" in upgraded.notes
    assert [lost.path for lost in lost_in(old)] == [("spec", "flux", "curveCertSecret")]


def test_translation_says_what_it_changed() -> None:
    notes = to_current(lammps(OLD, test=True, containers=[{"image": "a", "cores": 2, "preCommand": "b"}])).notes
    assert notes == (
        "test is called logging.quiet now",
        "preCommand is called commands.pre and postStartExec lifeCycle.postStartExec now",
        "cores: left out, v1alpha2 has no such field",
    )


def test_operator_makes_one_indexed_job_of_all_members() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "jobs"}
    container = {"image": "lammps", "resources": {"requests": {"cpu": 2}}}
    made = operator_job(lammps(size=5, jobLabels=labels, containers=[container], pod={"nodeSelector": {"pool": "cpu"}}))
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("lammps", labels)
    spec, pod = made["spec"], made["spec"]["template"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 5, 5)
    assert (pod["restartPolicy"], pod["nodeSelector"]) == ("OnFailure", {"pool": "cpu"})
    assert [one["name"] for one in (*pod["initContainers"], *pod["containers"])] == ["flux-view", "lammps"]


def test_operator_keeps_its_init_container_where_the_image_brings_flux() -> None:
    """Its resources count for the quota, as Kueue sees them."""
    view = {"disable": True, "resources": {"requests": {"cpu": 9}}}
    (first,) = operator_job(lammps(flux={"container": view}))["spec"]["template"]["spec"]["initContainers"]
    assert first["name"] == "flux-view" and first["resources"] == {"requests": {"cpu": 9}}


def test_operator_requires_nodes_with_the_labels_of_the_affinity() -> None:
    made = operator_job(lammps(pod={"nodeAffinity": {"pool": ["cpu", "big"]}}))
    (term,) = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["cpu", "big"]}]}
