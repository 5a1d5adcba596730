"""The kinds of Kueue, and which API versions each release of Kueue serves for them.

The table starts at Kueue 0.10. Cohort and Topology changed their only version in place (0.13 and 0.14), without a
conversion; every other step kept the older version served.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.errors import KfleetError
from reconciler.objects import Manifest, group_of

GROUP = "kueue.x-k8s.io"
CANONICAL = "v1beta2"
FINALIZER = "kueue.x-k8s.io/resource-in-use"
# The controller of AdmissionChecks by which Kueue dispatches jobs to workers.
MULTIKUEUE_CONTROLLER = f"{GROUP}/multikueue"

_WRITTEN_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:[-+][0-9A-Za-z.+-]*)?", re.ASCII)


class KueueVersionError(KfleetError):
    """A text that is not a release of Kueue."""


@dataclass(frozen=True, slots=True, order=True)
class KueueVersion:
    """A release of Kueue; a pre-release counts as its release, because its API is the same."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + (f".{self.patch}" if self.patch else "")


OLDEST = KueueVersion(0, 10)
NEWEST = KueueVersion(0, 19)


@dataclass(frozen=True, slots=True)
class Serving:
    """One API version of a kind: served from `since`, and until before `until` if it was removed."""

    api_version: str
    since: KueueVersion
    until: KueueVersion | None = None

    def is_served_by(self, version: KueueVersion) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    plural: str
    is_namespaced: bool
    has_status: bool
    servings: tuple[Serving, ...]


V1BETA2_SINCE = KueueVersion(0, 15)

_V1BETA2 = Serving("v1beta2", V1BETA2_SINCE)
_ALWAYS_BETA = (_V1BETA2, Serving("v1beta1", OLDEST))


def _once_alpha(promoted: KueueVersion) -> tuple[Serving, ...]:
    return (_V1BETA2, Serving("v1beta1", promoted), Serving("v1alpha1", OLDEST, until=promoted))


KINDS = (
    Kind("AdmissionCheck", "admissionchecks", False, True, _ALWAYS_BETA),
    Kind("ClusterQueue", "clusterqueues", False, True, _ALWAYS_BETA),
    Kind("Cohort", "cohorts", False, True, _once_alpha(KueueVersion(0, 13))),
    Kind("LocalQueue", "localqueues", True, True, _ALWAYS_BETA),
    Kind("MultiKueueCluster", "multikueueclusters", False, True, _ALWAYS_BETA),
    Kind("MultiKueueConfig", "multikueueconfigs", False, False, _ALWAYS_BETA),
    Kind("ProvisioningRequestConfig", "provisioningrequestconfigs", False, False, _ALWAYS_BETA),
    Kind("ResourceFlavor", "resourceflavors", False, False, _ALWAYS_BETA),
    Kind("Topology", "topologies", False, False, _once_alpha(KueueVersion(0, 14))),
    Kind("Workload", "workloads", True, True, _ALWAYS_BETA),
    Kind("WorkloadPriorityClass", "workloadpriorityclasses", False, False, _ALWAYS_BETA),
)
KIND_BY_NAME = {kind.name: kind for kind in KINDS}


def parse_version(text: str) -> KueueVersion:
    match = _WRITTEN_VERSION.fullmatch(text)
    if match is None:
        raise KueueVersionError(f"kueue version: {text!r} is not a release: write it like 0.19 or v0.16.2")
    return KueueVersion(int(match[1]), int(match[2]), int(match[3] or 0))


def first_version(*texts: str) -> KueueVersion:
    """Return the release in the first text that contains one, or else the newest."""
    for text in texts:
        try:
            return parse_version(text)
        except KueueVersionError:
            continue
    return NEWEST


def kind_of(manifest: Manifest) -> Kind | None:
    """Return the Kueue kind of a manifest; None for every other object, and for one without a kind."""
    name = manifest.get("kind")
    if not isinstance(name, str) or not isinstance(manifest.get("apiVersion"), str) or group_of(manifest) != GROUP:
        return None
    return KIND_BY_NAME.get(name)


def served_versions(kind: Kind, version: KueueVersion) -> tuple[str, ...]:
    """Return the API versions that this Kueue serves for the kind, the newest first."""
    return tuple(serving.api_version for serving in kind.servings if serving.is_served_by(version))


def newest_served(kind: Kind, version: KueueVersion) -> str:
    """Return the API version to write; empty for a Kueue older than the table."""
    return next(iter(served_versions(kind, version)), "")


def newest_serving(kind: Kind, api_version: str) -> KueueVersion | None:
    """Return the newest Kueue that serves this API version of the kind, as far as the table goes."""
    serving = next((one for one in kind.servings if one.api_version == api_version), None)
    if serving is None:
        return None
    return NEWEST if serving.until is None else KueueVersion(serving.until.major, serving.until.minor - 1)


def newest_release(served: Mapping[str, str]) -> KueueVersion:
    """Return the newest Kueue whose preferred API versions are these, by kind: some fields differ between releases."""
    minors = range(NEWEST.minor, OLDEST.minor - 1, -1)
    releases = (KueueVersion(NEWEST.major, minor) for minor in minors)
    known = [(KIND_BY_NAME[name], version) for name, version in served.items() if name in KIND_BY_NAME]
    return next((one for one in releases if all(newest_served(kind, one) == text for kind, text in known)), NEWEST)
