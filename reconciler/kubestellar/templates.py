"""The pod templates of a job of any kind: where they are, and what is written into them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.kubestellar.model import JobPodSet
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.spec.kubestellar import DownsyncKind

_EVERY = "*"
_ITEM = "[name]"


@dataclass(frozen=True, slots=True)
class Template:
    """One pod template: its path with every name filled in, the last such name, and the spec of its pods."""

    path: tuple[str, ...]
    name: str
    pod: Manifest

    @property
    def key(self) -> str:
        return ".".join(self.path)


def find_templates(kind: DownsyncKind, job: Manifest) -> tuple[Template, ...]:
    return tuple(
        Template(path, _last_name(path, written), as_map(at(found, "spec")))
        for written in kind.templates
        for path, found in _walk(job, tuple(written.replace("[", ".[").split(".")), ())
    )


def pods_of(template: Template, pod_sets: Sequence[JobPodSet]) -> JobPodSet | None:
    """The pod set that Kueue made of a template: it has the name of the replica or of the item, in lower case."""
    named = next((one for one in pod_sets if one.name.lower() == template.name.lower()), None)
    return named or (pod_sets[0] if len(pod_sets) == 1 else None)


def wanted_fields(original: Mapping[str, Any], pods: JobPodSet) -> dict[str, Any]:
    """What a pod needs beside its own to get to the nodes of its flavor; what the user wrote stays as it is."""
    own = as_map(original.get("nodeSelector"))
    selector = {**pods.labels, **own}
    tolerations = [dict(as_map(one)) for one in as_list(original.get("tolerations"))]
    added = [one for one in map(dict, pods.tolerations) if one not in tolerations]
    found: dict[str, Any] = {}
    if selector != own:
        found["nodeSelector"] = selector
    if added:
        found["tolerations"] = [*tolerations, *added]
    return found


def at_path(path: Sequence[str], content: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that says nothing but this content at this path."""
    found: Any = dict(content)
    for step in reversed(path):
        found = [{"name": step[1:-1], **found}] if step.startswith("[") else {step: found}
    return dict(found)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two manifests merged into one; items of lists are matched by name."""
    found = dict(first)
    for key, value in second.items():
        known = found.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            found[key] = merged(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            found[key] = [*known, *value]
        else:
            found[key] = value
    return found


def _walk(value: Any, steps: tuple[str, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == _ITEM:
        for item in map(as_map, as_list(value)):
            yield from _walk(item, rest, (*path, f"[{as_text(item.get('name'))}]"))
    elif step == _EVERY:
        for key, item in as_map(value).items():
            yield from _walk(item, rest, (*path, key))
    elif step in as_map(value):
        yield from _walk(as_map(value)[step], rest, (*path, step))


def _last_name(path: tuple[str, ...], written: str) -> str:
    steps = written.replace("[", ".[").split(".")
    names = [one.strip("[]") for one, step in zip(path, steps, strict=True) if step in (_EVERY, _ITEM)]
    return names[-1] if names else ""
