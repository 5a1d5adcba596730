"""What Kueue's own Configuration says that matters to other clusters; v1beta1 and v1beta2 say it in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.kueue.configuration_patch import DEFAULT_FRAMEWORKS, ConfigurationError, patched, read_configuration
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

__all__ = ["ConfigurationError", "Settings", "assumed_settings", "read_settings", "united"]

CONFIG_KEY = "controller_manager_config.yaml"
DEFAULT_ORIGIN = "multikueue"
QUOTA_AUTOMATION = "MultiKueueManagerQuotaAutomation"
IDENTIFIER_ANNOTATIONS = "WorkloadIdentifierAnnotations"
# What the manifests of Kueue's releases enable.
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


@dataclass(frozen=True, slots=True)
class Settings:
    """`external_frameworks` are kinds of others that MultiKueue sends too, as `Kind.version.group`.

    `origin` marks on a worker which manager a Workload came from.
    """

    frameworks: tuple[str, ...] = SHIPPED_FRAMEWORKS
    external_frameworks: tuple[str, ...] = ()
    origin: str = DEFAULT_ORIGIN
    has_quota_automation: bool = False
    has_identifier_annotations: bool = True


def read_settings(text: str, patch: Manifest | None = None) -> Settings:
    """The settings of a Kueue that runs with this Configuration, or will when it has been patched."""
    return _settings(patched(read_configuration(text), patch or {}))


def assumed_settings(patch: Manifest) -> Settings:
    """The settings of a Kueue that nobody looked at: as shipped, with what the fleet sets."""
    return _settings(patched({"integrations": {"frameworks": list(SHIPPED_FRAMEWORKS)}}, patch))


def united(one: Settings, other: Settings) -> Settings:
    """What serves a Kueue of either settings; all else is as in the first."""
    return replace(
        one,
        frameworks=tuple(dict.fromkeys((*one.frameworks, *other.frameworks))),
        external_frameworks=tuple(dict.fromkeys((*one.external_frameworks, *other.external_frameworks))),
        has_quota_automation=one.has_quota_automation or other.has_quota_automation,
    )


def _settings(content: Mapping[str, object]) -> Settings:
    listed = tuple(as_text(name) for name in as_list(at(content, "integrations", "frameworks")))
    external = as_list(at(content, "multiKueue", "externalFrameworks"))
    return Settings(
        frameworks=listed or DEFAULT_FRAMEWORKS,
        external_frameworks=tuple(as_text(as_map(entry).get("name")) for entry in external),
        origin=as_text(at(content, "multiKueue", "origin")) or DEFAULT_ORIGIN,
        has_quota_automation=at(content, "featureGates", QUOTA_AUTOMATION) is True,
        has_identifier_annotations=at(content, "featureGates", IDENTIFIER_ANNOTATIONS) is not False,
    )
