"""KF061 and KF062: the credentials of the manager for its workers."""

from collections.abc import Iterator
from datetime import timedelta

from reconciler.lint.model import Remark
from reconciler.lint.view import View
from reconciler.spec.enums import Role
from reconciler.spec.settings import DEFAULT

SHORTEST = timedelta(minutes=10)


def check_credentials(view: View) -> Iterator[Remark]:
    for cluster in view.spec.clusters:
        if cluster.credentials != DEFAULT and cluster.role is not Role.WORKER:
            problem = f"{cluster.name} is a {cluster.role}: no manager needs credentials for it"
            yield Remark("KF061", cluster.document, ("spec", "credentials"), problem, "remove it")
        if cluster.credentials.lifetime < SHORTEST:
            path = ("spec", "credentials", "lifetime")
            yield Remark("KF062", cluster.document, path, "API servers issue tokens for at least 10m")
