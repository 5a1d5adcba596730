"""`kfleet bootstrap`: the ServiceAccount that kfleet itself uses on a cluster, and its RBAC permissions."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import yaml

from reconciler.clients.access import open_context
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, EdgeError
from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.frameworks import FRAMEWORKS
from reconciler.kueue.structure import problem_of_name
from reconciler.multikueue.model import KEY, read_credential, with_token
from reconciler.objects import ApiEndpoint, ClusterName, Manifest, TokenRequestSpec
from reconciler.plan.rbac import (
    ACCOUNT,
    ALL_FRAMEWORKS,
    KUEUE_NAMESPACE,
    NAMESPACE,
    Places,
    account_objects,
    kubestellar_objects,
)
from reconciler.spec.enums import Role

FIELD_MANAGER = "kfleet-bootstrap"
NO_NAMESPACE = (
    "install Kueue there first or set --kueue-namespace; if KubeStellar dispatches the jobs, create the namespace"
)

own_option = click.option(
    "--namespace", "own", default=NAMESPACE, show_default=True, metavar="NAME", help="Namespace of kfleet itself."
)
kueue_option = click.option(
    "--kueue-namespace", "kueue", default=KUEUE_NAMESPACE, show_default=True, metavar="NAME", help="Namespace of Kueue."
)


@click.group()
def bootstrap() -> None:
    """Create kfleet's ServiceAccount on a cluster, with the minimal RBAC permissions."""


@bootstrap.command()
@own_option
@kueue_option
@click.option("--kubestellar", "has_kubestellar", is_flag=True, help="Add the permissions that KubeStellar needs.")
def manager(own: str, kueue: str, has_kubestellar: bool) -> None:
    """Print the ServiceAccount and roles for the cluster that kfleet runs in: the manager.

    \b
    Examples:
      kfleet bootstrap manager | kubectl --context hub apply --server-side -f -
    """
    places = Places(own, kueue)
    more = kubestellar_objects(places) if has_kubestellar else ()
    click.echo(objects_text((*account_objects(Role.MANAGER, places), *more)), nl=False)


@bootstrap.command()
@click.argument("name")
@own_option
@kueue_option
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    type=click.Choice(sorted(FRAMEWORKS)),
    metavar="NAME",
    help="A framework that the manager's Kueue has enabled; repeatable. kfleet gets permissions for these only. "
    "[default: all]",
)
@click.option("--apply", "is_applied", is_flag=True, help="Apply to the worker; create credentials for the manager.")
@click.option("--context", default="", metavar="CONTEXT", help="With --apply: the worker. [default: NAME]")
@click.option("--kubeconfig", default="", metavar="FILE", help="File with the contexts. [default: as kubectl]")
@click.option("--manager-context", default="", metavar="CONTEXT", help="With --apply: write the Secret there.")
@click.option("--secret-file", default="", metavar="FILE", help="With --apply: write the Secret to this file.")
@click.option("--server", default="", metavar="URL", help="The worker's URL for the manager. [default: the context's]")
@click.option(
    "--days", default=365, show_default=True, type=click.IntRange(min=1), help="Requested lifetime of the token."
)
def worker(
    name: str,
    own: str,
    kueue: str,
    frameworks: tuple[str, ...],
    is_applied: bool,
    context: str,
    kubeconfig: str,
    manager_context: str,
    secret_file: str,
    server: str,
    days: int,
) -> None:
    """Print the ServiceAccount and roles for a worker; with --apply, apply them and create the manager's credentials.

    The credentials are a token in a Secret, for access.secretRef of the Cluster. kfleet writes the Secret to the
    manager, or to a file that only you can read, and never prints the token.

    \b
    Examples:
      kfleet bootstrap worker east | kubectl --context east apply --server-side -f -
      kfleet bootstrap worker east --apply --manager-context hub
      kfleet bootstrap worker east --apply --context admin@east --secret-file east-secret.yaml
    """
    if problem := problem_of_name(name):
        raise click.BadParameter(problem, param_hint="NAME")
    places, settings = Places(own, kueue), KueueSettings(frameworks=frameworks) if frameworks else ALL_FRAMEWORKS
    objects = account_objects(Role.WORKER, places, settings)
    if not is_applied:
        click.echo(objects_text(objects), nl=False)
        return
    if bool(manager_context) == bool(secret_file):
        raise click.UsageError("--apply needs a destination for the Secret: --manager-context or --secret-file")
    login = _Login(ClusterName(name), places, timedelta(days=days), server)
    client = open_context(name, context or name, kubeconfig)
    try:
        _apply_all(client, objects)
        secret = _issue(client, login)
    finally:
        client.close()
    _hand_over(secret, manager_context, kubeconfig, secret_file)
    _tell(secret, name)


@dataclass(frozen=True, slots=True)
class _Login:
    worker: ClusterName
    places: Places
    lifetime: timedelta
    server: str


def objects_text(objects: Iterable[Manifest]) -> str:
    return "".join(
        f"---\n{yaml.safe_dump(dict(entry), sort_keys=False, default_flow_style=None, width=110)}" for entry in objects
    )


def _apply_all(client: ApiServer, objects: Iterable[Manifest]) -> None:
    for entry in objects:
        try:
            client.apply(entry, manager=FIELD_MANAGER)
        except ClusterError as error:
            raise EdgeError(error.where, error.problem, NO_NAMESPACE if error.status == 404 else "") from error
        click.echo(f"{client.cluster}: {entry['kind']} {_address(entry)}")


def _issue(client: ApiServer, login: _Login) -> Manifest:
    """Return the Secret with a new token of the ServiceAccount."""
    endpoint = ApiEndpoint(login.server or client.endpoint.server, client.endpoint.ca)
    request = TokenRequestSpec(login.worker, login.places.own, ACCOUNT, login.lifetime, endpoint)
    metadata = {"name": f"kfleet-{login.worker}", "namespace": login.places.own}
    empty = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
    answer = client.post(request.path, request.request)
    return with_token(empty, request, str(answer["status"]["token"]))


def _hand_over(secret: Manifest, manager_context: str, kubeconfig: str, secret_file: str) -> None:
    if secret_file:
        _write_private(secret_file, objects_text([secret]))
        click.echo(f"{secret_file}: Secret {_address(secret)}, for the manager; only you can read it")
        return
    client = open_context("manager", manager_context, kubeconfig)
    try:
        client.apply(secret, manager=FIELD_MANAGER)
    except ClusterError as error:
        hint = "run kfleet bootstrap manager there first" if error.status == 404 else ""
        raise EdgeError(manager_context, error.problem, hint) from error
    finally:
        client.close()
    click.echo(f"{manager_context}: Secret {_address(secret)}")


def _write_private(path: str, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            # open() keeps the mode of an existing file.
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
    except OSError as error:
        raise EdgeError(path, f"cannot write: {error.strerror}") from error


def _tell(secret: Manifest, name: str) -> None:
    """Print when the token expires, because some servers issue tokens with a shorter lifetime than requested."""
    token = read_credential(secret).token
    if token and token.expires:
        days = (token.expires - datetime.now(UTC)).days
        click.echo(
            f"the token is valid until {token.expires:%Y-%m-%d} ({days} days): repeat this command before", err=True
        )
    ref = {"namespace": secret["metadata"]["namespace"], "name": secret["metadata"]["name"], "key": KEY}
    shown = ", ".join(f"{field}: {value}" for field, value in ref.items())
    click.echo(f"in the fleet: Cluster {name}: access: {{secretRef: {{{shown}}}}}", err=True)


def _address(entry: Manifest) -> str:
    metadata: dict[str, Any] = entry["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
