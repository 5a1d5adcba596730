"""Stage 7: what does not work although it was written."""

import time
from collections.abc import Sequence
from datetime import timedelta

from reconciler.pipeline.compare import observe_objects
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.report.health import HealthIssue, find_health_issues
from reconciler.state.model import ClusterView

HEALTH_POLL = 0.5


def health(rendered: Rendered, views: Sequence[ClusterView]) -> tuple[HealthIssue, ...]:
    return tuple(find_health_issues(rendered.desired, views))


def wait_for_health(rendered: Rendered, connections: Connections, timeout: timedelta) -> tuple[HealthIssue, ...]:
    """What is unhealthy after the timeout: Kueue needs a moment to reconcile what was written."""
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        issues = health(rendered, observe_objects(rendered, connections))
        if not issues or time.monotonic() > deadline:
            return issues
        time.sleep(HEALTH_POLL)
