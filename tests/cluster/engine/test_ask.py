"""What is asked of a server that has stopped to answer since it was looked at."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from reconciler.desired import compute_desired
from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.ports import ApiKind
from reconciler.predict import predict, prepare, with_silence
from reconciler.predict.ask import PARALLEL
from reconciler.prediction import ClusterView, Prediction
from tests.unit.plan.paper_clusters import HUB, PaperClusters, parse, view_of

pytestmark = pytest.mark.usefixtures("loopback")


COUNT = 10 * PARALLEL
FLAVORS = parse("\n---\n".join(f"kind: ResourceFlavor\nmetadata: {{name: f{n}}}\nspec: {{}}" for n in range(COUNT)))
SERVED = {(GROUP, "ResourceFlavor"): (ApiKind(GROUP, CANONICAL, "ResourceFlavor", "resourceflavors", False),)}


@contextlib.contextmanager
def gone() -> Iterator[ApiServer]:
    """A connection to a server that closes all of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_all() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        threading.Thread(target=close_all, daemon=True).start()
        port = ApiServer(HUB, Access(f"http://127.0.0.1:{server.getsockname()[1]}", ""))
        yield port
        port.close()
        server.shutdown(socket.SHUT_RDWR)


def asked(port: ApiServer) -> tuple[ClusterView, tuple[Prediction, ...]]:
    (cluster,) = FLAVORS.clusters
    seen = view_of(FLAVORS, cluster, PaperClusters())
    view = ClusterView(seen.name, seen.set_name, seen.uid, SERVED)
    return view, predict(port, view, prepare(cluster, view, compute_desired(FLAVORS).objects))


def test_server_that_has_stopped_to_answer_is_not_waited_for_with_every_object(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("reconciler.predict.ask.time.sleep", pauses.append)
    with gone() as port:
        _, predictions = asked(port)
    assert len(predictions) == COUNT and all(one.is_static for one in predictions)
    assert 0 < len(pauses) <= 2 * PARALLEL


def test_server_that_has_stopped_to_answer_is_a_gap() -> None:
    with gone() as port:
        view, predictions = asked(port)
    (gap,) = with_silence(view, predictions).gaps
    assert str(gap) == "hub: what its server makes of the objects: it has stopped to answer"
    answered = tuple(one._replace(is_unanswered=False) for one in predictions)
    assert with_silence(view, answered) is view
