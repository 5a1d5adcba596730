"""The contexts of the user's kubeconfig. Nothing else of it is kept: the rest is servers and secrets."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import EdgeError
from reconciler.spec.files import MAX_FILE_BYTES

VARIABLE = "KUBECONFIG"
WAY_OUT = f"""say --kubeconfig FILE or set {VARIABLE}; for a fleet on this machine:
kfleet sandbox up && kfleet init --kubeconfig "$(kfleet sandbox kubeconfig --path)\""""

_NOTHING = (None, "", "null", "~")


@dataclass(frozen=True, slots=True)
class Context:
    """A context, and the kubeconfig's own name of the cluster that it leads to."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts, in their order; `current` is empty where the kubeconfig has none or one that does not exist."""

    known: tuple[Context, ...]
    current: str


def read_contexts(kubeconfig: str) -> Contexts:
    """Those of a file, or of the files that kubectl would read. The first file that says something wins."""
    paths = [Path(kubeconfig)] if kubeconfig else _usual_paths()
    contents, problems = [], []
    for path in paths:
        try:
            contents.append(_read(path))
        except EdgeError as error:
            problems.append(error)
    if problems:
        raise ExceptionGroup("kubeconfig", problems)
    known: dict[str, Context] = {}
    for content in contents:
        for context in _contexts(content):
            known.setdefault(context.name, context)
    if not known:
        raise EdgeError(", ".join(map(str, paths)), "the kubeconfig has no contexts", WAY_OUT)
    current = next((name for name in map(_current, contents) if name), "")
    return Contexts(tuple(known.values()), current if current in known else "")


def _usual_paths() -> list[Path]:
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    paths = named or [Path(os.environ.get("HOME", "")) / ".kube" / "config"]
    # kubectl, too, passes over files that do not exist.
    if not (found := [path for path in paths if path.exists()]):
        missing = ", ".join(map(str, paths))
        raise EdgeError(f"${VARIABLE}" if named else "kubeconfig", f"no such file: {missing}", WAY_OUT)
    return found


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise EdgeError(str(path), f"cannot read the kubeconfig: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise EdgeError(str(path), f"is no kubeconfig: it has more than {MAX_FILE_BYTES} bytes")
    try:
        # Every scalar stays a text, so that no date or number in it can be wrong.
        content = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506  (makes texts, lists and maps, nothing else)
    except (yaml.YAMLError, RecursionError) as error:
        # Without its cause, whose text may quote the file.
        raise EdgeError(f"{path}{_line(error)}", f"is no readable YAML: {_reason(error)}") from None
    if content not in _NOTHING and not isinstance(content, dict):
        raise EdgeError(str(path), "is no kubeconfig: it is not a mapping")
    return content or {}


def _line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark else ""


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return str(getattr(error, "reason", "it cannot be parsed"))


def _contexts(content: Mapping[str, Any]) -> list[Context]:
    entries = content.get("contexts")
    named = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [
        Context(entry["name"], _cluster(entry.get("context")))
        for entry in named
        if isinstance(entry.get("name"), str) and entry["name"]
    ]


def _cluster(context: Any) -> str:
    cluster = context.get("cluster") if isinstance(context, dict) else ""
    return cluster if isinstance(cluster, str) else ""


def _current(content: Mapping[str, Any]) -> str:
    current = content.get("current-context")
    return current if isinstance(current, str) and current not in _NOTHING else ""
