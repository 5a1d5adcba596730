"""The tables of Kueue's Configuration against the Kueues that the sandbox runs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconciler.kueue.configuration import check_configuration, patched
from reconciler.kueue.kinds import NEWEST, parse_version
from reconciler.kueue.structure import SchemaNode, configuration_structure
from tests.cluster.kueue_config.kueues import base, sample, verdict_of_kueue

RELEASES = ("0.19.0", "0.16.2")
API_VERSIONS = ("v1beta1", "v1beta2")
FRAMEWORKS = ["batch/job", "pod"]
NOT_OURS = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
}
EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"integrations": {"frameworks": FRAMEWORKS}},
    {"integrations": {"frameworks": ["pod", "pod"]}},
    {"integrations": {"frameworks": ["pods"]}},
    {"integrations": {"frameworks": "pod"}},
    {"integrations": {"frameworks": ["statefulset"]}},
    {"integrations": {"frameworks": ["ray.io/rayservice"]}},
    {"integrations": {"frameworks": FRAMEWORKS, "podOptions": {"podSelector": {}}}},
    {"managedJobsNamespaceSelector": NOT_OURS},
    {"managedJobsNamespaceSelector": NOT_OURS, "integrations": {"frameworks": FRAMEWORKS}},
    {"managedJobsNamespaceSelector": {"matchLabels": {"kueue": "yes"}}},
    {"managedJobsNamespaceSelector": {"matchLabels": {"kueue": True}}},
    {"managedJobsNamespaceSelector": {}},
    {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
    {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}},
    {"fairSharing": {"enable": True, "preemptionStrategies": ["Never"]}},
    {"fairSharing": {"enable": True}},
    {"waitForPodsReady": {"timeout": "5m", "requeuingStrategy": {"timestamp": "Eviction"}}},
    {"waitForPodsReady": {"enable": True, "timeout": "5m", "requeuingStrategy": {"timestamp": "Never"}}},
    {"waitForPodsReady": {"timeout": 300}},
    {"waitForPodsReady": {"timeout": "five minutes"}},
    {"waitForPodsReady": {"enable": True, "timeout": "5m"}},
    {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}},
    {"resources": {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["example.org"]}},
    {"resources": {"transformations": [{"input": "a", "strategy": "Retain", "outputs": {"b": "1"}}]}},
    {"resources": {"transformations": [{"input": "a"}, {"input": "a"}]}},
    {"multiKueue": {"incrementalDispatcherConfig": {"stepSize": 2}}},
    {
        "multiKueue": {
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
            "incrementalDispatcherConfig": {"stepSize": 2},
        }
    },
    {"multiKueue": {"gcInterval": "-1m"}},
    {"clientConnection": {"qps": 50.5, "burst": 100}},
    {"clientConnection": {"burst": 1.5}},
    {"metrics": {"enableClusterQueueResources": "yes"}},
    {"queueVisibility": {"updateIntervalSeconds": 5}},
    {"objectRetentionPolicies": {"workloads": {"afterFinished": "24h"}}},
    {"visibilityServer": {"bindPort": 8082}},
    {"controller": {"cacheSyncTimeout": "2m"}},
    {"wrong": 1},
)

pytestmark = pytest.mark.usefixtures("_programs")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_kueue_knows_every_field_of_the_table(release: str, api_version: str, tmp_path: Path) -> None:
    everything = sample(configuration_structure(api_version, parse_version(release)))
    said = verdict_of_kueue(release, everything | base(api_version), tmp_path)
    assert "unknown field" not in said and "unmarshal" not in said


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_kueue_knows_no_field_that_the_table_leaves_out(release: str, api_version: str, tmp_path: Path) -> None:
    known = configuration_structure(api_version, parse_version(release))
    others = [configuration_structure(name, NEWEST) for name in API_VERSIONS]
    missing = sorted({path for other in others for path in _paths(other)} - set(_paths(known)))
    everything = base(api_version)
    for path in missing:
        everything = dict(patched(everything, _at(path, sample(_node(others, path)))))
    said = verdict_of_kueue(release, everything, tmp_path) if missing else ""
    # Of a block that is not known its fields are not named.
    assert [path for path in missing if path[:-1] not in missing and f'"{".".join(path)}"' not in said] == []


def test_kueue_refuses_another_type_for_every_field(tmp_path: Path) -> None:
    root = configuration_structure("v1beta2", NEWEST)
    paths = [path for path in _paths(root) if _node([root], path).type != "object" and path[-1] not in base()]
    wrong = {path: patched(base(), _at(path, [[1]])) for path in paths}
    with ThreadPoolExecutor(2) as pool:
        said = dict(
            zip(wrong, pool.map(lambda one: verdict_of_kueue("0.19.0", one, tmp_path), wrong.values()), strict=True)
        )
    ours = {path: bool(check_configuration(one, NEWEST)) for path, one in wrong.items()}
    assert {path: bool(text) for path, text in said.items()} == ours
    assert all(ours.values())


@pytest.mark.parametrize(
    ("release", "api_version"), [("0.19.0", "v1beta2"), ("0.16.2", "v1beta2"), ("0.16.2", "v1beta1")]
)
def test_check_configuration_agrees_with_kueue(release: str, api_version: str, tmp_path: Path) -> None:
    contents = [base(api_version) | extra for extra in EXTRAS]
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda one: verdict_of_kueue(release, one, tmp_path), contents)
    theirs = [(extra, bool(text)) for extra, text in zip(EXTRAS, said, strict=True)]
    ours = [(extra, bool(check_configuration(base(api_version) | extra, parse_version(release)))) for extra in EXTRAS]
    assert [one for one in zip(ours, theirs, strict=True) if one[0] != one[1]] == []
    assert {is_refused for _, is_refused in theirs} == {True, False}


def _paths(node: SchemaNode, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every field that is reached without going through a list."""
    found = []
    for name, child in node.fields.items():
        if child.type != "any":
            found += [(*above, name), *_paths(child, (*above, name))]
    return found


def _node(roots: list[SchemaNode], path: tuple[str, ...]) -> SchemaNode:
    for root in roots:
        node: SchemaNode | None = root
        for step in path:
            node = node.fields.get(step) if node else None
        if node:
            return node
    raise AssertionError(path)


def _at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = {step: value}
    result: dict[str, Any] = value
    return result
