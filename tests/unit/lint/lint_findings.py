"""Fleets for lint, built from snippets that leave out what every example has."""

from collections.abc import Iterable
from typing import Any

from reconciler.lint.docs import base_fleet
from reconciler.lint.model import Finding
from reconciler.lint.run import lint, lint_spec
from reconciler.render.compute import compute_desired
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.builders import CLUSTERS, Document, complete, loaded, queue, quota


def find(*snippets: Document | str) -> tuple[Finding, ...]:
    """What lint says of the base fleet with the documents of snippets in it."""
    return findings_of(parse_snippet(*snippets))


def rules_of(*snippets: Document | str) -> set[str]:
    return {finding.rule for finding in find(*snippets)}


def science_queue(resources: Document, limits: Document | None = None, **spec: Any) -> Document:
    """The queue of the base fleet with another quota, in a cohort."""
    return queue("research", quota("cpu", resources, **(limits or {})), cohort="science", **spec)


def find_text(text: str) -> tuple[Finding, ...]:
    """What lint says of a fleet that is written in full, in fleet/all.yaml."""
    return findings_of(parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()})))


def findings_of(spec: FleetSpec) -> tuple[Finding, ...]:
    """Where documents contradict each other there are no objects, and the spec alone is looked at."""
    try:
        desired = compute_desired(spec)
    except ExceptionGroup:
        return lint_spec(spec)
    return lint(spec, desired)


def parse_snippet(*snippets: Document | str) -> FleetSpec:
    text = fast_yaml.safe_dump_all(completed(*snippets), sort_keys=False, width=1000)
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))


def completed(*snippets: Document | str) -> Iterable[Document]:
    """The documents of the base fleet and of the snippets, which win."""
    documents: dict[tuple[str, ...], Document] = {}
    for given in loaded(base_fleet(), *snippets):
        document = complete({"metadata": {"name": "example"}, **given})
        metadata = document["metadata"]
        targets = metadata.get("annotations", {}).get(CLUSTERS, "")
        documents[document["kind"], metadata.get("namespace", ""), metadata["name"], targets] = document
    return documents.values()
