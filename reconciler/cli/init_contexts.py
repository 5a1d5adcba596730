"""The contexts of the user's kubeconfig. Nothing else is kept from it: the rest is servers and secrets."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from reconciler.errors import EdgeError, KfleetError
from reconciler.kueue.structure import problem_of_name
from reconciler.objects import ClusterName
from reconciler.spec.enums import Role
from reconciler.spec.files import MAX_FILE_BYTES
from reconciler.text import quote_value, suggest

VARIABLE = "KUBECONFIG"
WAY_OUT = f"""set --kubeconfig FILE or {VARIABLE}; for a fleet on this machine:
kfleet sandbox up && kfleet init --kubeconfig "$(kfleet sandbox kubeconfig --path)\""""
_NOTHING = (None, "", "null", "~")
MOST_WORKERS = 20  # the maximum number of clusters of a MultiKueueConfig
LONGEST_NAME = 63
# Reserved words: native documents use them for groups of clusters where they name their clusters.
_GROUPS = frozenset(("manager", "workers", "standalones", "all"))
_MANAGER = "manager"
# Forms in which tools put the name of a cluster into the name of its context.
_SHAPES = (
    re.compile(r"arn:[^/]*:cluster/(.+)"),  # Amazon EKS
    re.compile(r"gke_[^_]+_[^_]+_(.+)"),  # Google GKE: project, zone, name
    re.compile(r"[^/]+/([^/:]+):[0-9]+/.+"),  # OpenShift: namespace, server, user
    re.compile(r"[^@]+@(.+)"),  # kubeadm, eksctl: user, name
)
MANAGER = "manager"


@dataclass(frozen=True, slots=True)
class Context:
    """A context, and the name of its cluster in the kubeconfig."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts in their order; `current` is empty if the kubeconfig has none or names one that does not exist."""

    known: tuple[Context, ...]
    current: str


def read_contexts(kubeconfig: str) -> Contexts:
    """Read the contexts of one file, or of the files that kubectl would read. The first file that sets a value wins."""
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
    # Like kubectl, skip files that do not exist.
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
        raise EdgeError(str(path), f"is not a kubeconfig: it has more than {MAX_FILE_BYTES} bytes")
    try:
        # The loader keeps every scalar as a string, so no malformed date or number can fail.
        content = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506  (makes texts, lists and maps, nothing else)
    except (yaml.YAMLError, RecursionError) as error:
        # Raised without its cause, because the text of the cause may quote the file.
        raise EdgeError(f"{path}{_line(error)}", f"is not valid YAML: {_reason(error)}") from None
    if content not in _NOTHING and not isinstance(content, dict):
        raise EdgeError(str(path), "is not a kubeconfig: it is not a mapping")
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


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """A cluster of the new fleet."""

    name: str
    role: Role
    context: str


@dataclass(frozen=True, slots=True)
class InitChoice:
    """The clusters, the manager first; `doubles` are contexts that point to a cluster that is in the list already."""

    members: tuple[RoleChoice, ...]
    doubles: tuple[str, ...]


def choose(contexts: Contexts, manager: str, workers: Sequence[str]) -> InitChoice:
    """Apply the options. Without options, the current context is the manager; a single context is standalone."""
    workers = tuple(dict.fromkeys(workers))
    _check_options(contexts, manager, workers)
    preferred = [name for name in (manager, *workers, contexts.current) if name]
    pool = one_per_cluster(contexts, preferred)
    _check_clusters(contexts, pool, [name for name in (manager, *workers) if name])
    manager = manager or _first_of([contexts.current, *pool], pool, workers)
    workers = workers or tuple(name for name in pool if name != manager)
    if len(workers) > MOST_WORKERS:
        raise KfleetError(
            f"{len(workers)} contexts would be workers: MultiKueue takes at most {MOST_WORKERS} for a queue; "
            "choose them with --worker"
        )
    chosen = (manager, *workers)
    roles = (Role.MANAGER, *(Role.WORKER for _ in workers)) if workers else (Role.STANDALONE,)
    doubles = tuple(each.name for each in contexts.known if each.name not in pool)
    return InitChoice(tuple(map(RoleChoice, cluster_names(chosen), roles, chosen)), doubles)


def choose_standalones(contexts: Contexts, names: Sequence[str]) -> InitChoice:
    """Make each of the contexts a cluster that runs its own jobs."""
    names = tuple(dict.fromkeys(names))
    if problems := _unknown(contexts, [("--standalone", name) for name in names]):
        raise ExceptionGroup("options", [KfleetError(problem) for problem in problems])
    pool = one_per_cluster(contexts, names)
    _check_clusters(contexts, pool, names)
    return InitChoice(tuple(map(RoleChoice, cluster_names(names), [Role.STANDALONE] * len(names), names)), ())


def distinct(contexts: Contexts) -> tuple[str, ...]:
    """Return one context for each cluster."""
    return one_per_cluster(contexts, [contexts.current] if contexts.current else [])


def _unknown(contexts: Contexts, options: Iterable[tuple[str, str]]) -> list[str]:
    names = [each.name for each in contexts.known]
    return [
        f"{option}: no context {quote_value(name)} in the kubeconfig{instead(name, names)}"
        for option, name in options
        if name and name not in names
    ]


def _check_options(contexts: Contexts, manager: str, workers: Sequence[str]) -> None:
    problems = _unknown(contexts, [("--manager", manager), *(("--worker", worker) for worker in workers)])
    if manager in workers:
        problems.append(f"--worker: {quote_value(manager)} is the manager: a manager cannot be its own worker")
    if problems:
        raise ExceptionGroup("options", [KfleetError(problem) for problem in problems])


def instead(name: str, names: Sequence[str]) -> str:
    return suggest(name, names) or f"; there are: {', '.join(map(quote_value, names))}"


def one_per_cluster(contexts: Contexts, preferred: Iterable[str]) -> tuple[str, ...]:
    """Return the contexts in their order, one per cluster: contexts of several users may share a cluster."""
    by_name = {each.name: each for each in contexts.known}
    kept: dict[str, str] = {}
    for name in (*preferred, *by_name):
        kept.setdefault(_identity(by_name[name]), name)
    return tuple(name for name in by_name if name in kept.values())


def _identity(context: Context) -> str:
    return f"cluster {context.cluster}" if context.cluster else f"context {context.name}"


def _check_clusters(contexts: Contexts, pool: Sequence[str], named: Sequence[str]) -> None:
    clusters = {each.name: each.cluster for each in contexts.known}
    problems = [
        KfleetError(f"{quote_value(name)}: points to the same cluster as {quote_value(other)}: choose one of the two")
        for name in named
        if name not in pool
        for other in named
        if other in pool and clusters[other] == clusters[name]
    ]
    if problems:
        raise ExceptionGroup("options", problems)


def _first_of(candidates: Iterable[str], pool: Sequence[str], workers: Sequence[str]) -> str:
    for name in candidates:
        if name in pool and name not in workers:
            return name
    raise KfleetError("--worker: every context is a worker: none is left for the manager")


def cluster_names(contexts: Sequence[str]) -> tuple[str, ...]:
    """Return a unique valid name for each context. A context whose name is valid keeps it, at any position."""
    own = {name for name in contexts if _is_name(name)} - _GROUPS
    if contexts[0] == _MANAGER:
        own.add(_MANAGER)
    taken = own | _GROUPS
    names = []
    for context in contexts:
        name = context if context in own else _free_name(_clean(context), taken)
        taken.add(name)
        names.append(name)
    return tuple(names)


def _clean(context: str) -> str:
    for shape in _SHAPES:
        if found := shape.fullmatch(context):
            return found[1] if _is_name(found[1]) else _only_name_letters(found[1])
    return _only_name_letters(context)


def _only_name_letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_NAME].strip("-") or "cluster"


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and not problem_of_name(text)


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: LONGEST_NAME - len(str(number)) - 1].rstrip('-.')}-{number}"
    return free


def context_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--cluster-timeout",
            "timeout",
            type=click.FloatRange(min=0.1),
            default=10,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait for a response of a cluster.",
        ),
        click.option(
            "--kubeconfig",
            default="",
            metavar="FILE",
            help="File with the contexts. [default: $KUBECONFIG, or ~/.kube/config]",
        ),
        click.option("--context", "contexts", multiple=True, metavar="CONTEXT", help="Context to read; repeatable."),
    ):
        command = option(command)
    return command


def named_contexts(kubeconfig: str, contexts: Sequence[str]) -> Mapping[ClusterName, str]:
    """Return the contexts by the names that their clusters get in a fleet; without a choice, one per cluster."""
    known = read_contexts(kubeconfig)
    chosen = tuple(dict.fromkeys(contexts)) or one_per_cluster(known, [known.current] if known.current else [])
    _check(known, chosen)
    # In a fleet only the manager may be called manager, and cluster_names takes the first one for it.
    ordered = sorted(chosen, key=lambda context: context != MANAGER)
    return {ClusterName(name): context for name, context in zip(cluster_names(ordered), ordered, strict=True)}


def _check(known: Contexts, chosen: Sequence[str]) -> None:
    names = [context.name for context in known.known]
    problems = [
        KfleetError(f"--context: no context {quote_value(name)} in the kubeconfig{instead(name, names)}")
        for name in chosen
        if name not in names
    ]
    if problems:
        raise ExceptionGroup("options", problems)
