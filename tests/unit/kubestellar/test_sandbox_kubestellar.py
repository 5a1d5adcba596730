"""The sandbox with real KubeStellar: what is labelled on the manager arrives on a worker, and its status comes back."""

from reconciler.sandbox.options import SandboxOptions


def test_kubestellar_is_built_only_when_asked_for() -> None:
    assert {"kubestellar", "ocm-work"} & {program.name for program in SandboxOptions().programs} == set()
    assert {"kubestellar", "ocm-work"} < {program.name for program in SandboxOptions(has_kubestellar=True).programs}


def test_kueue_beside_kubestellar_runs_on_the_manager_unless_told_otherwise() -> None:
    options = SandboxOptions(has_kubestellar=True, kueue_by_cluster={"worker2": "0.16.2"})
    assert {name: options.kueue_of(name) for name in options.cluster_names} == {
        "manager": "0.19.0",
        "worker1": "",
        "worker2": "0.16.2",
        "its": "",
    }
