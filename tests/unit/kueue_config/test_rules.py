from typing import Any

import pytest

from reconciler.kueue.configuration import check_configuration, check_patch, refused_gates
from reconciler.kueue.kinds import parse_version

OWN = "add matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}]"


@pytest.mark.parametrize(
    ("release", "patch", "said"),
    [
        ("0.19", {"integrations": {"frameworks": {"add": ["pod"]}}}, []),
        ("0.19", {"clientConnection": {"qps": None}, "nothing": None}, []),
        ("0.19", {"waitForPodsReady": {"enable": True, "timeout": "5m"}}, []),
        ("0.14", {"visibilityServer": {"bindPort": 1}}, ["visibilityServer: unknown field (only v1beta2 has it)"]),
        (
            "0.19",
            {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "integrations": {"podOptions": {}}},
            ["integrations.podOptions: unknown field (v1beta2 has managedJobsNamespaceSelector at the top instead)"],
        ),
        (
            "0.19",
            {"waitForPodsReady": {"timeout": "5 minutes"}},
            [
                (
                    "waitForPodsReady.timeout: '5 minutes' does not consist of numbers with units, "
                    "like '90s', '5m' or '1h30m'"
                )
            ],
        ),
        (
            "0.16",
            {"metrics": {"localQueueMetrics": {"enable": True}}},
            ["metrics.localQueueMetrics: this Kueue does not have the field, which was added in 0.17"],
        ),
        (
            "0.14",
            {"integrations": {"frameworks": ["batch/job", "statefulset"]}},
            ["integrations.frameworks[1]: statefulset needs pod in this list too"],
        ),
        (
            "0.19",
            {"managedJobsNamespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            [
                (
                    "managedJobsNamespaceSelector: selects the namespace kube-system and kueue-system, "
                    f"which Kueue must not manage ({OWN})"
                )
            ],
        ),
        (
            "0.19",
            {"managedJobsNamespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
            [],
        ),
        ("0.17", {"integrations": {"frameworks": ["ray.io/rayservice", "sparkoperator.k8s.io/sparkapplication"]}}, []),
        ("0.17", {"metrics": {"customLabels": [{"name": "team"}], "localQueueMetrics": {"enable": True}}}, []),
        (
            "0.17",
            {"metrics": {"customLabels": [{"name": "team", "sourceKind": "Workload"}]}},
            ["metrics.customLabels[0].sourceKind: this Kueue does not have the field, which was added in 0.19"],
        ),
        ("0.18", {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}, "visibilityServer": {"bindPort": 9}}, []),
        (
            "0.17",
            {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}},
            ["resources.quotaCheckStrategy: this Kueue does not have the field, which was added in 0.18"],
        ),
        (
            "0.19",
            {"managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "astro"}}},
            [],
        ),
        (
            "0.19",
            {
                "managedJobsNamespaceSelector": {
                    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}]
                }
            },
            [],
        ),
        (
            "0.19",
            {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanInitialShare"]}},
            [
                (
                    "fairSharing.preemptionStrategies: [LessThanInitialShare, LessThanInitialShare] is not allowed; "
                    "allowed: [LessThanOrEqualToFinalShare] or [LessThanInitialShare] or "
                    "[LessThanOrEqualToFinalShare, LessThanInitialShare]"
                )
            ],
        ),
    ],
)
def test_check_patch_says_what_the_release_refuses(release: str, patch: dict[str, Any], said: list[str]) -> None:
    assert [str(violation) for violation in check_patch(patch, parse_version(release))] == said


@pytest.mark.parametrize(
    ("release", "gates", "said"),
    [
        ("0.16", {"LendingLimit": False, "TASProfileLeastFreeCapacity": True}, []),
        ("0.17", {"LendingLimit": False}, ["featureGates.LendingLimit: is locked to true since Kueue 0.17"]),
        ("0.18", {"LendingLimit": True, "DynamicResourceAllocation": False}, []),
        (
            "0.18",
            {"DynamicResourceAllocation": True},
            ["featureGates.DynamicResourceAllocation: is locked to false since Kueue 0.18"],
        ),
        (
            "0.19",
            {"LendingLimit": False, "TASProfileLeastFreeCapacity": True},
            [
                "featureGates.LendingLimit: Kueue 0.19 and newer do not know it",
                "featureGates.TASProfileLeastFreeCapacity: Kueue 0.17 and newer do not know it",
            ],
        ),
    ],
)
def test_gates_with_which_a_release_does_not_start_are_named_once(
    release: str, gates: dict[str, bool], said: list[str]
) -> None:
    assert list(refused_gates(gates, parse_version(release))) == said


@pytest.mark.parametrize(
    ("release", "content", "said"),
    [
        (
            "0.14",
            {"apiVersion": "config.kueue.x-k8s.io/v1beta2"},
            (
                "apiVersion: 'config.kueue.x-k8s.io/v1beta2' is not supported by Kueue 0.14; "
                "allowed: config.kueue.x-k8s.io/v1beta1"
            ),
        ),
        (
            "0.19",
            {"multiKueue": {"incrementalDispatcherConfig": {"stepSize": 1}}},
            (
                "multiKueue.incrementalDispatcherConfig: is only for the incremental dispatcher, but dispatcherName is "
                "not set (set multiKueue.dispatcherName to kueue.x-k8s.io/multikueue-dispatcher-incremental)"
            ),
        ),
        (
            "0.19",
            {"resources": {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["a"]}},
            (
                "resources.quotaCheckStrategy: IgnoreUndeclared is not allowed together with excludeResourcePrefixes "
                "(remove one of them)"
            ),
        ),
        (
            "0.19",
            {
                "multiKueue": {
                    "clusterProfile": {
                        "accessProviders": [{"name": "a", "execConfig": {}}],
                        "credentialsProviders": [{"name": "a", "execConfig": {}}],
                    }
                }
            },
            (
                "multiKueue.clusterProfile.credentialsProviders: is not allowed together with accessProviders, "
                "which replaced it (remove one of them)"
            ),
        ),
    ],
)
def test_check_configuration_says_what_does_not_go_together(release: str, content: dict[str, Any], said: str) -> None:
    whole = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **content}
    assert [str(violation) for violation in check_configuration(whole, parse_version(release))] == [said]
