"""Proves that a fleet changes nothing: it is read and rendered as every command does, and compared with what is there.

Each problem is about one document, and says why that document cannot stand for its objects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.errors import SpecError
from reconciler.importer.files import FOLDER, FileTexts
from reconciler.importer.model import WrittenDocument
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.fields import with_defaults
from reconciler.kueue.reading import as_map
from reconciler.lint.model import Finding, Severity
from reconciler.lint.run import RULE_BY_ID, lint, lint_spec
from reconciler.objects import Manifest, Ref
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

MASTER = "MasterQueue"
NO_SPEC: Manifest = {}


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
        return Proof(wrong=located(texts, group))
    wrong = dict(_differences(texts, documents, desired, namespaces))
    return Proof(wrong) if wrong else _linted(texts, spec, desired)


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
