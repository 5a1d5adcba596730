"""Credential plugins of a kubeconfig (`users[].user.exec`): EKS, GKE, AKS and OIDC log in by them.

Decision: run here, and not by the kubernetes package. That one waits for a plugin without end, keeps private keys in
temporary files until the process ends, and takes a second to import.
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reconciler.edges.kubeconfig import Kubeconfig

TIMEOUT = timedelta(seconds=20)
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_FIELDS = {
    "server": "server",
    "tls-server-name": "tls-server-name",
    "insecure-skip-tls-verify": "insecure-skip-tls-verify",
    "certificate-authority-data": "certificate-authority-data",
    "proxy-url": "proxy-url",
}
# A word this long in what a plugin prints may be a token.
_MAY_BE_SECRET = re.compile(r"[^\s/]{20,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    expires: datetime | None = None


def run_plugin(kubeconfig: Kubeconfig, entry: Mapping[str, Any], server: Mapping[str, Any]) -> ExecCredential:
    """The credential that a plugin gives, or an error that names the plugin and quotes no secret."""
    if not isinstance(entry, Mapping) or not all(_is_variable(one) for one in entry.get("env") or ()):
        raise kubeconfig.wrong("exec: is not a mapping with command, args and env (a list of name and value)")
    version, command = str(entry.get("apiVersion") or ""), str(entry.get("command") or "")
    if version not in _VERSIONS:
        raise kubeconfig.wrong(f"exec: its apiVersion must be one of {', '.join(_VERSIONS)}")
    if not command:
        raise kubeconfig.wrong("exec: names no command")
    if entry.get("interactiveMode") == "Always":
        raise kubeconfig.wrong(f"exec: {command} wants to ask for input, and there is no terminal to ask on")
    printed = _run(kubeconfig, entry, command, _settings(entry, version, server))
    return _read_credential(kubeconfig, command, version, printed)


def _is_variable(entry: object) -> bool:
    return isinstance(entry, Mapping) and {"name", "value"} <= entry.keys()


def _settings(entry: Mapping[str, Any], version: str, server: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a plugin, with what Kubernetes tells it about the cluster."""
    spec: dict[str, Any] = {"interactive": False}
    if entry.get("provideClusterInfo"):
        spec["cluster"] = {name: server[known] for known, name in _CLUSTER_FIELDS.items() if known in server}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    named = {str(one["name"]): str(one["value"]) for one in entry.get("env") or ()}
    return {**os.environ, **named, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _run(kubeconfig: Kubeconfig, entry: Mapping[str, Any], command: str, settings: Mapping[str, str]) -> str:
    # A command with a slash is relative to the file, as kubectl takes it.
    program = str(kubeconfig.folder / command) if "/" in command and not Path(command).is_absolute() else command
    arguments = [str(one) for one in entry.get("args") or ()]
    try:
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=settings,
            start_new_session=True,
        )
    except OSError as error:
        hint = str(entry.get("installHint") or "").strip()
        reason = f"exec: {command} cannot be run: {(error.strerror or '').lower()}"
        raise kubeconfig.wrong(f"{reason}; {hint}" if hint else reason) from error
    with process:
        try:
            out, err = process.communicate(timeout=TIMEOUT.total_seconds())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            problem = f"exec: {command} gave no credential within {TIMEOUT.total_seconds():.0f} s and was ended"
            raise kubeconfig.wrong(problem) from None
    if process.returncode:
        raise kubeconfig.wrong(f"exec: {command} ended with {process.returncode}: {_last_line(err)}")
    return out


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or ["it printed nothing"]
    return _MAY_BE_SECRET.sub("…", lines[-1])[:200]


def _read_credential(kubeconfig: Kubeconfig, command: str, version: str, printed: str) -> ExecCredential:
    try:
        answer = json.loads(printed)
        kind, told, status = answer["kind"], answer["apiVersion"], answer["status"]
        credential = ExecCredential(
            token=str(status.get("token") or ""),
            certificate=str(status.get("clientCertificateData") or ""),
            key=str(status.get("clientKeyData") or ""),
            expires=_time(status.get("expirationTimestamp")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        # The error would quote what was printed, and that may be a token.
        raise kubeconfig.wrong(f"exec: what {command} printed is not an ExecCredential") from None
    if (kind, told) != ("ExecCredential", version):
        raise kubeconfig.wrong(f"exec: {command} must print an ExecCredential of {version}")
    if not credential.token and not credential.certificate:
        raise kubeconfig.wrong(f"exec: {command} gave neither token nor certificate")
    if bool(credential.certificate) != bool(credential.key):
        raise kubeconfig.wrong(f"exec: {command} gave a certificate without its key, or a key without a certificate")
    if credential.expires is not None and credential.expires <= datetime.now(UTC):
        raise kubeconfig.wrong(
            f"exec: {command} gave a credential that expired at {credential.expires:%Y-%m-%dT%H:%MZ}"
        )
    return credential


def _time(text: object) -> datetime | None:
    return None if not text else datetime.fromisoformat(str(text)).astimezone(UTC)
