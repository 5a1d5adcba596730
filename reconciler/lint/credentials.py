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


def check_secrets(view: View) -> Iterator[Remark]:
    """Report Secrets with content: an encrypted one is of another kind, such as SealedSecret or ExternalSecret."""
    for entry in view.spec.objects:
        is_secret = entry.document.kind == "Secret" and not entry.document.group
        field = next((name for name in ("stringData", "data") if entry.manifest.get(name)), "")
        if is_secret and field:
            problem = "is readable for everyone who can read the repository, in all of its history"
            hint = (
                "create the Secret outside of git, or commit a SealedSecret or an ExternalSecret, and change the value"
            )
            yield Remark("KF069", entry.document, (field,), problem, hint)
