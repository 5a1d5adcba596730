"""The text of the new files, with comments on their origin, and the proof that they change nothing.

Each problem is about one document, and says why that document cannot stand for its objects.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from reconciler.errors import SourceLocation, SpecError
from reconciler.importer.collect import FoundRoles
from reconciler.importer.model import ImportRequest, LiveObject, ObservedContexts, WrittenDocument
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import NEWEST, KueueVersionError, parse_version
from reconciler.kueue.reading import as_map
from reconciler.kueue.structure import with_defaults
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import RULE_BY_ID, lint, lint_spec
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
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
MASTER = "MasterQueue"
NO_SPEC: Manifest = {}


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


@dataclass(frozen=True, slots=True)
class Proof:
    """Documents by number: those that would change something, and errors of lint that were there before kfleet."""

    wrong: Mapping[int, str] = field(default_factory=dict)
    faulty: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    warnings: tuple[Finding, ...] = ()

    @property
    def is_good(self) -> bool:
        return not self.wrong and not self.faulty


def prove(texts: FileTexts, documents: Sequence[WrittenDocument], namespaces: frozenset[Ref]) -> Proof:
    """`namespaces` are there already, so that a Tenant may name them."""
    files = {f"{FOLDER}/{name}": text.encode() for name, text in texts.texts.items()}
    try:
        spec = parse_fleet(FleetFiles("the imported fleet", "", files))
    except ExceptionGroup as group:
        return Proof(wrong=located(texts, group))
    try:
        desired = compute_desired(spec)
    except ExceptionGroup as group:
        return Proof(wrong=_blamed(documents, located(texts, group)))
    wrong = dict(_differences(texts, documents, desired, namespaces))
    return Proof(wrong) if wrong else _linted(texts, spec, desired)


def _blamed(documents: Sequence[WrittenDocument], doubles: Mapping[int, str]) -> dict[int, str]:
    """Blame the document with a shape, not a variant of its object that is written as it is on another cluster.

    A Tenant writes its LocalQueue on every cluster of its queue, and so beside the variant.
    """
    shaped = {
        source.group: number
        for number, document in enumerate(documents)
        if document.is_shaped
        for source in document.sources
    }
    return {
        number if documents[number].is_shaped else shaped.get(documents[number].sources[0].group, number): why
        for number, why in doubles.items()
    }


def located(texts: FileTexts, group: ExceptionGroup[Exception]) -> dict[int, str]:
    """The documents of the errors. An error of the fleet itself, or of a cluster, cannot be mended here."""
    found: dict[int, str] = {}
    for error in group.exceptions:
        number = texts.document_at(error.place) if isinstance(error, SpecError) else None
        if number is None or not isinstance(error, SpecError):
            raise group
        found[number] = f"{error.field}: {error.problem}" if error.field else error.problem
    return found


def _differences(
    texts: FileTexts, documents: Sequence[WrittenDocument], desired: Desired, namespaces: frozenset[Ref]
) -> Iterator[tuple[int, str]]:
    live = {source.ref: (number, source) for number, document in enumerate(documents) for source in document.sources}
    made = {entry.ref: entry for entry in desired.objects}
    for ref, (number, source) in live.items():
        if ref.kind == MASTER:
            continue
        entry = made.get(ref)
        if entry is None:
            yield number, f"{ref} would not be written"
        elif path := changed_field(source.current, entry.manifest):
            yield number, f"{path} of {ref} would change"
    for ref, entry in made.items():
        if ref not in live and ref not in namespaces and entry.document.kind != MASTER:
            maker = texts.document_at(entry.document.place("metadata", "name"))
            if maker is None:
                raise AssertionError(f"{ref} is made by no document")
            yield maker, f"{ref.kind} {ref.name} would be made on {ref.cluster}"


def changed_field(live: Manifest, made: Manifest) -> str:
    """The first field of the spec that would change; empty if none would. Everything beside the metadata counts."""
    before, after = with_defaults(to_canonical(live).manifest), with_defaults(to_canonical(made).manifest)
    for name in (before.keys() | after.keys()) - {"metadata", "status", "apiVersion", "kind"}:
        old, new = before.get(name) or NO_SPEC, after.get(name) or NO_SPEC
        if old != new:
            fields = [key for key in {**as_map(old), **as_map(new)} if as_map(old).get(key) != as_map(new).get(key)]
            return f"{name}.{fields[0]}" if fields else name
    return ""


def _linted(texts: FileTexts, spec: FleetSpec, desired: Desired) -> Proof:
    """An error stops every plan. One that was there before kfleet is silenced with a reason, where that is possible."""
    wrong: dict[int, str] = {}
    faulty: dict[int, dict[str, str]] = {}
    findings = lint(spec, desired) if desired.objects else lint_spec(spec)
    for finding in findings:
        if finding.severity is not Severity.ERROR:
            continue
        number = texts.document_at(finding.place)
        if number is None:
            raise AssertionError(str(finding))
        if RULE_BY_ID[finding.rule].can_be_silenced:
            faulty.setdefault(number, {})[finding.rule] = finding.problem
        else:
            wrong[number] = f"{finding.problem} [{finding.rule}]"
    warnings = tuple(one for one in findings if one.severity is Severity.WARNING)
    return Proof(wrong, faulty, warnings)
