"""Converts objects to the newest API version that their cluster serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.errors import SpecError
from reconciler.kueue.downgrade import CannotExpressError, to_version
from reconciler.kueue.kinds import NEWEST, Kind, KueueVersion, kind_of, newest_served, parse_version
from reconciler.kueue.rules import check_object
from reconciler.objects import Manifest
from reconciler.render.model import DesiredObject
from reconciler.spec.model import Cluster

MASTER_QUEUE = "MasterQueue"


@dataclass(frozen=True, slots=True)
class KueueApi:
    """The Kueue release of a cluster and, if the cluster was probed, the API version of each kind."""

    version: KueueVersion
    served: Mapping[str, str] = field(default_factory=dict)

    def api_version(self, kind: Kind) -> str:
        return self.served.get(kind.name) or newest_served(kind, self.version)


def offline_api(cluster: Cluster) -> KueueApi:
    """The Kueue release by the spec, for a cluster that is not probed."""
    return KueueApi(parse_version(cluster.kueue.version) if cluster.kueue.version else NEWEST)


def written(entry: DesiredObject, api: KueueApi) -> Manifest:
    """The manifest to send. A field that the cluster's version cannot express is an error of the spec."""
    kind = kind_of(entry.manifest)
    if kind is None:
        return entry.manifest
    if entry.document.kind == MASTER_QUEUE:
        _refuse_excess(entry, api)
    target = api.api_version(kind)
    if not target:
        raise entry.document.error((), f"{entry.ref}: kueue {api.version} has no {kind.name}")
    try:
        return to_version(entry.manifest, target, api.version)
    except CannotExpressError as error:
        raise _cannot(entry, error) from error


def _refuse_excess(entry: DesiredObject, api: KueueApi) -> None:
    """Reject a queue that pools made too large for this Kueue: its content was not known to lint."""
    violations = check_object(entry.manifest, api.version)
    if violations:
        found = "; ".join(str(violation) for violation in violations[:3])
        raise entry.document.error((), f"{found}; narrow pools or poolRegExp, or divide the MasterQueue")


def _cannot(entry: DesiredObject, error: CannotExpressError) -> SpecError:
    return entry.document.error((), f"{entry.ref}: {error}")
