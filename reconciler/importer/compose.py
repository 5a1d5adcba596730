"""Composes the fleet: kfleet's own kinds where they fit, native documents elsewhere, and proves that nothing changes.

Decision: what fits is found out by rendering, not by rules about what a Queue or a Tenant can say. Such rules would
describe the renderer a second time, and would be wrong the day that it changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.errors import KfleetError
from reconciler.importer.collect import MASTER_QUEUE, FoundRoles, collect, find_roles
from reconciler.importer.files import Proof, changed_field, clusters_text, file_texts, fleet_text, prove
from reconciler.importer.model import (
    Group,
    ImportedFleet,
    ImportRequest,
    LeftObject,
    LiveObject,
    ObservedContexts,
    WrittenDocument,
)
from reconciler.importer.shapes import Amounts, native_document, quotas_of_flavors, shaped_document
from reconciler.importer.text import hand_over_steps
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.objects import Ref, ref_of
from reconciler.snapshot.model import ClusterObjects
from reconciler.spec.nats import without_logins
from reconciler.spec.selectors import LINT_IGNORE, PART_OF
from reconciler.state.claimants import claimant

# Each round replaces or removes a document, and there are two kinds of documents: it ends by itself.
_ROUNDS_PER_DOCUMENT = 4
_WITH_LOGIN = "its address holds a login, which is not copied: Fleet.spec.masterQueues.fromCluster reads it there"


@dataclass(frozen=True, slots=True)
class _Draft:
    """The documents so far, and what had to be left out."""

    documents: tuple[WrittenDocument, ...]
    left: tuple[LeftObject, ...] = ()


def compose(seen: ObservedContexts, request: ImportRequest) -> ImportedFleet:
    found = find_roles(seen)
    _refuse_other_fleets(seen, found)
    taken, left = collect(seen, request)
    with_login = tuple(one for one in taken if _holds_login(one))
    heads = {
        "fleet.yaml": fleet_text(request, reads_master_queues=bool(with_login)),
        "clusters.yaml": clusters_text(seen, found),
    }
    is_alone, namespaces = len(found.roles) == 1, frozenset(_namespaces(seen, request))
    plain = tuple(one for one in taken if one not in with_login)
    # The quota of a manager is a sum of its workers' and says nothing about nodes.
    quotas = quotas_of_flavors(one for one in plain if one.ref.cluster not in found.managers)
    draft = _Draft(tuple(_documents(plain, quotas or quotas_of_flavors(plain), is_alone=is_alone)))
    for _ in range(_ROUNDS_PER_DOCUMENT * (len(plain) + 1)):
        texts = file_texts(heads, draft.documents)
        proof = prove(texts, draft.documents, namespaces)
        if proof.is_good:
            break
        draft = _improved(draft, proof, is_alone=is_alone)
    else:
        raise AssertionError("no fleet was found that changes nothing")
    kept = tuple(source for document in draft.documents for source in document.sources)
    every_left = (*left, *draft.left, *(LeftObject(one.ref, _WITH_LOGIN) for one in with_login))
    return ImportedFleet(
        files=texts.texts,
        roles=found.roles,
        taken=kept,
        shaped=sum(len(document.sources) for document in draft.documents if document.is_shaped),
        left=every_left,
        notes=(*found.notes, *(str(warning) for warning in proof.warnings)),
        hand_over=hand_over_steps(kept, every_left, request),
    )


def _refuse_other_fleets(seen: ObservedContexts, found: FoundRoles) -> None:
    """A fleet has one manager, and two of its clusters are never one API server."""
    if len(found.managers) > 1:
        names = " and ".join(seen.contexts[name] for name in found.managers)
        raise KfleetError(f"--context: {names} each have a MultiKueueConfig, and a fleet has one manager: import twice")
    first: dict[str, str] = {}
    for cluster in seen.reachable:
        context, uid = seen.contexts[cluster.name], _uid(cluster)
        if uid and (other := first.setdefault(uid, context)) != context:
            raise KfleetError(f"--context: {context} and {other} are the same cluster: name one of them")


def _uid(cluster: ClusterObjects) -> str:
    named = (live for live in cluster.of("", "Namespace") if at(live, "metadata", "name") == "kube-system")
    return next((as_text(at(live, "metadata", "uid")) for live in named), "")


def _holds_login(found: LiveObject) -> bool:
    spec = found.current.get("spec")
    return (found.ref.group, found.ref.kind) == MASTER_QUEUE and without_logins(spec) != spec


def _namespaces(seen: ObservedContexts, request: ImportRequest) -> Iterator[Ref]:
    """Namespaces that a Tenant may adopt: those that no other tool writes and that are not being deleted."""
    for cluster in seen.reachable:
        for live in cluster.of("", "Namespace"):
            metadata = live["metadata"]
            is_free = not metadata.get("deletionTimestamp") and PART_OF not in as_map(metadata.get("labels"))
            if is_free and (request.takes_claimed or not claimant(live)):
                yield ref_of(cluster.name, {**live, "apiVersion": "v1", "kind": "Namespace"})


def _documents(
    taken: Sequence[LiveObject], quotas: Mapping[str, Amounts], *, is_alone: bool
) -> Iterator[WrittenDocument]:
    """One document for the objects of a group that are alike; of several variants only the first can have a shape."""
    groups: dict[Group, list[LiveObject]] = {}
    for found in taken:
        groups.setdefault(found.group, []).append(found)
    names: set[tuple[str, str]] = set()
    for group, members in groups.items():
        variants = sorted(_variants(members), key=len, reverse=True)
        shaped = shaped_document(group, variants[0], quotas.get(group[3], {}), is_alone=is_alone)
        if shaped is not None:
            yield _with_free_name(shaped, group, names)
        rest = variants[1:] if shaped else variants
        yield from (native_document(variant, is_alone=is_alone) for variant in rest)


def _variants(members: Sequence[LiveObject]) -> list[list[LiveObject]]:
    found: list[list[LiveObject]] = []
    for member in members:
        alike = (known for known in found if not changed_field(known[0].current, member.current))
        if (known := next(alike, None)) is None:
            found.append([member])
        else:
            known.append(member)
    return found


def _with_free_name(document: WrittenDocument, group: Group, taken: set[tuple[str, str]]) -> WrittenDocument:
    """A second LocalQueue of a namespace is a Tenant of another name."""
    kind, name = document.value["kind"], document.value["metadata"]["name"]
    if (kind, name) in taken:
        name = f"{name}-{group[3]}"
    taken.add((kind, name))
    return replace(document, value={**document.value, "metadata": {"name": name}})


def _improved(draft: _Draft, proof: Proof, *, is_alone: bool) -> _Draft:
    documents: list[WrittenDocument] = []
    left = list(draft.left)
    for number, document in enumerate(draft.documents):
        if number in proof.wrong and document.is_shaped:
            why = f"Not a {document.value['kind']}, because {proof.wrong[number]}."
            documents.append(native_document(document.sources, is_alone=is_alone).commented(why))
        elif number in proof.wrong:
            left += [LeftObject(source.ref, proof.wrong[number]) for source in document.sources]
        elif number in proof.faulty:
            documents.append(_silenced(document, proof.faulty[number]))
        else:
            documents.append(document)
    return _Draft(tuple(documents), tuple(left))


def _silenced(document: WrittenDocument, faults: Any) -> WrittenDocument:
    """The document with its errors silenced: they were there before kfleet, and must not stop the first plan."""
    metadata = document.value["metadata"]
    annotations = as_map(metadata.get("annotations"))
    known = [text for text in str(annotations.get(LINT_IGNORE, "")).split("; ") if text]
    ignores = "; ".join([*known, *(f"{rule}: it was so on the clusters" for rule in faults)])
    changed = {**metadata, "annotations": {**annotations, LINT_IGNORE: ignores}}
    comments = (f"To be mended: {problem} [{rule}]." for rule, problem in faults.items())
    return replace(document, value={**document.value, "metadata": changed}).commented(*comments)
