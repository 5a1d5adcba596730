"""One cluster for one job, by the rule of the fleet, and why it and not another."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.objects import ClusterName
from reconciler.placement.model import PodSet
from reconciler.placement.room import Misfit, Room, find_fit, free_share, request_text, shape_of
from reconciler.spec.choices import PlacementRule
from reconciler.spec.kubestellar import KubeStellar

MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """None where nobody has room."""

    cluster: ClusterName | None
    why: str


def choose(
    pod_sets: tuple[PodSet, ...],
    rooms: Mapping[ClusterName, Room],
    settings: KubeStellar,
    reasons: Mapping[ClusterName, str],
) -> Choice:
    """The first in the order of the rule that has room for all pods, which are then taken from it.

    `reasons` says why other clusters do not come into question at all.
    """
    shape = shape_of(pod_sets)
    shares = {name: free_share(room, pod_sets) for name, room in rooms.items()}
    against = dict(reasons)
    for name in sorted(shares, key=lambda one: _rank(one, shares[one], settings)):
        answer = find_fit(rooms[name], pod_sets, shape)
        if isinstance(answer, Misfit):
            against[name] = answer.why
            continue
        rooms[name].take(answer.taken)
        wanted = " and ".join(request_text(pods) for pods in pod_sets)
        others = {other: share for other, share in shares.items() if other != name}
        rest = {other: _state(rooms[other], share, pod_sets, shape) for other, share in others.items()} | against
        why = f"{wanted}, by {settings.rule} with {_percent(shares[name])} free"
        return Choice(name, "; ".join((why, *_listed(rest))))
    wanted = " and ".join(request_text(pods) for pods in pod_sets)
    return Choice(None, "; ".join((f"no cluster has room for {wanted}", *_listed(against))))


def _state(room: Room, share: Fraction, pod_sets: tuple[PodSet, ...], shape: str) -> str:
    """Of a cluster that was not even tried: where nothing is free, why."""
    answer = None if share else find_fit(room, pod_sets, shape)
    return answer.why if isinstance(answer, Misfit) else f"not tried, {_percent(share)} free"


def _rank(name: ClusterName, share: Fraction, settings: KubeStellar) -> tuple[int, Fraction, ClusterName]:
    if settings.rule is PlacementRule.PACK:
        return 0, share, name
    weight = settings.weights.get(name, 0) if settings.rule is PlacementRule.WEIGHTS else 0
    return -weight, -share, name


def _listed(reasons: Mapping[ClusterName, str]) -> list[str]:
    named = [f"{name}: {reasons[name]}" for name in sorted(reasons)]
    more = len(named) - MOST_NAMED
    return named if more <= 0 else [*named[:MOST_NAMED], f"and {more} more clusters"]


def _percent(share: Fraction) -> str:
    return f"{int(share * 100)}%"
