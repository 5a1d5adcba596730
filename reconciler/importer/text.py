"""What an import says: what became of clusters and objects, and how objects come from another tool to kfleet."""

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.importer.model import ImportedFleet, ImportRequest, LeftObject, LiveObject, ObservedContexts
from reconciler.state.claimants import claimant
from reconciler.text import counted

_MOST_SHOWN = 20
_ARGO = "argocd.argoproj.io"
_FLUX = "kustomize.toolkit.fluxcd.io"
# Each tool deletes what is no longer in its source. The first step tells it not to, before anything else happens.
_STEPS = {
    "Argo CD": (
        f"annotate the objects in Argo CD's source: {_ARGO}/sync-options: Prune=false,Delete=false; sync once",
        "apply the fleet with kfleet",
        "remove the objects from Argo CD's source, or the Application: argocd app delete NAME --cascade=false",
        f"remove Argo CD's mark: kubectl annotate KIND NAME {_ARGO}/tracking-id-",
        "where it tracks by label, the default before 3.0: kubectl label KIND NAME app.kubernetes.io/instance-",
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


def import_text(seen: ObservedContexts, made: ImportedFleet) -> str:
    taken = Counter(found.ref.cluster for found in made.taken)
    rows = [("CLUSTER", "ROLE", "KUEUE", "OBJECTS")]
    for name, role in made.roles.items():
        release = seen.objects.clusters[name].kueue.removeprefix("v") or "unknown"
        rows.append((name, str(role), release, str(taken[name])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    total = len(made.taken)
    shaped = f"{made.shaped} as Flavors, Queues and Tenants, {total - made.shaped} as they are"
    return "\n".join([*table, "", f"{counted(total, 'object')}: {shaped}"])


def notes_of_import(seen: ObservedContexts, made: ImportedFleet) -> Iterator[str]:
    """What a person should read beside the result: what is not in the fleet, and what to do about it."""
    yield from _left(made)
    yield from (f"not seen: {gap}" for gap in seen.gaps)
    yield from made.notes
    yield from made.hand_over


def _left(made: ImportedFleet) -> Iterator[str]:
    """By reason, because a hundred objects of one tool have one."""
    reasons: dict[str, list[LeftObject]] = {}
    for one in made.left:
        reasons.setdefault(one.why, []).append(one)
    for why, objects in reasons.items():
        shown = ", ".join(str(one.ref) for one in objects[:_MOST_SHOWN])
        more = f" and {len(objects) - _MOST_SHOWN} more" if len(objects) > _MOST_SHOWN else ""
        yield f"left out: {shown}{more}: {why}"


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
