"""What Kueue's Configuration says about which jobs it takes in and what it counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.kueue.configuration import Settings
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

NAMESPACE_LABEL = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """`namespaces` selects where jobs are managed. Kueue's webhooks are shipped so that they see no `exempt` one."""

    frameworks: tuple[str, ...]
    manages_unlabelled: bool = False
    namespaces: Manifest = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    ignores_undeclared: bool = False
    transformed: frozenset[str] = frozenset()

    def counts(self, resource_name: str) -> bool:
        return not resource_name.startswith(self.excluded)


def admission_settings(settings: Settings, content: Mapping[str, Any], kueue_namespace: str) -> AdmissionSettings:
    """`content` is the Configuration, or what the fleet says of it."""
    own = at(content, "managedJobsNamespaceSelector")
    exempt = ("kube-system", kueue_namespace)
    others = {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": list(exempt)}
    prefixes = (as_text(one) for one in as_list(at(content, "resources", "excludeResourcePrefixes")))
    transformations = as_list(at(content, "resources", "transformations"))
    return AdmissionSettings(
        frameworks=settings.frameworks,
        manages_unlabelled=content.get("manageJobsWithoutQueueName") is True,
        namespaces=as_map(own) if own is not None else {"matchExpressions": [others]},
        exempt=exempt,
        excluded=tuple(filter(None, prefixes)),
        ignores_undeclared=at(content, "resources", "quotaCheckStrategy") == "IgnoreUndeclared",
        transformed=frozenset(as_text(at(one, "input")) for one in transformations),
    )
