"""How kfleet reaches a cluster: kubeconfig files, the pod's ServiceAccount, a Secret on the manager, a variable.

Decision: this module reads tokens and certificates that are in a kubeconfig, and `exec_plugin` runs exec plugins.
Identity providers are left to the kubernetes package. It takes a second to import, and most fleets never need it.

A kubeconfig in a Secret comes from a cluster, so it is untrusted data: it may not run a command or name a local file.
"""

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.clients.kubeconfig import (
    ClusterLogin,
    ExecCredential,
    Kubeconfig,
    decoded,
    parse_kubeconfig,
    read_text,
    run_plugin,
)
from reconciler.clients.kubernetes import TIMEOUT, ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.spec.model import Cluster, SecretRef

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# The kubernetes package shares files with private keys among logins, and would leave them until the process ends.
_FILES_OF_LIBRARY = threading.Lock()
_ASKED_FOR = {"auth-provider", "username", "password"}
# Fields that a kubeconfig from a cluster may not contain: commands, local files, and other ways to escape it.
_NOT_INLINE = {
    "user": ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key"),
    "cluster": ("certificate-authority", "proxy-url"),
}


def open_cluster(cluster: Cluster, manager: ApiServer | None = None, timeout: timedelta = TIMEOUT) -> ApiServer:
    """Return a connection to a cluster. `manager` is the cluster with the Secret that the access may name."""
    return ApiServer(cluster.name, find_access(cluster, manager), timeout=timeout)


def open_context(name: str, context: str, kubeconfig: str = "") -> ApiServer:
    """Return a connection to a cluster that need not be in a fleet; by default to the file's current context."""
    cluster = ClusterName(name)
    return ApiServer(cluster, _from_files(cluster, _kubeconfig_paths(kubeconfig), context))


def find_access(cluster: Cluster, manager: ApiServer | None = None) -> ClusterLogin:
    how = cluster.access
    if how.in_cluster:
        return _in_cluster(cluster.name)
    if how.secret_ref is not None:
        text = _secret_text(cluster.name, how.secret_ref, manager)
        origin = f"secret {how.secret_ref.namespace}/{how.secret_ref.name} on the manager"
        kubeconfig = parse_kubeconfig(cluster.name, origin, text)
        _refuse_instructions(kubeconfig)
        return _read_access(kubeconfig, how.context)
    if how.env:
        return _from_variable(cluster.name, how.env, how.context)
    context = how.context or ("" if how.kubeconfig else cluster.name)
    return _from_files(cluster.name, _kubeconfig_paths(how.kubeconfig), context)


def _refuse_instructions(kubeconfig: Kubeconfig) -> None:
    """Check every entry, including one without a name, because a context can still refer to it."""
    for section, noun in (("users", "user"), ("clusters", "cluster")):
        for entry in kubeconfig.entries(section):
            content = entry.get(noun)
            fields = content.keys() & set(_NOT_INLINE[noun]) if isinstance(content, dict) else set()
            if found := ", ".join(sorted(fields)):
                who = f"the {noun} {str(entry.get('name'))!r}"
                raise kubeconfig.wrong(f"{who} has {found}; a kubeconfig in a Secret may contain inline data only")


def _read_access(kubeconfig: Kubeconfig, context: str) -> ClusterLogin:
    chosen = context or str(kubeconfig.content.get("current-context") or "")
    entry = kubeconfig.entry("contexts", "context", chosen)
    server = kubeconfig.entry("clusters", "cluster", str(entry.get("cluster")))
    if not str(server.get("server") or "").startswith(("https://", "http://")):
        raise kubeconfig.wrong(f"the server of {chosen!r} must be a URL such as https://10.0.0.4:6443")
    user = kubeconfig.entry("users", "user", str(entry.get("user"))) if entry.get("user") else {}
    server_name, proxy = (str(server.get(field) or "") for field in ("tls-server-name", "proxy-url"))
    if _ASKED_FOR & user.keys():
        return replace(_ask_library(kubeconfig, chosen, user), server_name=server_name, proxy=proxy)
    login = _login(kubeconfig, user, server)
    return ClusterLogin(
        str(server["server"]).rstrip("/"),
        kubeconfig.text(server, "certificate-authority"),
        token=login.token,
        client_certificate=login.certificate,
        client_key=login.key,
        is_unverified=bool(server.get("insecure-skip-tls-verify")),
        server_name=server_name,
        proxy=proxy,
        expires=login.expires,
        renew=partial(_read_access, kubeconfig, chosen) if login.expires else None,
    )


def _login(kubeconfig: Kubeconfig, user: Mapping[str, Any], server: Mapping[str, Any]) -> ExecCredential:
    """Credentials in the kubeconfig take precedence over a plugin, as with kubectl."""
    token = str(user.get("token") or "")
    if user.get("tokenFile"):
        token = read_text(kubeconfig.cluster, kubeconfig.folder / str(user["tokenFile"])).strip()
    certificate, key = kubeconfig.text(user, "client-certificate"), kubeconfig.text(user, "client-key")
    if user.get("exec") and not token and not certificate:
        return run_plugin(kubeconfig, user["exec"], server)
    return ExecCredential(token=token, certificate=certificate, key=key)


def _ask_library(kubeconfig: Kubeconfig, context: str, user: Mapping[str, Any]) -> ClusterLogin:
    from kubernetes import client, config  # noqa: PLC0415  (takes a second; see the top of this file)

    found = client.Configuration()
    with _FILES_OF_LIBRARY:
        try:
            loader = config.kube_config.KubeConfigLoader(
                dict(kubeconfig.content), active_context=context, config_base_path=str(kubeconfig.folder)
            )
            loader.load_and_set(found)
            return _of_library(kubeconfig, context, user, found)
        except ClusterError:
            raise
        except Exception as error:
            # The package does not wrap the exceptions of plugins and providers.
            raise kubeconfig.wrong(f"cannot log in with context {context!r}: {error}") from error
        finally:
            config.kube_config._cleanup_temp_files()  # noqa: SLF001  (it has no public name)


def _of_library(kubeconfig: Kubeconfig, context: str, user: Mapping[str, Any], found: Any) -> ClusterLogin:
    """`found` is the Configuration of the kubernetes package."""
    if _ASKED_FOR & user.keys() and not found.api_key and not found.cert_file:
        # The package only logs that a plugin failed; the request would then be anonymous.
        how = ", ".join(sorted(_ASKED_FOR & user.keys()))
        raise kubeconfig.wrong(f"cannot log in with context {context!r}: {how} gave neither token nor certificate")
    return ClusterLogin(
        found.host.rstrip("/"),
        read_text(kubeconfig.cluster, Path(found.ssl_ca_cert)) if found.ssl_ca_cert else "",
        token=_token_of(found.api_key),
        client_certificate=read_text(kubeconfig.cluster, Path(found.cert_file)) if found.cert_file else "",
        client_key=read_text(kubeconfig.cluster, Path(found.key_file)) if found.key_file else "",
        is_unverified=not found.verify_ssl,
    )


def _token_of(keys: Mapping[str, str]) -> str:
    """The package stores the token under one of two names, depending on its release."""
    return str(keys.get("BearerToken") or keys.get("authorization") or "").removeprefix("Bearer ")


def _from_files(cluster: ClusterName, paths: list[Path], context: str) -> ClusterLogin:
    """Return the first file that has the context, as kubectl does with several files in KUBECONFIG."""
    present = [path for path in paths if path.exists()]
    if not present:
        listed = ", ".join(map(str, paths))
        raise ClusterError(cluster, f"no kubeconfig: {listed} does not exist; set KUBECONFIG or access.kubeconfig")
    known: list[str] = []
    for path in present:
        kubeconfig = parse_kubeconfig(cluster, str(path), read_text(cluster, path), path.parent)
        names = kubeconfig.names("contexts")
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


def _from_variable(cluster: ClusterName, variable: str, context: str) -> ClusterLogin:
    value = os.environ.get(variable, "")
    if not value:
        raise ClusterError(cluster, f"the environment variable {variable} is not set")
    if "\n" not in value and Path(value).is_file():
        return _from_files(cluster, [Path(value)], context)
    return _read_access(parse_kubeconfig(cluster, f"${variable}", value), context)


def _secret_text(cluster: ClusterName, ref: SecretRef, manager: ApiServer | None) -> str:
    if manager is None:
        raise ClusterError(cluster, "access.secretRef needs a manager cluster that has the Secret")
    secret = manager.get(f"/api/v1/namespaces/{ref.namespace}/secrets/{ref.name}")
    encoded = (secret.get("data") or {}).get(ref.key)
    if encoded is None:
        raise ClusterError(cluster, f"secret {ref.namespace}/{ref.name} on the manager has no key {ref.key!r}")
    return decoded(cluster, f"secret {ref.namespace}/{ref.name} on the manager: {ref.key}", encoded)


def _in_cluster(cluster: ClusterName) -> ClusterLogin:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ClusterError(cluster, "access.inCluster works only inside a pod")
    address = f"[{host}]" if ":" in host else host
    return ClusterLogin(
        f"https://{address}:{port}",
        read_text(cluster, SERVICE_ACCOUNT / "ca.crt"),
        token=read_text(cluster, SERVICE_ACCOUNT / "token").strip(),
    )
