"""Objects as they are sent: in the newest API version that their cluster serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.desired.model import DesiredObject
from reconciler.errors import SpecError
from reconciler.kueue.kinds import NEWEST, Kind, KueueVersion, kind_of, newest_served, parse_version
from reconciler.kueue.rules import check_object
from reconciler.kueue.write import CannotExpressError, to_version
from reconciler.objects import Manifest
from reconciler.spec.model import Cluster

MASTER_QUEUE = "MasterQueue"


@dataclass(frozen=True, slots=True)
class KueueApi:
    """What a cluster's Kueue takes: its release, and the API version of each kind where the cluster was asked."""

    version: KueueVersion
    served: Mapping[str, str] = field(default_factory=dict)

    def api_version(self, kind: Kind) -> str:
        return self.served.get(kind.name) or newest_served(kind, self.version)


def offline_api(cluster: Cluster) -> KueueApi:
    """What the spec says of a cluster that is not asked."""
    return KueueApi(parse_version(cluster.kueue.version) if cluster.kueue.version else NEWEST)


def written(entry: DesiredObject, api: KueueApi) -> Manifest:
    """The manifest to send. Something that the cluster's version cannot express is an error of the spec."""
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
    """What pools made of a queue was never linted: there may be more of them than this Kueue takes."""
    violations = check_object(entry.manifest, api.version)
    if violations:
        found = "; ".join(str(violation) for violation in violations[:3])
        raise entry.document.error((), f"{found}; narrow pools or poolRegExp, or divide the MasterQueue")


def _cannot(entry: DesiredObject, error: CannotExpressError) -> SpecError:
    return entry.document.error((), f"{entry.ref}: {error}")
