"""What lint says of MiniClusters, beyond the examples of its rules."""

import pytest

from reconciler.pipeline.load import Source, load_files, read_files
from tests.support import ROOT
from tests.unit.lint.lint_findings import find

HEAD = "apiVersion: flux-framework.org/{version}\nkind: MiniCluster\nmetadata:\n  name: lammps\n  namespace: astro\n"
TARGETS = "  annotations: {kfleet.dev/clusters: workers}\n"
LABEL = "jobLabels: {kueue.x-k8s.io/queue-name: research}"
PRIORITY = "kueue.x-k8s.io/priority-class"
ASKING = "{image: a, resources: {requests: {cpu: 1}}}"


def problems(spec: str, version: str = "v1alpha2") -> dict[str, str]:
    snippet = HEAD.format(version=version) + TARGETS + f"spec: {{{spec}}}\n"
    return {finding.rule: finding.problem for finding in find(snippet)}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (f"{LABEL}, containers: []", "containers is empty: there is nothing to run"),
        (f"{LABEL}, size: 0, containers: [{ASKING}]", "size is 0: a MiniCluster has at least one member"),
        (f"{LABEL}, size: 4, maxSize: 2, containers: [{ASKING}]", "maxSize 2 is less than size 4"),
        (f"{LABEL}, size: 4, minSize: 8, containers: [{ASKING}]", "minSize 8 is more than size 4"),
        (f"{LABEL}, deadlineSeconds: 0, containers: [{ASKING}]", "with a deadline of 0 the Job never starts"),
        (
            f"{LABEL}, containers: [{{image: a, runFlux: true}}, {{image: b}}]",
            "a container besides Flux needs a name",
        ),
    ],
)
def test_mini_cluster_that_the_operator_does_not_take_is_found(spec: str, problem: str) -> None:
    assert problems(spec) == {"KF039": problem}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            "jobLabels: {kueue.x-k8s.io/queue-name: reserach}, containers: [{image: a}]",
            "there is no LocalQueue astro/reserach; did you mean research? (on east)",
        ),
        (
            f"{LABEL}, containers: [{{image: a, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]",
            "its pods request nvidia.com/gpu 1, but queue research has quota only for cpu, memory (on east)",
        ),
        (
            f"{LABEL}, containers: [{ASKING}], pod: {{nodeSelector: {{pool: gpu}}}}",
            "flavor cpu: its nodes have pool=cpu, the pods select pool=gpu (on east)",
        ),
        (
            f"jobLabels: {{kueue.x-k8s.io/queue-name: research, {PRIORITY}: high}}, containers: [{ASKING}]",
            "without WorkloadPriorityClass high Kueue creates no Workload (on east)",
        ),
        (
            f"{LABEL}, size: 51, containers: [{ASKING}]",
            "flavor cpu: cpu 51 is requested, but the queue can get 50 (on east)",
        ),
    ],
)
def test_mini_cluster_that_is_never_admitted_is_an_error_with_its_reason(spec: str, problem: str) -> None:
    assert problems(spec) == {"KF036": problem}


def test_mini_cluster_without_any_queue_runs_past_all_of_them() -> None:
    snippet = (
        HEAD.format(version="v1alpha2").replace("astro", "nowhere") + TARGETS + f"spec: {{containers: [{ASKING}]}}\n"
    )
    assert {finding.rule for finding in find(snippet)} == {"KF015"}


def test_old_mini_cluster_is_translated_and_what_is_lost_is_an_error() -> None:
    found = problems(f"{LABEL}, containers: [{ASKING}], fluxRestful: {{port: 80}}", version="v1alpha1")
    assert found.keys() == {"KF037", "KF038"}
    assert found["KF038"].startswith("v1alpha2 has no web server")


def test_example_fleet_of_flux_is_without_a_finding() -> None:
    folder = ROOT / "docs" / "examples" / "flux"
    computed = load_files(read_files(Source(path=str(folder))))
    assert [str(finding) for finding in computed.findings] == []
    assert any(entry.ref.kind == "MiniCluster" for entry in computed.desired.objects)
