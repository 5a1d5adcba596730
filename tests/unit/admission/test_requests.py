"""What a pod asks for, as Kueue counts it."""

from reconciler.admission.templates import requests_of
from tests.builders import Document, asking, pod_spec

SIDE = {**asking("side", cpu="1"), "restartPolicy": "Always"}


def cpu(pod: Document) -> int:
    return requests_of(pod).get("cpu", 0)


def test_requests_add_up_containers_in_kueues_units() -> None:
    pod = pod_spec(asking("a", cpu="500m", memory="1Gi"), asking("b", cpu=0.25, memory="512Mi"))
    assert requests_of(pod) == {"cpu": 750, "memory": 1536 * 2**20}


def test_requests_are_limits_where_nothing_else_is_said() -> None:
    assert requests_of(pod_spec(asking(cpu="1", limits={"cpu": "4", "memory": "1"}))) == {"cpu": 1000, "memory": 1}


def test_requests_are_at_least_those_of_the_largest_init_container() -> None:
    inits = [asking("x", cpu="3"), asking("y", cpu="5")]
    assert cpu(pod_spec(asking(cpu="4"), initContainers=inits)) == 5000
    assert cpu(pod_spec(asking(cpu="6"), initContainers=inits)) == 6000


def test_requests_of_sidecars_run_beside_everything_after_them() -> None:
    assert cpu(pod_spec(asking(cpu="4"), initContainers=[SIDE])) == 5000
    assert cpu(pod_spec(asking(cpu="1"), initContainers=[SIDE, asking("late", cpu="4")])) == 5000
    assert cpu(pod_spec(asking(cpu="1"), initContainers=[asking("early", cpu="4"), SIDE])) == 4000


def test_requests_of_the_whole_pod_win_and_overhead_comes_on_top() -> None:
    pod = pod_spec(asking(cpu="4", gpu="1"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m"})
    assert requests_of(pod) == {"cpu": 2250, "nvidia.com/gpu": 1}


def test_requests_round_up_to_whole_units() -> None:
    assert requests_of(pod_spec(asking(cpu="1u", memory="100m"))) == {"cpu": 1, "memory": 1}


def test_requests_that_cannot_be_read_count_as_nothing() -> None:
    assert requests_of({"containers": [{"resources": {"requests": {"cpu": "many"}}}, "text"]}) == {"cpu": 0}
    assert requests_of({}) == {}
