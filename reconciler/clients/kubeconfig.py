"""A kubeconfig as the user wrote it.

Every part is checked when it is used, because broken credentials of one cluster must not block access to the others.
No message quotes a value: the wrong value may be a token.
"""

import binascii
import json
import os
import re
import signal
import subprocess
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import ClusterError
from reconciler.objects import ClusterName

TIMEOUT = timedelta(seconds=20)
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_FIELDS = {
    "server": "server",
    "tls-server-name": "tls-server-name",
    "insecure-skip-tls-verify": "insecure-skip-tls-verify",
    "certificate-authority-data": "certificate-authority-data",
    "proxy-url": "proxy-url",
}
# A word this long in a plugin's output may be a token.
_MAY_BE_SECRET = re.compile(r"[^\s/]{20,}")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig, the cluster it is read for, its origin, and the base folder of its relative paths."""

    cluster: ClusterName
    origin: str
    content: Mapping[str, Any]
    folder: Path = Path()

    def names(self, section: str) -> list[str]:
        return [str(entry["name"]) for entry in self.entries(section) if entry.get("name")]

    def entry(self, section: str, noun: str, name: str) -> Mapping[str, Any]:
        named = {str(entry.get("name")): entry.get(noun) or {} for entry in self.entries(section)}
        if name not in named:
            raise self.wrong(f"there is no {noun} {name!r}; there are: {', '.join(sorted(named)) or 'none'}")
        if not isinstance(named[name], dict):
            raise self.wrong(f"the {noun} {name!r} is not a mapping")
        return named[name]

    def text(self, entry: Mapping[str, Any], name: str) -> str:
        """Return a certificate or key that is in the kubeconfig, or in a file that it names."""
        if data := entry.get(f"{name}-data"):
            return decoded(self.cluster, f"{self.origin}: {name}-data", data)
        if path := entry.get(name):
            return read_text(self.cluster, self.folder / str(path))
        return ""

    def wrong(self, problem: str) -> ClusterError:
        return ClusterError(self.cluster, f"{self.origin}: {problem}")

    def entries(self, section: str) -> list[Mapping[str, Any]]:
        found = self.content.get(section) or []
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self.wrong(f"{section} is not a list of mappings")
        return found


def parse_kubeconfig(cluster: ClusterName, origin: str, text: str, folder: Path = Path()) -> Kubeconfig:
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        # The text of the error may quote a line of the file, and with it a token.
        raise ClusterError(cluster, f"{origin}: is not valid YAML") from None
    if not isinstance(content, dict):
        raise ClusterError(cluster, f"{origin}: is not a kubeconfig: {'empty' if content is None else 'not a mapping'}")
    return Kubeconfig(cluster, origin, content, folder)


def decoded(cluster: ClusterName, origin: str, data: object) -> str:
    try:
        return b64decode(str(data)).decode()
    except (binascii.Error, ValueError):
        raise ClusterError(cluster, f"{origin}: is not valid base64 text") from None


def read_text(cluster: ClusterName, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(cluster, f"cannot read {path}: {getattr(error, 'strerror', 'is not text')}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    expires: datetime | None = None


def run_plugin(kubeconfig: Kubeconfig, entry: Mapping[str, Any], server: Mapping[str, Any]) -> ExecCredential:
    """Run a plugin and return its credential. An error names the plugin and quotes no secret."""
    if not isinstance(entry, Mapping) or not all(_is_variable(one) for one in entry.get("env") or ()):
        raise kubeconfig.wrong("exec: is not a mapping with command, args and env (a list of name and value)")
    version, command = str(entry.get("apiVersion") or ""), str(entry.get("command") or "")
    if version not in _VERSIONS:
        raise kubeconfig.wrong(f"exec: its apiVersion must be one of {', '.join(_VERSIONS)}")
    if not command:
        raise kubeconfig.wrong("exec: names no command")
    if entry.get("interactiveMode") == "Always":
        raise kubeconfig.wrong(f"exec: {command} wants to prompt for input, and there is no terminal")
    printed = _run(kubeconfig, entry, command, _settings(entry, version, server))
    return _read_credential(kubeconfig, command, version, printed)


def _is_variable(entry: object) -> bool:
    return isinstance(entry, Mapping) and {"name", "value"} <= entry.keys()


def _settings(entry: Mapping[str, Any], version: str, server: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a plugin, with the cluster information that Kubernetes passes to it."""
    spec: dict[str, Any] = {"interactive": False}
    if entry.get("provideClusterInfo"):
        spec["cluster"] = {name: server[known] for known, name in _CLUSTER_FIELDS.items() if known in server}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    named = {str(one["name"]): str(one["value"]) for one in entry.get("env") or ()}
    return {**os.environ, **named, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _run(kubeconfig: Kubeconfig, entry: Mapping[str, Any], command: str, settings: Mapping[str, str]) -> str:
    # As with kubectl, a command with a slash is relative to the file.
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
            problem = f"exec: {command} returned no credential within {TIMEOUT.total_seconds():.0f} s and was killed"
            raise kubeconfig.wrong(problem) from None
    if process.returncode:
        raise kubeconfig.wrong(f"exec: {command} exited with {process.returncode}: {_last_line(err)}")
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
        # The error would quote the output, which may be a token.
        raise kubeconfig.wrong(f"exec: the output of {command} is not an ExecCredential") from None
    if (kind, told) != ("ExecCredential", version):
        raise kubeconfig.wrong(f"exec: {command} must print an ExecCredential of {version}")
    if not credential.token and not credential.certificate:
        raise kubeconfig.wrong(f"exec: {command} returned neither token nor certificate")
    if bool(credential.certificate) != bool(credential.key):
        raise kubeconfig.wrong(
            f"exec: {command} returned a certificate without its key, or a key without its certificate"
        )
    if credential.expires is not None and credential.expires <= datetime.now(UTC):
        raise kubeconfig.wrong(
            f"exec: {command} returned a credential that expired at {credential.expires:%Y-%m-%dT%H:%MZ}"
        )
    return credential


def _time(text: object) -> datetime | None:
    return None if not text else datetime.fromisoformat(str(text)).astimezone(UTC)
