"""BindingPolicies that are written by hand, in the shape that the installed KubeStellar has."""

from reconciler.kueue.reading import as_list, as_map
from reconciler.objects import Manifest, group_of
from reconciler.spec.kubestellar import PolicyShape

SINGLETON = "wantSingletonReportedState"
GROUP = "control.kubestellar.io"
MOVED = f"spec.{SINGLETON} is written into each clause of spec.downsync, where this KubeStellar has it"


def in_shape(manifest: Manifest, shape: PolicyShape | None) -> tuple[Manifest, str]:
    """Up to 0.25 the field was one of the whole policy; newer API servers refuse it there."""
    spec = as_map(manifest.get("spec"))
    is_policy = manifest.get("kind") == "BindingPolicy" and group_of(manifest) == GROUP
    if shape is None or not is_policy or SINGLETON not in spec or not shape.is_singleton_in_clause:
        return manifest, ""
    rest = {name: value for name, value in spec.items() if name != SINGLETON}
    clauses = [{SINGLETON: spec[SINGLETON], **as_map(clause)} for clause in as_list(spec.get("downsync"))]
    return {**manifest, "spec": {**rest, "downsync": clauses}}, MOVED
