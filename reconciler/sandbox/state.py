"""Where the sandbox keeps things: what it built in the user's cache, what runs in the user's state folder."""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.errors import SandboxError
from reconciler.objects import ClusterName
from reconciler.sandbox.processes import Part

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
FORMAT = 1
MANAGER = ClusterName("manager")
ITS = ClusterName("its")  # KubeStellar's inventory and transport space


def cache_folder() -> Path:
    return _base("XDG_CACHE_HOME", ".cache") / "sandbox"


def state_folder() -> Path:
    return _base("XDG_STATE_HOME", ".local/state") / "sandbox"


def sandbox_folder(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise SandboxError(
            f"sandbox {name!r}", "is not a valid name: use lower-case letters, digits and '-', at most 32"
        )
    return state_folder() / name


def _base(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "kfleet"


@contextmanager
def held_lock(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True)
class SandboxCluster:
    """A control plane with the rights of its administrator; `kueue` is empty where none runs."""

    name: ClusterName
    kueue: str
    access: ClusterLogin

    @property
    def role(self) -> str:
        return str(self.name) if self.name in {MANAGER, ITS} else "worker"


@dataclass(frozen=True, slots=True)
class SandboxState:
    name: str
    started: datetime
    clusters: tuple[SandboxCluster, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def folder(self) -> Path:
        return sandbox_folder(self.name)

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def nats_url(self) -> str:
        return f"nats://{self.part('nats').address}"

    def cluster(self, name: str) -> SandboxCluster:
        return _named(self.clusters, name, f"sandbox {self.name}: no cluster")

    def part(self, name: str) -> Part:
        return _named(self.parts, name, f"sandbox {self.name}: no part")

    def with_part(self, part: Part) -> "SandboxState":
        """The same sandbox with this part added, or put in place of the one of its name."""
        if part.name not in {known.name for known in self.parts}:
            return replace(self, parts=(*self.parts, part))
        return replace(self, parts=tuple(part if known.name == part.name else known for known in self.parts))

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self.folder / "state.json.partial"
        partial.touch(mode=0o600)
        partial.write_text(json.dumps({"format": FORMAT} | asdict(self), default=str, indent=1))
        partial.rename(self.folder / "state.json")


Named = TypeVar("Named", SandboxCluster, Part)


def load_state(name: str) -> SandboxState:
    path = sandbox_folder(name) / "state.json"
    try:
        fields = json.loads(path.read_text())
    except FileNotFoundError:
        known = ", ".join(list_sandboxes()) or "none"
        raise SandboxError(
            f"sandbox {name}", f"does not exist (there are: {known})", "start one with: kfleet sandbox up"
        ) from None
    if fields.pop("format") != FORMAT:
        raise SandboxError(str(path), "was written by another version of kfleet", f"remove the folder {path.parent}")
    return SandboxState(
        name=fields["name"],
        started=datetime.fromisoformat(fields["started"]),
        clusters=tuple(_cluster(entry) for entry in fields["clusters"]),
        parts=tuple(_part(entry) for entry in fields["parts"]),
    )


def list_sandboxes() -> list[str]:
    return sorted(path.parent.name for path in state_folder().glob("*/state.json"))


def _cluster(fields: Mapping[str, Any]) -> SandboxCluster:
    return SandboxCluster(ClusterName(fields["name"]), fields["kueue"], ClusterLogin(**fields["access"]))


def _part(fields: Mapping[str, Any]) -> Part:
    return Part(**{**fields, "command": tuple(fields["command"]), "log": Path(fields["log"])})


def _named(known: tuple[Named, ...], name: str, problem: str) -> Named:
    for entry in known:
        if entry.name == name:
            return entry
    raise SandboxError(f"{problem} {name!r}", "there are: " + ", ".join(entry.name for entry in known))
