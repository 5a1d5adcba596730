"""Objects that the fleet holds as they are written, brought to Kueue's newest API version where they are Kueue's."""

from collections.abc import Iterator

from reconciler.desired.model import DesiredObject
from reconciler.desired.shape import desired_object
from reconciler.kueue.kinds import kind_of
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest
from reconciler.spec.model import FleetSpec, NativeObject


def native_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    for entry in spec.objects:
        manifest, notes = _current(entry)
        for cluster in spec.targeted(entry.targets):
            yield desired_object(cluster, manifest, entry.document, *notes)


def _current(entry: NativeObject) -> tuple[Manifest, tuple[str, ...]]:
    kind = kind_of(entry.manifest)
    if kind is None:
        return entry.manifest, ()
    upgraded = to_canonical(entry.manifest)
    metadata = upgraded.manifest["metadata"]
    if kind.is_namespaced and not metadata.get("namespace"):
        # As kubectl does; otherwise the object's identity would depend on who reads it.
        metadata = {**metadata, "namespace": "default"}
    return {**upgraded.manifest, "metadata": metadata}, tuple(upgraded.notes)
