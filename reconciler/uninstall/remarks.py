"""What the end of a fleet leaves to a person, because kfleet did it until now, or must not do it."""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.kueue.reading import at
from reconciler.multikueue.model import read_credential
from reconciler.objects import Manifest, Ref
from reconciler.plan.prune import RELEASED_KINDS, members_of
from reconciler.spec.enums import CapacitySource
from reconciler.spec.kubestellar import ADMISSION_GROUP, CHECK_CONTROLLER, GUARD
from reconciler.spec.model import FleetSpec
from reconciler.state.model import ClusterView
from reconciler.uninstall.model import Ending

_WRITERS = "end what still applies this fleet (kfleet run, a CronJob, a pipeline): it would write everything again"


def find_remarks(spec: FleetSpec, views: Iterable[ClusterView], ending: Ending) -> tuple[str, ...]:
    """The remarks about a fleet, by its spec and by what it has on its clusters."""
    known = [*views]
    own = [*_kept(spec, known)] if ending is Ending.RELEASE else [*_undeleted(known)]
    return (*own, *_beside(spec), _WRITERS)


def _kept(spec: FleetSpec, views: Sequence[ClusterView]) -> Iterator[str]:
    for view in views:
        members = members_of(view)
        yield from (line for ref, live in sorted(members.items()) for line in _of_object(ref, live))
    if any(flavor.capacity.source is not CapacitySource.STATIC for flavor in spec.flavors) or spec.master_queues:
        yield "quotas that follow an observed capacity stay as they are now"


def _of_object(ref: Ref, live: Manifest) -> Iterator[str]:
    if ref.kind == "Secret":
        token = read_credential(live).token
        if token and token.expires:
            when = f"{token.expires:%Y-%m-%d %H:%M} UTC"
            problem = "no kfleet renews it, and MultiKueue then loses the worker and its jobs"
            yield f"{ref}: its token works until {when}; {problem}: put a kubeconfig of your own into it before"
    elif ref.kind == "AdmissionCheck" and at(live, "spec", "controllerName") == CHECK_CONTROLLER:
        problem = "kfleet answered it, so queues with it admit no further job, and jobs on workers report no end"
        yield f"{ref}: {problem}: remove it from its queues, or use --delete"
    elif (ref.group, ref.kind, ref.name) == (ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding", GUARD):
        yield f"{ref}: it lets only kfleet place jobs: delete it to place them yourself"


def _undeleted(views: Iterable[ClusterView]) -> Iterator[str]:
    refs = [ref for view in views for ref in members_of(view) if ref.kind in RELEASED_KINDS]
    for kind in sorted({ref.kind for ref in refs}):
        names = sorted(str(ref) for ref in refs if ref.kind == kind)
        yield f"no {kind} is deleted, nor what is in it: {', '.join(names)}"


def _beside(spec: FleetSpec) -> Iterator[str]:
    for cluster in spec.clusters:
        if cluster.kueue.configuration:
            yield f"{cluster.name}: Kueue keeps the Configuration that spec.kueue.config has set"
        if cluster.has_published_metrics:
            yield f"{cluster.name}: its ClusterMetrics on the manager stay, and nothing brings them up to date"
