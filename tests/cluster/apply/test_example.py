"""The fleet of this repository on real clusters, with today's Kueue and with an older one."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import DEFAULT_KUEUE
from tests import fast_yaml
from tests.builders import Document
from tests.cluster.live_fleet import LiveFleet, MakeLiveFleet
from tests.support import ROOT, eventually

FOURTH = ClusterName("fourth")
NAMESPACES = ("astro", "genomics", "genomics-ci")
# Each worker of the example once on either Kueue: worker2 runs the older one.
PLACES = [
    {"hub": "manager", "cnaf-gpu": "worker1", "cnaf-cpu": "worker2", "lyon-gpu": FOURTH},
    {"hub": "manager", "cnaf-gpu": "worker2", "cnaf-cpu": "worker1", "lyon-gpu": FOURTH},
    {"hub": "worker2", "cnaf-gpu": "worker1", "cnaf-cpu": "manager", "lyon-gpu": FOURTH},
]


@pytest.fixture(scope="module")
def _fourth(fleet: Sandbox) -> Iterator[None]:
    fleet.add_cluster(FOURTH, DEFAULT_KUEUE)
    yield
    fleet.remove_cluster(FOURTH)


@pytest.fixture(params=PLACES, ids=["gpu-0.19", "gpu-0.16", "hub-0.16"])
def example(make_live_fleet: MakeLiveFleet, _fourth: None, request: pytest.FixtureRequest) -> LiveFleet:
    live_fleet = make_live_fleet("science", request.param)
    for folder in ("fleet", "overlays"):
        shutil.copytree(ROOT / folder, live_fleet.folder / folder)
    eventually(lambda: not left_behind(live_fleet), 90)
    path = live_fleet.folder / "fleet" / "clusters.yaml"
    path.write_text(
        fast_yaml.safe_dump_all([placed(live_fleet, entry) for entry in fast_yaml.safe_load_all(path.read_text())])
    )
    live_fleet.commit_all()
    return live_fleet


def left_behind(live_fleet: LiveFleet) -> list[str]:
    """Namespaces of the test before, which take some seconds to go."""
    return [
        name
        for cluster in live_fleet.contexts
        for name in NAMESPACES
        if live_fleet.api(cluster).find(f"/api/v1/namespaces/{name}")
    ]


def placed(live_fleet: LiveFleet, document: Document) -> Document:
    """A cluster of the example as it is reached here."""
    (own,) = [
        entry for entry in live_fleet.cluster_documents() if entry["metadata"]["name"] == document["metadata"]["name"]
    ]
    spec = {**document["spec"], "access": own["spec"]["access"], "kueue": own["spec"].get("kueue", {})}
    return {**document, "spec": spec}


def test_example_fleet_converges_and_stays_so(example: LiveFleet) -> None:
    planned = example.plan()
    assert planned.code == 2 and set(planned.actions.values()) == {"create"}
    example.converge()
    assert len(example.versions()) == len(planned.actions) + len(example.contexts)
    with ThreadPoolExecutor() as pool:
        list(pool.map(example.sandbox.restart, [f"{context}/kueue" for context in example.contexts.values()]))
    assert example.plan().code == 0
    for cluster in example.contexts:
        assert list(example.api(cluster).list("/apis/kueue.x-k8s.io/v1beta1/clusterqueues"))
    assert example.plan().code == 0


def test_example_fleet_goes_over_to_an_overlay_and_back_when_told(example: LiveFleet) -> None:
    example.converge()
    before = example.quiet_versions()
    refused = example.apply("--overlay", "prod")
    assert refused.code == 3 and "and this is fleet of the repository" in refused.out, refused
    assert example.versions() == before
    assert example.plan("--overlay", "prod").refusals == [("source", "")]
    assert example.plan("--overlay", "prod", "--accept-source").code == 2
    assert example.apply("--overlay", "prod", "--accept-source").code == 0
    assert example.plan("--overlay", "prod").code == 0
    assert example.apply().code == 3
    example.converge("--accept-source")
