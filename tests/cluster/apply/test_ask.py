"""Dry runs against an API server that stopped responding after it was observed."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.objects import ApiKind
from reconciler.render.compute import compute_desired
from reconciler.state.dry_run import PARALLEL, mark_unanswered, predict, prepare
from reconciler.state.model import ClusterView, Prediction
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
        port = ApiServer(HUB, ClusterLogin(f"http://127.0.0.1:{server.getsockname()[1]}", ""))
        yield port
        port.close()
        server.shutdown(socket.SHUT_RDWR)


def asked(port: ApiServer) -> tuple[ClusterView, tuple[Prediction, ...]]:
    (cluster,) = FLAVORS.clusters
    seen = view_of(FLAVORS, cluster, PaperClusters())
    view = ClusterView(seen.name, seen.set_name, seen.uid, SERVED)
    return view, predict(port, view, prepare(cluster, view, compute_desired(FLAVORS).objects))


def test_server_that_has_stopped_responding_is_not_waited_for_with_every_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("reconciler.state.dry_run.time.sleep", pauses.append)
    with gone() as port:
        _, predictions = asked(port)
    assert len(predictions) == COUNT and all(one.is_static for one in predictions)
    assert 0 < len(pauses) <= 2 * PARALLEL


def test_server_that_has_stopped_responding_is_a_gap() -> None:
    with gone() as port:
        view, predictions = asked(port)
    (gap,) = mark_unanswered(view, predictions).gaps
    assert str(gap) == "hub: dry run: the API server stopped responding"
    answered = tuple(one._replace(is_unanswered=False) for one in predictions)
    assert mark_unanswered(view, answered) is view
