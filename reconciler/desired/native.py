"""Objects that the fleet holds as they are written, brought to Kueue's newest API version where they are Kueue's."""

from collections.abc import Iterator
from dataclasses import replace

from reconciler.desired.leaving import held_for, staying_in, with_room
from reconciler.desired.miniclusters import with_queue
from reconciler.desired.model import DesiredObject
from reconciler.desired.queues import held
from reconciler.desired.shape import desired_object
from reconciler.kueue.kinds import KIND_BY_NAME, kind_of
from reconciler.kueue.reading import as_list, as_map
from reconciler.leavers import Leavers
from reconciler.objects import Manifest
from reconciler.spec.choices import Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec


def native_objects(spec: FleetSpec, waiting: Leavers) -> Iterator[DesiredObject]:
    why = held_for(waiting)
    for entry in spec.objects:
        for cluster in spec.targeted(entry.targets):
            labelled = with_queue(_fitting(entry.current, cluster, waiting), spec, cluster)
            notes = (*entry.notes, *([labelled.note] if labelled.note else ()))
            made = desired_object(cluster, labelled.manifest, entry.document, *notes)
            yield replace(made, held=why) if why and made.ref.kind == "MultiKueueConfig" else made


def _fitting(manifest: Manifest, cluster: Cluster, waiting: Leavers) -> Manifest:
    """As it is written, but stopped on a cluster that is drained, and with the workers that cannot leave yet."""
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
