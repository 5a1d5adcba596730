"""The real plugin server of Argo CD with kfleet's plugin, and its client."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.sandbox.programs import PROGRAMS
from tests.support import ROOT, eventually, kfleet_program

PLUGIN = ROOT / "deploy" / "argocd"


def argocd(*arguments: str, given: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS["argocd"].binary), *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, env=os.environ | settings, timeout=120
    )


@dataclass(frozen=True)
class PluginServer:
    socket: Path

    def ask(
        self, what: str, repository: Path, seconds: float = 60, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """What the repo-server would send for an Application whose path is `fleet`."""
        folder = repository / "fleet"
        environment = {"ARGOCD_APP_NAME": "queues", "ARGOCD_APP_SOURCE_PATH": "fleet", **settings}
        pairs = [f"{name}={value}" for name, value in environment.items()]
        return argocd(what, f"{seconds:g}", str(self.socket), str(repository), str(folder), *pairs)

    def generate(self, repository: Path, **parameters: str) -> "Generated":
        listed = [{"name": name, "string": value} for name, value in parameters.items()]
        answer = self.ask("generate", repository, ARGOCD_APP_PARAMETERS=json.dumps(listed))
        if answer.returncode != 0:
            return Generated(problem=answer.stderr)
        return Generated([json.loads(entry) for entry in json.loads(answer.stdout)["manifests"]])


@dataclass(frozen=True)
class Generated:
    """What Argo CD got: objects, or what it shows to its user."""

    objects: list[Mapping[str, Any]] = field(default_factory=list)
    problem: str = ""


@contextmanager
def serving(folder: Path) -> Iterator[PluginServer]:
    """A plugin server that finds the `kfleet` of this environment."""
    path = f"{Path(kfleet_program()).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"ARGOCD_PLUGINSOCKFILEPATH": str(folder), "ARGOCD_CMP_WORKDIR": str(folder), "PATH": path}
    command = [str(PROGRAMS["argocd"].binary), "cmp-server", "--config-dir-path", str(PLUGIN)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
    try:
        eventually((folder / "kfleet.sock").exists)
        yield PluginServer(folder / "kfleet.sock")
    finally:
        # On SIGTERM it removes its socket and goes on: in a pod, its container ends it.
        process.kill()
        process.wait(30)
