"""Kueue's own Configuration: what of it matters to other clusters, and with which errors Kueue rejects one at start.

Kueue parses its Configuration strictly. It exits at once if its release does not know a field, and while it is down the
API server rejects every write that Kueue's webhooks handle. The fields are listed in configuration.json.

From the sources of Kueue 0.14.0, 0.16.2 and 0.19.0. A gate that went between two of them is known to be gone in the
later one only, so nothing is said about the releases between.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from reconciler.decoding import load_yaml
from reconciler.errors import KfleetError
from reconciler.kueue.kinds import V1BETA2_SINCE, KueueVersion
from reconciler.kueue.reading import MAPS, as_list, as_map, as_text, at
from reconciler.kueue.rules.structure import RuleViolation, check_value
from reconciler.kueue.structure import configuration_structure
from reconciler.objects import Manifest

__all__ = ["ConfigurationError", "KueueSettings", "assumed_settings", "read_settings", "united"]
CONFIG_KEY = "controller_manager_config.yaml"
DEFAULT_ORIGIN = "multikueue"
QUOTA_AUTOMATION = "MultiKueueManagerQuotaAutomation"
IDENTIFIER_ANNOTATIONS = "WorkloadIdentifierAnnotations"
# The frameworks that the manifests of Kueue's releases enable.
SHIPPED_FRAMEWORKS = (
    "batch/job",
    "kubeflow.org/mpijob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "jobset.x-k8s.io/jobset",
    "workload.codeflare.dev/appwrapper",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
)
API_GROUP = "config.kueue.x-k8s.io"
# The frameworks that Kueue's code enables if its Configuration names none.
DEFAULT_FRAMEWORKS = ("batch/job",)
EDITS = frozenset(("add", "remove"))
_FRAMEWORKS = ("integrations", "frameworks")
V1BETA1, V1BETA2 = "v1beta1", "v1beta2"
RULE = "KF091"
INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
DEFAULT_NAMESPACE = "kueue-system"
# Before this release, Kueue required `pod` for these, because it managed their pods only if `pod` was enabled too.
POD_NEEDED_UNTIL = KueueVersion(0, 15)
_NEED_POD = ("deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
_LTOEFS, _LTIS = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
_STRATEGIES = ([_LTOEFS], [_LTIS], [_LTOEFS, _LTIS])
_SELECTORS = (
    ("managedJobsNamespaceSelector",),
    ("integrations", "podOptions", "namespaceSelector"),
)
# Fields that users write who have read about the other API version.
_OTHER_NAMES = {
    "integrations.podOptions": f"{V1BETA2} has managedJobsNamespaceSelector at the top instead",
    "waitForPodsReady.enable": f"in {V1BETA2} the block alone enables it; remove this line",
    "fairSharing.enable": f"in {V1BETA2} the block alone enables it; remove this line",
    "queueVisibility": f"{V1BETA2} has no such field: Kueue's visibility API replaced it",
    "multiKueue.clusterProfile": f"only {V1BETA2} has it",
    "visibilityServer": f"only {V1BETA2} has it",
}
Findings = Iterator[RuleViolation]
# The first release without the gate, by the sources of Kueue 0.14 and 0.16 to 0.19: one that went with 0.15 counts as
# gone since 0.16.
_GONE: Mapping[str, KueueVersion] = {
    "ConfigurableResourceTransformations": KueueVersion(0, 16),
    "ExposeFlavorsInLocalQueue": KueueVersion(0, 16),
    "FlavorFungibilityImplicitPreferenceDefault": KueueVersion(0, 16),
    "ManagedJobsNamespaceSelector": KueueVersion(0, 16),
    "ProvisioningACC": KueueVersion(0, 16),
    "TASProfileLeastFreeCapacity": KueueVersion(0, 17),
    "DRAExtendedResources": KueueVersion(0, 19),
    "DynamicResourceAllocation": KueueVersion(0, 19),
    "LendingLimit": KueueVersion(0, 19),
    "LocalQueueDefaulting": KueueVersion(0, 19),
    "MultiKueueBatchJobWithManagedBy": KueueVersion(0, 19),
    "SanitizePodSets": KueueVersion(0, 19),
}
# The release since which the gate has this value and no other.
_LOCKED: Mapping[str, tuple[KueueVersion, bool]] = {
    "HierarchicalCohorts": (KueueVersion(0, 17), True),
    "LendingLimit": (KueueVersion(0, 17), True),
    "LocalQueueDefaulting": (KueueVersion(0, 17), True),
    "MultiKueueBatchJobWithManagedBy": (KueueVersion(0, 17), True),
    "ObjectRetentionPolicies": (KueueVersion(0, 17), True),
    "PropagateBatchJobLabelsToWorkload": (KueueVersion(0, 17), True),
    "SanitizePodSets": (KueueVersion(0, 17), True),
    "DRAExtendedResources": (KueueVersion(0, 18), False),
    "DynamicResourceAllocation": (KueueVersion(0, 18), False),
    "MultiKueueRedoAdmissionOnEvictionInWorker": (KueueVersion(0, 18), True),
    "MultiKueueWaitForWorkloadAdmitted": (KueueVersion(0, 18), True),
    "SkipFinalizersForPodsSuspendedByParent": (KueueVersion(0, 18), True),
    "ManagedJobsNamespaceSelectorAlwaysRespected": (KueueVersion(0, 19), True),
    "MultiKueueAllowInsecureKubeconfigs": (KueueVersion(0, 19), False),
}


@dataclass(frozen=True, slots=True)
class KueueSettings:
    """`external_frameworks` are third-party kinds that MultiKueue dispatches too, as `Kind.version.group`.

    `origin` identifies on a worker the manager that a Workload came from.
    """

    frameworks: tuple[str, ...] = SHIPPED_FRAMEWORKS
    external_frameworks: tuple[str, ...] = ()
    origin: str = DEFAULT_ORIGIN
    has_quota_automation: bool = False
    has_identifier_annotations: bool = True


def read_settings(text: str, patch: Manifest | None = None) -> KueueSettings:
    """Return the settings of a Kueue that runs with this Configuration, or will once it is patched."""
    return _settings(patched(read_configuration(text), patch or {}))


def assumed_settings(patch: Manifest) -> KueueSettings:
    """Return the settings of a Kueue that was not observed: the shipped ones, with the fleet's changes."""
    return _settings(patched({"integrations": {"frameworks": list(SHIPPED_FRAMEWORKS)}}, patch))


def united(one: KueueSettings, other: KueueSettings) -> KueueSettings:
    """Return settings that suit a Kueue with either of both; everything else is as in the first."""
    return replace(
        one,
        frameworks=tuple(dict.fromkeys((*one.frameworks, *other.frameworks))),
        external_frameworks=tuple(dict.fromkeys((*one.external_frameworks, *other.external_frameworks))),
        has_quota_automation=one.has_quota_automation or other.has_quota_automation,
    )


def enables_fair_sharing(content: Mapping[str, Any]) -> bool:
    """Whether a whole Configuration does: in v1beta1 Kueue ignores a block that does not say `enable: true`."""
    if as_text(content.get("apiVersion")).endswith(V1BETA1):
        return at(content, "fairSharing", "enable") is True
    return content.get("fairSharing") is not None


def _settings(content: Mapping[str, object]) -> KueueSettings:
    listed = tuple(as_text(name) for name in as_list(at(content, "integrations", "frameworks")))
    external = as_list(at(content, "multiKueue", "externalFrameworks"))
    return KueueSettings(
        frameworks=listed or DEFAULT_FRAMEWORKS,
        external_frameworks=tuple(as_text(as_map(entry).get("name")) for entry in external),
        origin=as_text(at(content, "multiKueue", "origin")) or DEFAULT_ORIGIN,
        has_quota_automation=at(content, "featureGates", QUOTA_AUTOMATION) is True,
        has_identifier_annotations=at(content, "featureGates", IDENTIFIER_ANNOTATIONS) is not False,
    )


class ConfigurationError(KfleetError):
    """A text that is not a Configuration of Kueue."""


def read_configuration(text: str) -> Manifest:
    try:
        content = load_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigurationError("is not valid YAML") from error
    if not isinstance(content, dict) or content.get("kind") != "Configuration":
        raise ConfigurationError("is not a Configuration of Kueue")
    return content


def write_configuration(content: Manifest) -> str:
    text: str = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text


def patched(content: Manifest, patch: Manifest) -> Manifest:
    """Return the patched Configuration; the same value if the patch changes nothing."""
    if is_edit(at(patch, *_FRAMEWORKS)) and at(content, *_FRAMEWORKS) is None:
        # Start from Kueue's own default: a list that is present replaces it.
        content = _merged(content, {"integrations": {"frameworks": list(DEFAULT_FRAMEWORKS)}})
    result: Manifest = _merged(content, patch)
    return content if result == content else result


def is_edit(value: Any) -> bool:
    """Whether a value lists what to add to a list, or to remove from it."""
    return (
        isinstance(value, MAPS)
        and bool(value)
        and all(name in EDITS and isinstance(entry, list) for name, entry in value.items())
    )


def plain(patch: Any) -> Any:
    """Return what a patch sets, with lists in place of edits and without removals, for checks that know no patches."""
    if is_edit(patch):
        return list(as_list(patch.get("add")))
    if isinstance(patch, MAPS):
        return {name: plain(value) for name, value in patch.items() if value is not None}
    return patch


def _merged(old: Any, patch: Any) -> Any:
    if is_edit(patch):
        return _edited(list(as_list(old)), patch)
    if not isinstance(patch, MAPS):
        return patch
    result = dict(old) if isinstance(old, MAPS) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _edited(old: list[Any], edit: Mapping[str, Any]) -> list[Any]:
    kept = [entry for entry in old if entry not in as_list(edit.get("remove"))]
    return kept + [entry for entry in dict.fromkeys(as_list(edit.get("add"))) if entry not in kept]


def check_configuration(content: Manifest, version: KueueVersion) -> tuple[RuleViolation, ...]:
    """Return the errors that this release reports for a whole Configuration."""
    api_version = as_text(content.get("apiVersion"))
    known = [f"{API_GROUP}/{name}" for name in api_versions(version)]
    if api_version not in known:
        problem = f"{api_version!r} is not supported by Kueue {version}; allowed: {', '.join(known)}"
        return (RuleViolation(RULE, "apiVersion", problem),)
    return _check(content, api_version.rpartition("/")[2], version, is_whole=True)


def check_patch(patch: Manifest, version: KueueVersion) -> tuple[RuleViolation, ...]:
    """Return the errors that this release reports for a part of a Configuration, in either API version."""
    content = plain(patch)
    written = as_text(content.get("apiVersion")).rpartition("/")[2]
    tried = [written] if written in api_versions(version) else [*reversed(api_versions(version))]
    verdicts = [_check(content, name, version, is_whole=False) for name in tried]
    return min(verdicts, key=len)


def api_versions(version: KueueVersion) -> tuple[str, ...]:
    return (V1BETA1, V1BETA2) if version >= V1BETA2_SINCE else (V1BETA1,)


def _check(content: Manifest, api_version: str, version: KueueVersion, *, is_whole: bool) -> tuple[RuleViolation, ...]:
    node = configuration_structure(api_version, version)
    found = [_worded(violation) for violation in check_value(node, plain(content), "")]
    if not found:
        found = [violation for rule in _RULES for violation in rule(content, version)]
    if not found and is_whole:
        found = [violation for rule in _RULES_OF_WHOLE for violation in rule(content)]
    return tuple(found)


def _worded(violation: RuleViolation) -> RuleViolation:
    hint = _OTHER_NAMES.get(violation.field, violation.hint) if violation.rule == "KF101" else violation.hint
    return RuleViolation(RULE, violation.field, violation.problem, hint)


def _check_strategies(content: Manifest, _version: KueueVersion) -> Findings:
    strategies = at(content, "fairSharing", "preemptionStrategies")
    if strategies is not None and enables_fair_sharing(content) and strategies not in _STRATEGIES:
        allowed = " or ".join(f"[{', '.join(entry)}]" for entry in _STRATEGIES)
        problem = f"[{', '.join(strategies)}] is not allowed; allowed: {allowed}"
        yield RuleViolation(RULE, "fairSharing.preemptionStrategies", problem)


def _check_selectors(content: Manifest, _version: KueueVersion) -> Findings:
    """Kueue does not start if it would have to manage the pods of the control plane, or its own."""
    own = as_text(content.get("namespace")) or DEFAULT_NAMESPACE
    for path in _SELECTORS:
        selector = at(content, *path)
        chosen = [name for name in ("kube-system", own) if selector is not None and _selects(selector, name)]
        if chosen:
            problem = f"selects the namespace {' and '.join(chosen)}, which Kueue must not manage"
            hint = f"add matchExpressions: [{{key: {NAMESPACE_LABEL}, operator: NotIn, values: [kube-system, {own}]}}]"
            yield RuleViolation(RULE, ".".join(path), problem, hint)


def _selects(selector: Any, namespace: str) -> bool:
    labels = {NAMESPACE_LABEL: namespace}
    wanted = as_map(at(selector, "matchLabels")).items()
    expressions = [as_map(entry) for entry in as_list(at(selector, "matchExpressions"))]
    return all(labels.get(key) == value for key, value in wanted) and all(_holds(one, labels) for one in expressions)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(as_text(expression.get("key"))), as_list(expression.get("values"))
    match as_text(expression.get("operator")):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _check_dependencies(content: Manifest, version: KueueVersion) -> Findings:
    listed = at(content, "integrations", "frameworks")
    if not isinstance(listed, list) or "pod" in listed or version >= POD_NEEDED_UNTIL:
        return
    for number, name in enumerate(listed):
        if name in _NEED_POD:
            yield RuleViolation(RULE, f"integrations.frameworks[{number}]", f"{name} needs pod in this list too")


def _check_dispatcher(content: Manifest) -> Findings:
    name = at(content, "multiKueue", "dispatcherName")
    if at(content, "multiKueue", "incrementalDispatcherConfig") is not None and name != INCREMENTAL:
        problem = f"is only for the incremental dispatcher, but dispatcherName is {name or 'not set'}"
        hint = f"set multiKueue.dispatcherName to {INCREMENTAL}"
        yield RuleViolation(RULE, "multiKueue.incrementalDispatcherConfig", problem, hint)


def _check_undeclared(content: Manifest) -> Findings:
    strategy = at(content, "resources", "quotaCheckStrategy")
    if strategy == "IgnoreUndeclared" and at(content, "resources", "excludeResourcePrefixes"):
        problem = "IgnoreUndeclared is not allowed together with excludeResourcePrefixes"
        yield RuleViolation(RULE, "resources.quotaCheckStrategy", problem, "remove one of them")


def _check_providers(content: Manifest) -> Findings:
    profile = at(content, "multiKueue", "clusterProfile")
    if at(profile, "accessProviders") and at(profile, "credentialsProviders"):
        problem = "is not allowed together with accessProviders, which replaced it"
        yield RuleViolation(RULE, "multiKueue.clusterProfile.credentialsProviders", problem, "remove one of them")


_RULES: tuple[Callable[[Manifest, KueueVersion], Findings], ...] = (
    _check_strategies,
    _check_selectors,
    _check_dependencies,
)


_RULES_OF_WHOLE: tuple[Callable[[Manifest], Findings], ...] = (_check_dispatcher, _check_undeclared, _check_providers)


def refused_gates(gates: Manifest, target: KueueVersion) -> Iterator[str]:
    """Return why a release does not start with these feature gates, one sentence per gate."""
    for name, value in gates.items():
        gone = _GONE.get(name)
        if gone is not None and target >= gone:
            yield f"featureGates.{name}: Kueue {gone} and newer do not know it"
            continue
        locked = _LOCKED.get(name)
        if locked is not None and target >= locked[0] and value is not locked[1]:
            yield f"featureGates.{name}: is locked to {str(locked[1]).lower()} since Kueue {locked[0]}"
