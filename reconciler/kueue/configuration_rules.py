"""The errors with which Kueue rejects a Configuration at start: unknown fields, wrong types, names, contradictions.

Kueue parses its Configuration strictly. It exits at once if its release does not know a field, and while it is down the
API server rejects every write that Kueue's webhooks handle. The fields are listed in configuration.json.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.kueue.configuration import API_GROUP, plain
from reconciler.kueue.kinds import V1BETA2_SINCE, KueueVersion
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.rules.structure import check_value
from reconciler.kueue.structure import configuration_structure
from reconciler.objects import Manifest

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
    # Kueue ignores a block that is disabled.
    is_on = not as_text(content.get("apiVersion")).endswith(V1BETA1) or at(content, "fairSharing", "enable") is True
    if strategies is not None and is_on and strategies not in _STRATEGIES:
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
