"""The annotation that says which clusters a native document goes to."""

import re
from dataclasses import dataclass

from reconciler.spec.document import Document
from reconciler.spec.selector import LabelSelector, parse_selector

ANNOTATION = "kfleet.dev/clusters"

_WORDS = re.compile(r"\s*[a-z0-9][a-z0-9.-]*\s*(,\s*[a-z0-9][a-z0-9.-]*\s*)*")


@dataclass(frozen=True, slots=True)
class Targets:
    """Words (`manager`, `workers`, `all`) and names, or labels; neither means the manager, or the only cluster."""

    words: tuple[str, ...] = ()
    labels: LabelSelector | None = None


def read_targets(document: Document) -> Targets:
    """Read the annotation; ValueError says what is wrong with it."""
    text = document.annotations.get(ANNOTATION)
    return Targets() if text is None else parse_targets(text)


def parse_targets(text: str) -> Targets:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(
            f"{text!r} names no cluster: write manager, workers, all, names (hub,east) or labels (site=cnaf)"
        )
    if _WORDS.fullmatch(text):
        return Targets(words=tuple(word.strip() for word in text.split(",")))
    return Targets(labels=parse_selector(text))
