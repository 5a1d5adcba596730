"""The `helm` of the machine: it fetches charts, renders them, and installs them.

Decision: the program and not a library, because a release must be the same as one that a person makes with helm, and
because its login to OCI registries, its cache and its settings are then those of that person.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.errors import EdgeError
from reconciler.objects import Manifest

OLDEST, SERVER_SIDE = (3, 17), (4, 0)
_REMEDY = "install Helm 3.17 or newer: https://helm.sh/docs/intro/install/"
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
# They would lead to another cluster or namespace, or to records that kfleet does not find.
_NOT_INHERITED = ("HELM_NAMESPACE", "HELM_KUBE", "HELM_DRIVER", "KUBECONFIG")
_LAST_LINES = 12
# After the first interrupt helm records that the release has failed. Without that, the next run would have to wait.
_TO_RECORD_A_FAILURE = 30
_HINTS = {
    "pull": "is the registry reachable from here? a copy of the chart is used with --chart FOLDER or --chart oci://…"
}
# How helm 4 calls itself as a field manager: by the name of its program.
MANAGER = "helm"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart on this machine."""

    path: str
    version: str
    name: str
    defaults: Manifest = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRelease:
    """What helm is to install. `is_forced` overwrites fields that others manage."""

    name: str
    namespace: str
    chart: Chart
    values: Manifest = field(repr=False)
    is_forced: bool = False
    takes_ownership: bool = False


@dataclass(frozen=True, slots=True)
class Helm:
    program: str
    version: tuple[int, int]

    def fetch(self, source: str, version: str, folder: Path) -> Chart:
        """Fetch a chart from an OCI registry, or read one that is a folder or an archive."""
        if source.startswith("oci://"):
            self._run("pull", source, f"--version={version}", f"--destination={folder}")
            found = next(folder.glob("*.tgz"), None)
            if found is None:
                raise EdgeError("helm pull", f"wrote no archive of {source} {version}")
            return self._read(str(found))
        if not Path(source).exists():
            raise EdgeError("--chart", f"there is no folder or archive {source}")
        return self._read(str(Path(source).resolve()))

    def _read(self, path: str) -> Chart:
        metadata = _document("helm show chart", self._run("show", "chart", path))
        defaults = _document("helm show values", self._run("show", "values", path))
        return Chart(path, str(metadata.get("version", "")).removeprefix("v"), str(metadata.get("name", "")), defaults)

    def render(self, chart: Chart, release: str, namespace: str, values: Manifest, api_versions: Iterable[str]) -> str:
        """Return the objects that an installation would send, as a text of YAML documents."""
        with tempfile.TemporaryDirectory(prefix="kfleet-helm-") as folder:
            options = (
                f"--namespace={namespace}",
                f"--values={_write(Path(folder) / 'values.yaml', _dumped(values))}",
                f"--api-versions={','.join(sorted(api_versions))}",
            )
            return self._run("template", release, chart.path, *options)

    def upgrade(self, login: ClusterLogin, wanted: WantedRelease) -> None:
        """Install the chart, or bring an installed one to it. Waits for nothing that it starts."""
        with tempfile.TemporaryDirectory(prefix="kfleet-helm-") as folder:
            options = [
                "--install",
                "--create-namespace",
                "--reset-values",
                f"--namespace={wanted.namespace}",
                f"--values={_write(Path(folder) / 'values.yaml', _dumped(wanted.values))}",
                f"--kubeconfig={_write(Path(folder) / 'kubeconfig', _kubeconfig(login))}",
            ]
            if wanted.is_forced and self.version >= SERVER_SIDE:
                options.append("--force-conflicts")
            if wanted.takes_ownership:
                options.append("--take-ownership")
            self._run("upgrade", wanted.name, wanted.chart.path, *options)

    def _run(self, *arguments: str) -> str:
        with subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_settings(),
        ) as process:
            try:
                out, err = process.communicate()
            except BaseException:
                _end(process)
                raise
        if process.returncode != 0:
            raise EdgeError(f"helm {arguments[0]}", _problem(err or out), _HINTS.get(arguments[0], ""))
        return out


def find_helm() -> Helm:
    """Return the helm of the PATH, or say how to get one."""
    program = shutil.which("helm")
    if program is None:
        raise EdgeError("helm", "was not found on the PATH", _REMEDY)
    try:
        answer = subprocess.run(
            [program, "version", "--template={{.Version}}"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EdgeError(program, f"does not answer: {error}", _REMEDY) from error
    found = _VERSION.search(answer.stdout)
    if answer.returncode != 0 or found is None:
        raise EdgeError(program, f"does not tell its version: {_problem(answer.stderr or answer.stdout)}", _REMEDY)
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        raise EdgeError(program, f"is Helm {found[0]}, which is too old", _REMEDY)
    return Helm(program, version)


def _end(process: "subprocess.Popen[str]") -> None:
    """Let helm write that the release has failed. On a terminal it was interrupted together with this program."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_TO_RECORD_A_FAILURE)
    if process.poll() is None:
        process.kill()


def _settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}


def _document(what: str, text: str) -> Manifest:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise EdgeError(what, "printed something else than YAML") from error
    return found if isinstance(found, dict) else {}


def _dumped(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(_plain(content), sort_keys=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _write(path: Path, text: str) -> Path:
    """In a folder that only this user can read: values and logins may be secret."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def _kubeconfig(login: ClusterLogin) -> str:
    server = {
        "server": login.server,
        "certificate-authority-data": _encoded(login.ca) if not login.is_unverified else "",
        "insecure-skip-tls-verify": login.is_unverified,
        "tls-server-name": login.server_name,
        "proxy-url": login.proxy,
    }
    user = {
        "token": login.token,
        "client-certificate-data": _encoded(login.client_certificate),
        "client-key-data": _encoded(login.client_key),
    }
    name = "cluster"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {key: value for key, value in server.items() if value}}],
        "users": [{"name": name, "user": {key: value for key, value in user.items() if value}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return yaml.safe_dump(content, sort_keys=False)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _problem(text: str) -> str:
    """The last lines of what helm said, without its log of warnings."""
    return "\n".join(list(_said(text))[-_LAST_LINES:]) or "ended without a message"


def _said(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        if line.strip() and not line.startswith(("level=", "WARNING", "I0", "W0")):
            yield line.removeprefix("Error: ")
