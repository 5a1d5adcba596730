"""What a release of Kueue does not start with, and what it cannot read: known before it is installed.

Kueue 0.20 was not read in its sources. What is said about it is what its release notes say.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from reconciler.kueue.configuration import check_configuration, read_configuration, refused_gates
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import as_map

WITHOUT_V1BETA1 = KueueVersion(0, 20)
# After an upgrade to these the API server cannot watch: the definitions name a conversion webhook that is gone.
_BROKEN = (KueueVersion(0, 20, 0), KueueVersion(0, 20, 5))
BROKEN_REMEDY = "use 0.20.6 or newer"
# It ends at once where resource.k8s.io/v1 is not served, which came with Kubernetes 1.34 (kueue#13600).
NEEDS_RESOURCE_SLICES = KueueVersion(0, 19, 0)
REWRITE = (
    "write every object once (kubectl get … -o json | kubectl replace -f -), then remove the version from "
    "status.storedVersions"
)


class StartProblem(NamedTuple):
    """Why a release does not start: `code` is what it is about."""

    code: str
    message: str
    remedy: str = ""


def start_problems(text: str, target: KueueVersion) -> Iterator[StartProblem]:
    """Return why a release does not start with this Configuration. Raises ConfigurationError for one of no Kueue."""
    content = read_configuration(text)
    for violation in check_configuration(content, target):
        message = f"Kueue {target} does not start: {violation.field}: {violation.problem}"
        yield StartProblem("configuration", message, violation.hint)
    for problem in refused_gates(as_map(content.get("featureGates")), target):
        yield StartProblem("feature-gate", f"Kueue {target} does not start: {problem}", "remove it before the upgrade")


def versions_that_go(stored: Iterable[str], kept: Collection[str]) -> list[str]:
    """Return the API versions in which objects may be stored and that would no longer be served."""
    return [version for version in stored if version not in kept]


def stored_text(going: Iterable[str], target: KueueVersion) -> str:
    return (
        f"objects may be stored as {', '.join(going)}, which Kueue {target} no longer serves: "
        "they could not be read any more"
    )


def broken_text(target: KueueVersion) -> str:
    """Why a release must not be installed; empty for all others."""
    if not _BROKEN[0] <= target <= _BROKEN[1]:
        return ""
    return f"Kueue {target}: the API server's watch cache fails for queues and workloads after the upgrade to it"
