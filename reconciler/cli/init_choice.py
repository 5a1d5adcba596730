"""Which contexts become clusters of a new fleet, in which role and under which name."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.cli.init_contexts import Context, Contexts
from reconciler.errors import KfleetError
from reconciler.kueue.syntax import problem_of_name
from reconciler.spec.choices import Role
from reconciler.spec.wording import shown, suggest

MOST_WORKERS = 20  # as many clusters as a MultiKueueConfig takes
LONGEST_NAME = 63

# Words that mean groups of clusters where native documents name their clusters.
_GROUPS = frozenset(("manager", "workers", "standalones", "all"))
_MANAGER = "manager"
# How tools write the name of a cluster into that of its context.
_SHAPES = (
    re.compile(r"arn:[^/]*:cluster/(.+)"),  # Amazon EKS
    re.compile(r"gke_[^_]+_[^_]+_(.+)"),  # Google GKE: project, zone, name
    re.compile(r"[^/]+/([^/:]+):[0-9]+/.+"),  # OpenShift: namespace, server, user
    re.compile(r"[^@]+@(.+)"),  # kubeadm, eksctl: user, name
)


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of the new fleet."""

    name: str
    role: Role
    context: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The clusters, the manager first; `doubles` are contexts that lead to a cluster that is there already."""

    members: tuple[Member, ...]
    doubles: tuple[str, ...]


def choose(contexts: Contexts, manager: str, workers: Sequence[str]) -> Choice:
    """As the options say. Without them: the current context manages, the others work; a single one does both."""
    workers = tuple(dict.fromkeys(workers))
    _check_options(contexts, manager, workers)
    preferred = [name for name in (manager, *workers, contexts.current) if name]
    pool = _one_per_cluster(contexts, preferred)
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
    return Choice(tuple(map(Member, _cluster_names(chosen), roles, chosen)), doubles)


def _check_options(contexts: Contexts, manager: str, workers: Sequence[str]) -> None:
    names = [each.name for each in contexts.known]
    options = [("--manager", manager), *(("--worker", worker) for worker in workers)]
    problems = [
        f"{option}: there is no context {shown(name)} in the kubeconfig{_instead(name, names)}"
        for option, name in options
        if name and name not in names
    ]
    if manager in workers:
        problems.append(f"--worker: {shown(manager)} is the manager already: a manager cannot be its own worker")
    if problems:
        raise ExceptionGroup("options", [KfleetError(problem) for problem in problems])


def _instead(name: str, names: Sequence[str]) -> str:
    return suggest(name, names) or f"; there are: {', '.join(map(shown, names))}"


def _one_per_cluster(contexts: Contexts, preferred: Iterable[str]) -> tuple[str, ...]:
    """The contexts in their order, one for each cluster: several users of a cluster are still one cluster."""
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
        KfleetError(f"{shown(name)}: leads to the same cluster as {shown(other)}: choose one of the two")
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
    raise KfleetError("--worker: every context is a worker: none is left to be the manager")


def _cluster_names(contexts: Sequence[str]) -> tuple[str, ...]:
    """A clean name for each, never one twice. A context that is a good name keeps it, wherever it stands."""
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
