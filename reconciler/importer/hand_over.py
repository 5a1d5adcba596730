"""How objects come from another tool to kfleet without a moment in which they are gone."""

from collections.abc import Iterator, Sequence

from reconciler.importer.collect import claimant
from reconciler.importer.model import ImportRequest, LeftObject, LiveObject
from reconciler.text import counted

_ARGO = "argocd.argoproj.io"
_FLUX = "kustomize.toolkit.fluxcd.io"
# Each tool deletes what is no longer in its source. The first step tells it not to, before anything else happens.
_STEPS = {
    "Argo CD": (
        f"annotate the objects in Argo CD's source: {_ARGO}/sync-options: Prune=false,Delete=false; sync once",
        "apply the fleet with kfleet",
        "remove the objects from Argo CD's source, or the Application: argocd app delete NAME --cascade=false",
        f"remove Argo CD's mark: kubectl annotate KIND NAME {_ARGO}/tracking-id-",
    ),
    "Flux": (
        f"annotate the objects in Flux's source: {_FLUX}/prune: disabled; reconcile once",
        "suspend it: flux suspend kustomization NAME (of a HelmRelease: flux suspend helmrelease NAME)",
        "apply the fleet with kfleet",
        "remove the objects from Flux's source, then: flux resume kustomization NAME",
        f"remove Flux's marks: kubectl label KIND NAME {_FLUX}/name- {_FLUX}/namespace-",
    ),
    "Helm": (
        "annotate the objects in the chart: helm.sh/resource-policy: keep; helm upgrade once",
        "apply the fleet with kfleet",
        "remove the objects from the chart and helm upgrade, or helm uninstall NAME: Helm says what it keeps",
        "remove Helm's marks: kubectl annotate KIND NAME meta.helm.sh/release-name- meta.helm.sh/release-namespace-",
    ),
}
_LAST = "set policy.adopt of the Fleet back to unowned"


def hand_over_steps(taken: Sequence[LiveObject], left: Sequence[LeftObject], request: ImportRequest) -> tuple[str, ...]:
    """The steps for each tool that still writes objects; nothing is deleted or changed by any of them."""
    if request.takes_claimed:
        owners = [owner for found in taken if (owner := claimant(found.live))]
    else:
        owners = [one.owner for one in left if one.owner in _STEPS]
    return tuple(line for tool in dict.fromkeys(owners) for line in _lines(tool, owners.count(tool), request))


def _lines(tool: str, number: int, request: ImportRequest) -> Iterator[str]:
    if not request.takes_claimed:
        yield f"{tool} writes {counted(number, 'object')}, which stay with it; import them with --managed-by kfleet"
        return
    yield f"{tool} writes {counted(number, 'object')} of the fleet. To hand them over, so that nothing is deleted:"
    steps = _STEPS.get(tool, (f"stop {tool} from writing them, without deleting them", "apply the fleet with kfleet"))
    yield from (f"  {position}. {step}" for position, step in enumerate((*steps, _LAST), start=1))
