"""What SkyPilot teams need beside their queue: their API server's config, and checks that ask for nodes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from reconciler.kueue.kinds import GROUP
from reconciler.objects import merge_maps
from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, without_empty
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import AdmissionCheck, Cluster, FleetSpec, Queue, Tenant
from reconciler.spec.settings import Provisioning, SkyPilot

CONTROLLER = f"{GROUP}/provisioning-request"
QUEUE_LABEL = f"{GROUP}/queue-name"
CONFIG_KEY = "config.yaml"
# A pod that waits in its queue does not count as a failed launch.
_FOR_EVER = -1


def skypilot_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    queues = {queue.name: queue for queue in spec.queues}
    for tenant in spec.tenants:
        for cluster in submitting_clusters(spec, queues.get(tenant.queue)) if tenant.skypilot else ():
            for namespace in tenant.namespaces:
                yield desired_object(cluster, _config_map(tenant, namespace), tenant.document)
    for queue in spec.queues:
        asking = provisioning_of(spec, queue)
        for cluster in spec.selected(queue.clusters) if asking else ():
            yield from _check_objects(queue, cluster, asking) if asking else ()


def submitting_clusters(spec: FleetSpec, queue: Queue | None) -> tuple[Cluster, ...]:
    """Where the teams of a queue submit: to the manager that sends jobs on, or to the clusters that run them."""
    if queue is None:
        return ()
    is_sent = queue.dispatch is not Dispatch.NONE and spec.manager is not None
    return (spec.manager,) if is_sent and spec.manager else spec.selected(queue.clusters)


def server_configuration(tenant: Tenant) -> dict[str, Any]:
    """The config of a team's API server: its own, and the queue that all of its pods go to."""
    skypilot = tenant.skypilot or SkyPilot()
    if skypilot.knows_queues:
        ours: dict[str, Any] = {"kueue": {"local_queue_name": tenant.local_queue}}
    else:
        labels = {QUEUE_LABEL: tenant.local_queue}
        ours = {"pod_config": {"metadata": {"labels": labels}}, "provision_timeout": _FOR_EVER}
    merged: dict[str, Any] = merge_maps(skypilot.configuration, {"kubernetes": ours})
    return merged


def configuration_text(tenant: Tenant) -> str:
    text: str = yaml.dump(server_configuration(tenant), Dumper=yaml.CSafeDumper, sort_keys=False)
    return text


def provisioning_of(spec: FleetSpec, queue: Queue) -> tuple[Tenant, Provisioning] | None:
    """What the first team of a queue says; lint sees to it that the others say the same.

    Workers of KubeStellar have no Kueue that could ask for nodes.
    """
    for tenant in spec.tenants if queue.dispatch is not Dispatch.KUBESTELLAR else ():
        if tenant.queue == queue.name and tenant.skypilot and tenant.skypilot.provisioning:
            return tenant, tenant.skypilot.provisioning
    return None


def with_provisioning(spec: FleetSpec, queue: Queue) -> Queue:
    """The queue as it is on clusters that run its jobs: MultiKueue's own check, on the manager, bears no other."""
    if provisioning_of(spec, queue) is None:
        return queue
    return replace(queue, admission_checks=(*queue.admission_checks, AdmissionCheck(_check_name(queue))))


def _check_name(queue: Queue) -> str:
    return f"skypilot-{queue.name}"


def _check_objects(queue: Queue, cluster: Cluster, asking: tuple[Tenant, Provisioning]) -> Iterator[DesiredObject]:
    tenant, provisioning = asking
    name = _check_name(queue)
    config = {
        "provisioningClassName": provisioning.class_name,
        "managedResources": list(provisioning.resources),
        "parameters": dict(provisioning.parameters),
        "podSetMergePolicy": provisioning.merge_policy,
    }
    parameters = {"apiGroup": GROUP, "kind": "ProvisioningRequestConfig", "name": name}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    config_object = kueue_manifest("ProvisioningRequestConfig", name, without_empty(config))
    yield desired_object(cluster, config_object, tenant.document)
    yield desired_object(cluster, kueue_manifest("AdmissionCheck", name, check), tenant.document)


def _config_map(tenant: Tenant, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"skypilot-{tenant.name}", "namespace": namespace},
        "data": {CONFIG_KEY: configuration_text(tenant)},
    }
