"""How a cluster of the fleet is reached: kubeconfig files, the pod's own account, a Secret on the manager, a variable.

Decision: tokens and certificates that stand in a kubeconfig are read here; everything that has to be run or asked for
(exec plugins, identity providers) is left to the kubernetes package, because it takes a second to import and most
fleets never need it.
"""

import os
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from reconciler.edges.kubernetes import TIMEOUT, Access, ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.spec.model import Cluster, SecretRef

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ASKED_FOR = {"exec", "auth-provider", "username", "password"}


def open_cluster(cluster: Cluster, manager: ApiServer | None = None, timeout: timedelta = TIMEOUT) -> ApiServer:
    """A connection to a cluster. `manager` is where the Secret lies that a cluster may name."""
    return ApiServer(cluster.name, find_access(cluster, manager), timeout=timeout)


def find_access(cluster: Cluster, manager: ApiServer | None = None) -> Access:
    how = cluster.access
    if how.in_cluster:
        return _in_cluster(cluster.name)
    if how.secret_ref is not None:
        text = _secret_text(cluster.name, how.secret_ref, manager)
        return _read_access(_Kubeconfig(cluster.name, _parsed(cluster.name, text), Path()), how.context)
    if how.env:
        return _from_variable(cluster.name, how.env, how.context)
    context = how.context or ("" if how.kubeconfig else cluster.name)
    return _from_files(cluster.name, _kubeconfig_paths(how.kubeconfig), context)


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    """A kubeconfig, whose cluster it is read for, and the folder that its relative paths start from."""

    cluster: ClusterName
    content: Mapping[str, Any]
    folder: Path

    def entry(self, section: str, noun: str, name: str) -> Mapping[str, Any]:
        named = {entry.get("name"): entry.get(noun) or {} for entry in self.content.get(section) or ()}
        if name not in named:
            known = ", ".join(sorted(filter(None, named))) or "none"
            raise ClusterError(self.cluster, f"kubeconfig has no {noun} {name!r}; there are: {known}")
        return named[name]

    def text(self, entry: Mapping[str, Any], name: str) -> str:
        """A certificate or key that stands in the kubeconfig, or in a file that it names."""
        if data := entry.get(f"{name}-data"):
            return b64decode(data).decode()
        if path := entry.get(name):
            return _read_file(self.cluster, self.folder / path)
        return ""


def _read_access(kubeconfig: _Kubeconfig, context: str) -> Access:
    chosen = context or str(kubeconfig.content.get("current-context") or "")
    entry = kubeconfig.entry("contexts", "context", chosen)
    server = kubeconfig.entry("clusters", "cluster", str(entry.get("cluster")))
    user = kubeconfig.entry("users", "user", str(entry.get("user"))) if entry.get("user") else {}
    if _ASKED_FOR & user.keys() or server.get("proxy-url") or server.get("tls-server-name"):
        return _ask_library(kubeconfig, chosen)
    token = user.get("token") or ""
    if user.get("tokenFile"):
        token = _read_file(kubeconfig.cluster, kubeconfig.folder / user["tokenFile"]).strip()
    return Access(
        str(server.get("server", "")).rstrip("/"),
        kubeconfig.text(server, "certificate-authority"),
        token=token,
        client_certificate=kubeconfig.text(user, "client-certificate"),
        client_key=kubeconfig.text(user, "client-key"),
        is_unverified=bool(server.get("insecure-skip-tls-verify")),
    )


def _ask_library(kubeconfig: _Kubeconfig, context: str) -> Access:
    from kubernetes import client, config  # noqa: PLC0415  (takes a second; see the top of this file)

    found = client.Configuration()
    try:
        loader = config.kube_config.KubeConfigLoader(
            dict(kubeconfig.content), active_context=context, config_base_path=str(kubeconfig.folder)
        )
        loader.load_and_set(found)
    except Exception as error:
        # The package raises whatever a plugin or provider made it raise.
        raise ClusterError(kubeconfig.cluster, f"cannot log in with context {context!r}: {error}") from error
    return Access(
        found.host.rstrip("/"),
        _read_file(kubeconfig.cluster, Path(found.ssl_ca_cert)) if found.ssl_ca_cert else "",
        token=str(found.api_key.get("authorization") or "").removeprefix("Bearer "),
        client_certificate=_read_file(kubeconfig.cluster, Path(found.cert_file)) if found.cert_file else "",
        client_key=_read_file(kubeconfig.cluster, Path(found.key_file)) if found.key_file else "",
        is_unverified=not found.verify_ssl,
    )


def _from_files(cluster: ClusterName, paths: list[Path], context: str) -> Access:
    """The first file that knows the context, as kubectl does with several files in KUBECONFIG."""
    present = [path for path in paths if path.is_file()]
    if not present:
        raise ClusterError(cluster, f"no kubeconfig: {', '.join(map(str, paths))} does not exist")
    known: list[str] = []
    for path in present:
        kubeconfig = _Kubeconfig(cluster, _parsed(cluster, _read_file(cluster, path)), path.parent)
        names = [str(entry.get("name")) for entry in kubeconfig.content.get("contexts") or ()]
        if context in names or not context:
            return _read_access(kubeconfig, context)
        known += names
    listed = ", ".join(sorted(known)) or "none"
    raise ClusterError(cluster, f"no context {context!r} in {', '.join(map(str, present))}; there are: {listed}")


def _kubeconfig_paths(named: str) -> list[Path]:
    if named:
        return [Path(named).expanduser()]
    listed = os.environ.get("KUBECONFIG", "")
    return [Path(entry) for entry in listed.split(os.pathsep) if entry] or [Path.home() / ".kube" / "config"]


def _from_variable(cluster: ClusterName, variable: str, context: str) -> Access:
    value = os.environ.get(variable, "")
    if not value:
        raise ClusterError(cluster, f"the environment variable {variable} is not set")
    if "\n" not in value and Path(value).is_file():
        return _from_files(cluster, [Path(value)], context)
    return _read_access(_Kubeconfig(cluster, _parsed(cluster, value), Path()), context)


def _secret_text(cluster: ClusterName, ref: SecretRef, manager: ApiServer | None) -> str:
    if manager is None:
        raise ClusterError(cluster, "access.secretRef needs a manager cluster that holds the Secret")
    secret = manager.get(f"/api/v1/namespaces/{ref.namespace}/secrets/{ref.name}")
    encoded = (secret.get("data") or {}).get(ref.key)
    if encoded is None:
        raise ClusterError(cluster, f"secret {ref.namespace}/{ref.name} on the manager has no key {ref.key!r}")
    return b64decode(encoded).decode()


def _in_cluster(cluster: ClusterName) -> Access:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ClusterError(cluster, "access.inCluster works inside of a pod only")
    address = f"[{host}]" if ":" in host else host
    return Access(
        f"https://{address}:{port}",
        _read_file(cluster, SERVICE_ACCOUNT / "ca.crt"),
        token=_read_file(cluster, SERVICE_ACCOUNT / "token").strip(),
    )


def _parsed(cluster: ClusterName, text: str) -> Mapping[str, Any]:
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        # The text of the error may quote a line of the file, and with it a token.
        raise ClusterError(cluster, "the kubeconfig is no YAML") from error
    if not isinstance(content, dict):
        raise ClusterError(cluster, "the kubeconfig is no mapping")
    return content


def _read_file(cluster: ClusterName, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(cluster, f"cannot read {path}: {getattr(error, 'strerror', 'no text')}") from error
