"""The text of the new files: YAML with comments that say where each document comes from."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from reconciler.errors import SourceLocation
from reconciler.importer.model import ImportRequest, LiveObject, ObservedContexts, WrittenDocument
from reconciler.importer.roles import FoundRoles
from reconciler.kueue.kinds import NEWEST, KueueVersionError, parse_version
from reconciler.objects import ClusterName
from reconciler.spec.schema import KFLEET_VERSION

FOLDER = "fleet"
_WIDTH = 110
_ORDER = (
    "fleet.yaml",
    "clusters.yaml",
    "flavors.yaml",
    "multikueue.yaml",
    "queues.yaml",
    "tenants.yaml",
)


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The files by name, and the line at which each document of a file begins."""

    texts: Mapping[str, str] = field(repr=False)
    starts: Mapping[str, tuple[tuple[int, int], ...]]

    def document_at(self, place: SourceLocation) -> int | None:
        """The number of the document at a line of a file; None for the fleet and its clusters."""
        starts = self.starts.get(place.path.rpartition("/")[2], ())
        position = bisect_right([line for line, _ in starts], place.line) - 1
        return starts[position][1] if position >= 0 else None


def file_texts(heads: Mapping[str, str], documents: Sequence[WrittenDocument]) -> FileTexts:
    """Join the documents of each file; `heads` are files that are written already."""
    lines: dict[str, list[str]] = {}
    starts: dict[str, list[tuple[int, int]]] = {}
    for number, document in enumerate(documents):
        written = lines.setdefault(document.file, [])
        written += ["---"] if written else []
        starts.setdefault(document.file, []).append((len(written) + 1, number))
        written += [*(f"# {comment}" for comment in _comments(document)), *dumped(document.value).splitlines()]
    texts = {name: "\n".join(text) + "\n" for name, text in lines.items()}
    every = {**heads, **texts}
    ordered = {name: every[name] for name in _ORDER if name in every}
    return FileTexts({**ordered, **texts}, {name: tuple(entries) for name, entries in starts.items()})


def _comments(document: WrittenDocument) -> Iterable[str]:
    if document.sources:
        yield f"From {origin_text(document.sources)}."
    yield from document.comments


def origin_text(sources: Sequence[LiveObject]) -> str:
    ref = sources[0].ref
    name = "/".join(part for part in (ref.kind, ref.namespace, ref.name) if part)
    return f"{name} of {', '.join(source.ref.cluster for source in sources)}"


def dumped(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=_WIDTH, allow_unicode=True)


def fleet_text(request: ImportRequest, *, reads_master_queues: bool) -> str:
    policy = {"adopt": "always" if request.takes_claimed else "unowned"}
    masters = {"masterQueues": {"fromCluster": True}} if reads_master_queues else {}
    value = {
        "apiVersion": KFLEET_VERSION,
        "kind": "Fleet",
        "metadata": {"name": request.fleet},
        "spec": {"policy": policy, **masters},
    }
    why = (
        "adopt: always takes over what Argo CD, Flux or Helm wrote. Set it to unowned when that is done."
        if request.takes_claimed
        else "adopt: unowned takes over what no other tool writes."
    )
    head = "# The fleet as kfleet import found it. The first apply adds labels, and changes no spec."
    return f"{head}\n# {why}\n{dumped(value)}"


def clusters_text(seen: ObservedContexts, found: FoundRoles) -> str:
    texts = [_cluster_text(name, seen, found) for name in found.roles]
    return "---\n".join(texts)


def _cluster_text(name: ClusterName, seen: ObservedContexts, found: FoundRoles) -> str:
    known = seen.objects.clusters[name]
    context, version = seen.contexts[name], _older_release(known.kueue)
    spec: dict[str, object] = {"role": str(found.roles[name])}
    spec |= {"access": {"context": context}} if context != name else {}
    spec |= {"kueue": {"version": version}} if version else {}
    value = {"apiVersion": KFLEET_VERSION, "kind": "Cluster", "metadata": {"name": str(name)}, "spec": spec}
    members = [member for (_, member), cluster in found.members.items() if cluster == name]
    comments = [
        f"# From context {context}" + (f", which runs Kueue {known.kueue.removeprefix('v')}." if known.kueue else ".")
    ]
    comments += [f"# The manager knows it as MultiKueueCluster {', '.join(members)}."] if members else []
    return "\n".join([*comments, dumped(value)])


def _older_release(text: str) -> str:
    """The release, where it is older than the newest that kfleet knows; a fleet assumes the newest."""
    try:
        version = parse_version(text)
    except KueueVersionError:
        return ""
    return str(version) if (version.major, version.minor) < (NEWEST.major, NEWEST.minor) else ""
