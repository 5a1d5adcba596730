"""The controller of an AdmissionCheck: the API server takes any name, and lint knows who would answer."""

import pytest

from reconciler.lint.model import Finding
from tests.unit.lint.lint_findings import find

RIGHT = "kueue.x-k8s.io/multikueue"
NODES = "kueue.x-k8s.io/provisioning-request"


def findings(controller: str, parameters: str = "") -> list[Finding]:
    kind = f", parameters: {{apiGroup: kueue.x-k8s.io, kind: {parameters}, name: far}}" if parameters else ""
    snippet = f"kind: AdmissionCheck\nmetadata: {{name: far}}\nspec: {{controllerName: {controller}{kind}}}\n"
    return [finding for finding in find(snippet) if finding.rule == "KF018"]


@pytest.mark.parametrize(
    "controller",
    [
        "multikueue.x-k8s.io/MultiKueueCluster",
        "multikueue.x-k8s.io/MultiKueueConfig",
        "kueue.x-k8s.io/MultiKueue",
        "kueue.x-k8s.io/multi-kueue",
        "KUEUE.x-k8s.io/multikueue",
        "kueue.x-k8s.oi/multikueue",
        "kueue.x-k8s.io/v1beta2/multikueue",
        "multikueue",
    ],
)
def test_controller_that_looks_like_multikueue_gets_the_right_name(controller: str) -> None:
    (finding,) = findings(controller)
    assert finding.field == "spec.controllerName"
    assert finding.problem.startswith(f"Kueue has no controller {controller!r}: no status is ever set")
    assert finding.hint.startswith(f"write {RIGHT}; MultiKueueCluster and MultiKueueConfig are kinds of objects.")


def test_controller_is_guessed_from_the_parameters_where_its_name_says_nothing() -> None:
    (finding,) = findings("kueue.x-k8s.io/remote", "MultiKueueConfig")
    assert finding.hint.startswith(f"write {RIGHT}; ")
    (finding,) = findings("kueue.x-k8s.io/nodes", "ProvisioningRequestConfig")
    assert finding.hint.startswith(f"write {NODES}. ")


def test_controller_in_the_domain_of_kubernetes_that_is_unknown_is_found() -> None:
    (finding,) = findings("kueue.x-k8s.io/budget")
    assert finding.hint.startswith(f"write {RIGHT} or {NODES}, or ")


def test_controller_of_nodes_is_reported_without_a_word_about_multikueue() -> None:
    (finding,) = findings("kueue.x-k8s.io/ProvisioningRequest")
    assert finding.hint == f"write {NODES}. It is immutable once the check is on a cluster"


@pytest.mark.parametrize("controller", [RIGHT, NODES, "example.org/budget", "budget"])
def test_controller_of_kueue_or_of_another_owner_is_fine(controller: str) -> None:
    assert findings(controller) == []
    assert findings("example.org/placement", "MultiKueueConfig") == []
