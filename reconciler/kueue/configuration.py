"""The parts of Kueue's own Configuration that matter to other clusters; v1beta1 and v1beta2 agree on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from reconciler.errors import KfleetError
from reconciler.kueue.reading import MAPS, as_list, as_map, as_text, at
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
        content = yaml.load(text, yaml.CSafeLoader)
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
