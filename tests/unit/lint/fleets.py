"""Fleets for lint, built from snippets that leave out what every example has."""

from collections.abc import Iterable
from typing import Any

import yaml

from reconciler.desired import compute_desired
from reconciler.kueue.kinds import CANONICAL, GROUP, KIND_BY_NAME
from reconciler.lint import Finding, lint, lint_spec
from reconciler.lint.catalog.base import BASE
from reconciler.spec import FleetFiles, FleetSpec, parse_fleet


def find(snippet: str) -> tuple[Finding, ...]:
    """What lint says of the base fleet with the documents of a snippet in it."""
    return findings_of(parse(snippet))


def rules_of(snippet: str) -> set[str]:
    return {finding.rule for finding in find(snippet)}


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


def parse(snippet: str) -> FleetSpec:
    text = yaml.safe_dump_all(completed(snippet), sort_keys=False, width=1000)
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))


def completed(snippet: str) -> Iterable[dict[str, Any]]:
    """The documents of the base fleet and of the snippet, which wins."""
    documents: dict[tuple[str, ...], dict[str, Any]] = {}
    for document in (*yaml.safe_load_all(BASE), *yaml.safe_load_all(snippet)):
        metadata = document.setdefault("metadata", {"name": "example"})
        kind = document["kind"]
        document.setdefault("apiVersion", f"{GROUP}/{CANONICAL}" if kind in KIND_BY_NAME else "kfleet.dev/v1alpha1")
        targets = metadata.get("annotations", {}).get("kfleet.dev/clusters", "")
        documents[kind, metadata.get("namespace", ""), metadata["name"], targets] = document
    return documents.values()
