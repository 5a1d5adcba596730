"""What Kueue's own Configuration says that matters to other clusters; v1beta1 and v1beta2 say it in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from reconciler.errors import KfleetError
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

CONFIG_KEY = "controller_manager_config.yaml"
DEFAULT_ORIGIN = "multikueue"
QUOTA_AUTOMATION = "MultiKueueManagerQuotaAutomation"
IDENTIFIER_ANNOTATIONS = "WorkloadIdentifierAnnotations"
# What Kueue's code enables where its Configuration names nothing.
_DEFAULT_FRAMEWORKS = ("batch/job",)
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


class ConfigurationError(KfleetError):
    """A text that is no Configuration of Kueue."""


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


def read_settings(text: str) -> Settings:
    """The settings of a running Kueue, from the text of its Configuration."""
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError("is no YAML") from error
    if not isinstance(content, dict) or content.get("kind") != "Configuration":
        raise ConfigurationError("is no Configuration of Kueue")
    return _settings(content, _DEFAULT_FRAMEWORKS)


def assumed_settings(patch: Manifest) -> Settings:
    """The settings of a Kueue that nobody looked at: as shipped, with what the fleet sets."""
    return _settings(patch, SHIPPED_FRAMEWORKS)


def _settings(content: Mapping[str, object], frameworks: tuple[str, ...]) -> Settings:
    listed = tuple(as_text(name) for name in as_list(at(content, "integrations", "frameworks")))
    external = as_list(at(content, "multiKueue", "externalFrameworks"))
    return Settings(
        frameworks=listed or frameworks,
        external_frameworks=tuple(as_text(as_map(entry).get("name")) for entry in external),
        origin=as_text(at(content, "multiKueue", "origin")) or DEFAULT_ORIGIN,
        has_quota_automation=at(content, "featureGates", QUOTA_AUTOMATION) is True,
        has_identifier_annotations=at(content, "featureGates", IDENTIFIER_ANNOTATIONS) is not False,
    )
