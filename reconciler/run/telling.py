"""Tells how a fleet is: in a ConfigMap beside its inventory, and as the status of its commits."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from reconciler.edges.forge import CommitState, CommitStatus
from reconciler.errors import ClusterError
from reconciler.ports import ClusterPort
from reconciler.run.clusters import Clusters
from reconciler.run.commits import Commits
from reconciler.run.reports import FleetStatus, commit_statuses
from reconciler.run.revisions import Followed
from reconciler.spec import FleetSpec
from reconciler.spec.keeper import keeper_of

log = logging.getLogger(__name__)

# Its own, so that nobody takes the status for something that the fleet wants.
FIELD_MANAGER = "kfleet-status"
_SINCE = "since"


class Telling:
    def __init__(self, clusters: Clusters, commits: Commits | None = None) -> None:
        self._clusters, self._commits = clusters, commits
        self._written: Mapping[str, str] | None = None
        self._problem = self._revision = ""

    def begin(self) -> None:
        """Forget what was written: while we did not lead, another one may have told something else."""
        self._written = None

    def tell_unread(self, followed: Followed) -> None:
        """There is no fleet yet that could be told of, just a commit that is none."""
        if self._commits and followed.refused:
            problem = f"not followed: {followed.problem}"
            self._commits.want(CommitStatus(followed.refused, CommitState.FAILURE, problem, "kfleet"))

    def tell_start(self, spec: FleetSpec) -> None:
        if self._commits and spec.revision != self._revision:
            context = f"kfleet/{spec.fleet.name}"
            self._commits.want(CommitStatus(spec.revision, CommitState.PENDING, "kfleet begins with it", context))
        self._revision = spec.revision

    def tell(self, spec: FleetSpec, status: FleetStatus) -> None:
        if self._commits:
            for commit in commit_statuses(status):
                self._commits.want(commit)
        content = status.content
        if content == self._written:
            return
        try:
            _keep(self._clusters.server(spec, keeper_of(spec).name), spec, content)
        except ClusterError as error:
            if error.problem != self._problem:
                log.warning("status not kept", extra={"cluster": error.where, "problem": error.problem})
            self._problem = error.problem
            return
        self._written, self._problem = content, ""

    def close(self) -> None:
        if self._commits:
            self._commits.close()


def _keep(port: ClusterPort, spec: FleetSpec, content: Mapping[str, str]) -> None:
    """Written where it says something else than what lies there, with the time since when it is so."""
    namespace, name = keeper_of(spec).kueue.namespace, f"kfleet-{spec.fleet.name}-status"
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    found = (port.find(path) or {}).get("data") or {}
    if {key: text for key, text in found.items() if key != _SINCE} == content:
        return
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {**content, _SINCE: since},
    }
    port.apply_at(path, manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)
