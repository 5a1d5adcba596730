"""The systems that kfleet takes over: their own files, applied to real clusters as kfleet writes them."""

from datetime import timedelta

import pytest

from reconciler.quantity import parse
from tests.support import SEEDS
from tests.unit.render.rendered_fleets import one_cluster_fleet, seed

JOB = "kueue-nats/03-job.yaml"


def test_seed_job_without_a_name_says_why_it_cannot_be_kept() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        one_cluster_fleet((SEEDS / JOB).read_bytes())
    (error,) = caught.value.exceptions
    assert str(error).startswith("fleet/b.yaml:") and "generateName" in str(error)


def test_seed_master_queue_of_pools_is_read() -> None:
    (queue,) = seed("kueue-nats/01-master-queue.yaml").master_queues
    (flavor,) = queue.flavors
    (lending,) = flavor.lend_to
    assert (queue.name, queue.template and queue.template["cohort"]) == ("masterqueue", "masterqueue")
    assert flavor.name == "interlink" and not flavor.is_local and flavor.nats
    assert (flavor.nats.subject, flavor.nats.virtual_node) == ("interlink.resources", "interlink")
    assert (flavor.nats.pools, flavor.nats.pool_pattern) == ((), ".*")
    assert flavor.nats.pool_timeout == timedelta(seconds=30)
    # The definition of the kind fills in the rest of a quota that is written in part.
    assert flavor.nominal_quota == {
        "cpu": parse("1M"),
        "memory": parse("1Ei"),
        "pods": parse(100),
        "nvidia.com/gpu": parse(10_000),
    }
    assert (lending.queue, lending.limits) == ("group1", {"pods": parse(30)})


def test_seed_master_queue_of_a_local_flavor_is_read() -> None:
    spec = seed("kueue-nats/04-local-flavor.yaml")
    (queue,) = spec.master_queues
    (flavor,) = queue.flavors
    assert (flavor.name, flavor.is_local, flavor.nats) == ("local-cpu", True, None)
    assert [entry.manifest["metadata"]["name"] for entry in spec.objects] == ["local-cpu"]
