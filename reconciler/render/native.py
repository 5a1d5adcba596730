"""Native documents of the fleet. Objects of Kueue are converted to Kueue's newest API version."""

from collections.abc import Iterator
from dataclasses import replace

from reconciler.flux.render import with_queue
from reconciler.kueue.kinds import KIND_BY_NAME, kind_of
from reconciler.kueue.reading import as_list, as_map
from reconciler.multikueue.model import WorkerRemovals
from reconciler.multikueue.removal import held_for, staying_in, with_room
from reconciler.objects import Manifest
from reconciler.render.model import DesiredObject, desired_object
from reconciler.render.queues import held
from reconciler.spec.enums import Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec


def native_objects(spec: FleetSpec, waiting: WorkerRemovals) -> Iterator[DesiredObject]:
    why = held_for(waiting)
    for entry in spec.objects:
        for cluster in spec.targeted(entry.targets):
            labelled = with_queue(_fitting(entry.current, cluster, waiting), spec, cluster)
            notes = (*entry.notes, *([labelled.note] if labelled.note else ()))
            made = desired_object(cluster, labelled.manifest, entry.document, *notes)
            yield replace(made, held=why) if why and made.ref.kind == "MultiKueueConfig" else made


def _fitting(manifest: Manifest, cluster: Cluster, waiting: WorkerRemovals) -> Manifest:
    """The native object, with a queue stopped on a drained cluster, and with workers that cannot be removed yet."""
    if not cluster.is_drained and cluster.role is not Role.MANAGER:
        return manifest
    kind = kind_of(manifest)
    content = as_map(manifest.get("spec"))
    if kind is KIND_BY_NAME["ClusterQueue"] and cluster.is_drained:
        is_evicting = content.get("stopPolicy") == StopPolicy.HOLD_AND_DRAIN.value
        policy = held(cluster, StopPolicy.HOLD_AND_DRAIN if is_evicting else StopPolicy.HOLD)
        return {**manifest, "spec": {**content, "stopPolicy": policy.value}}
    if kind is KIND_BY_NAME["MultiKueueConfig"] and (staying := staying_in(manifest["metadata"]["name"], waiting)):
        wanted = with_room(manifest["metadata"]["name"], as_list(content.get("clusters")), waiting, cluster)
        return {**manifest, "spec": {**content, "clusters": [*wanted, *staying]}}
    return manifest
