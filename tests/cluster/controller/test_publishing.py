"""Passing on metrics keeps no cycle waiting, and goes on nowhere when writing ends."""

import pytest

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.pipeline.capacity import publish
from tests.unit.plan.paper_clusters import QUEUE, parse

pytestmark = pytest.mark.usefixtures("loopback")


PAIR = """\
kind: Cluster
metadata: {name: hub}
spec: {role: manager}
---
kind: Cluster
metadata: {name: east}
spec: {role: worker, publishMetrics: true}
"""


def test_nothing_is_published_once_writing_is_forbidden(caplog: pytest.LogCaptureFixture) -> None:
    spec = parse(QUEUE, PAIR)
    nowhere = {one.name: ApiServer(one.name, ClusterLogin("https://127.0.0.1:1", "")) for one in spec.clusters}
    publish(spec, nowhere)
    assert caplog.messages == ["metrics not published"]
    caplog.clear()
    publish(spec, nowhere, lambda: "the lease is lost")
    assert caplog.messages == []
