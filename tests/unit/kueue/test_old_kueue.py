"""Releases of Kueue that know no v1beta2: their kinds on a real API server, without their controller."""

import pytest

from reconciler.errors import SpecError
from tests.unit.render.rendered_fleets import at_kueue, one_cluster_fleet, render

SCOPE = "admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}"
PREFERENCE = (
    "flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor, "
    "preference: PreemptionOverBorrowing}"
)
QUEUE = """\
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: 8}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {name: science}
spec:
  quota: [{flavor: cpu, resources: {cpu: 8}}]
"""


@pytest.mark.parametrize(
    ("version", "field", "problem"),
    [
        ("0.14.0", SCOPE, ""),
        ("0.11.4", SCOPE, "spec.admissionScope came with Kueue 0.12, this is 0.11.4"),
        ("0.14.0", PREFERENCE, "spec.flavorFungibility.preference came with Kueue 0.15, this is 0.14"),
    ],
)
def test_field_that_an_old_kueue_cannot_express_is_named(version: str, field: str, problem: str) -> None:
    spec = at_kueue(one_cluster_fleet(f"{QUEUE}  {field}\n".encode()), version)
    found = []
    try:
        render(spec)
    except* SpecError as group:
        found = [str(error) for error in group.exceptions]
    where = "fleet/b.yaml:6: only/ClusterQueue/science: ClusterQueue science: cannot be written as v1beta1"
    assert found == ([f"{where}: {problem}"] if problem else [])
