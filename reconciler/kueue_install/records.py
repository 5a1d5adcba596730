"""Reads what helm keeps and renders: the record of a release in a Secret, and the objects of a chart."""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import yaml

from reconciler.decoding import load_json, unpacked
from reconciler.kueue.configuration import CONFIG_KEY, patched, read_configuration, write_configuration
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue_install.model import Definition, HelmRecord, WantedKueue, version_of
from reconciler.objects import Manifest, merge_maps
from reconciler.spec.model import KueueInstall

DEFINITION = "CustomResourceDefinition"
OWNER_NAME, OWNER_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
KEEP = "helm.sh/resource-policy"
VERSION_LABEL = "app.kubernetes.io/version"
_GATES = "--feature-gates="
_CONFIGURATION = ("managerConfig", "controllerManagerConfigYaml")


class RecordError(ValueError):
    """A Secret that is not a record of helm, or one that kfleet cannot read."""


def newest_record(secrets: Iterable[Manifest]) -> HelmRecord | None:
    """Return the newest of the Secrets that helm has written for one release. Only that one is decoded."""
    found = sorted(secrets, key=lambda secret: int(as_text(at(secret, "metadata", "labels", "version")) or 0))
    return _record(found[-1]) if found else None


def _record(secret: Manifest) -> HelmRecord:
    metadata = as_map(secret.get("metadata"))
    try:
        # Encoded by helm, and once more because it is the value of a Secret.
        packed = b64decode(b64decode(as_text(at(secret, "data", "release")), validate=True), validate=True)
        content = as_map(load_json(unpacked(packed)))
    except ValueError as error:
        raise RecordError(f"the Secret {metadata.get('name')} is not a record of helm") from error
    return HelmRecord(
        revision=int(content.get("version") or 0),
        status=as_text(at(content, "info", "status")),
        chart=as_text(at(content, "chart", "metadata", "version")),
        values=as_map(content.get("config")),
        definitions=frozenset(_definition_names(as_text(content.get("manifest")))),
        secret=as_text(metadata.get("name")),
        uid=as_text(metadata.get("uid")),
        written=_moment(as_text(metadata.get("creationTimestamp"))),
    )


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _definition_names(manifest: str) -> Iterator[str]:
    """By the lines of the manifest: to read the CRDs of Kueue as YAML takes seconds."""
    for document in manifest.split("\n---"):
        lines = document.splitlines()
        if f"kind: {DEFINITION}" in lines:
            names = (line.partition(":")[2].strip(" '\"") for line in lines if line.startswith("  name:"))
            yield next(names, "")


def read_objects(text: str) -> tuple[Manifest, ...]:
    """Return the objects that `helm template` prints."""
    return tuple(entry for entry in yaml.load_all(text, yaml.CSafeLoader) if isinstance(entry, dict))


def make_target(chart: str, values: Manifest, objects: tuple[Manifest, ...]) -> WantedKueue:
    version = version_of(chart)
    if version is None:
        raise RecordError(f"the chart has the version {chart!r}, which is not a release of Kueue")
    texts = (as_text(at(entry, "data", CONFIG_KEY)) for entry in objects if entry.get("kind") == "ConfigMap")
    return WantedKueue(
        version=version,
        chart=chart,
        values=values,
        objects=objects,
        configuration=next(filter(None, texts), ""),
        gates=dict(_gates(objects)),
        definitions={
            as_text(at(entry, "metadata", "name")): tuple(
                as_text(at(version, "name")) for version in as_list(at(entry, "spec", "versions"))
            )
            for entry in objects
            if entry.get("kind") == DEFINITION and at(entry, "spec", "group") == GROUP
        },
    )


def _gates(objects: Iterable[Manifest]) -> Iterator[tuple[str, bool]]:
    for entry in objects:
        if entry.get("kind") != "Deployment":
            continue
        for container in as_list(at(entry, "spec", "template", "spec", "containers")):
            for argument in map(as_text, as_list(at(container, "args"))):
                if argument.startswith(_GATES):
                    pairs = (pair.partition("=") for pair in argument.removeprefix(_GATES).split(","))
                    yield from ((name, value == "true") for name, _, value in pairs if name)


def chart_values(install: KueueInstall, patch: Manifest, defaults: Manifest) -> Manifest:
    """Return the values for the chart, with what the fleet sets in Kueue's Configuration merged in.

    Otherwise every upgrade would write the chart's own Configuration, and kfleet its own again, with a restart each.
    """
    if not patch:
        return install.values
    text = as_text(at(install.values, *_CONFIGURATION)) or as_text(at(defaults, *_CONFIGURATION))
    changed = write_configuration(patched(read_configuration(text), patch))
    merged: Manifest = merge_maps(install.values, {_CONFIGURATION[0]: {_CONFIGURATION[1]: changed}})
    return merged


def are_same_values(record: Manifest, install: KueueInstall, patch: Manifest) -> bool:
    """Whether a release has the values of git, as far as this can be known without the chart."""
    return _compared(record, patch) == _compared(install.values, patch)


def _compared(values: Manifest, patch: Manifest) -> Manifest:
    if not patch:
        return values
    manager = {
        name: value for name, value in as_map(values.get(_CONFIGURATION[0])).items() if name != _CONFIGURATION[1]
    }
    rest = {name: value for name, value in values.items() if name != _CONFIGURATION[0]}
    return {**rest, _CONFIGURATION[0]: manager} if manager else rest


def owner_of(manifest: Manifest | None) -> str:
    """Return the Helm release that has an object, as `namespace/name`; empty if none has it."""
    annotations = as_map(at(manifest, "metadata", "annotations"))
    name, namespace = as_text(annotations.get(OWNER_NAME)), as_text(annotations.get(OWNER_NAMESPACE))
    return f"{namespace}/{name}" if name else ""


def definition_of(manifest: Manifest) -> Definition:
    stored = tuple(map(as_text, as_list(at(manifest, "status", "storedVersions"))))
    return Definition(stored, owner_of(manifest), at(manifest, "metadata", "annotations", KEEP) == "keep")


def labelled_version(deployment: Manifest | None) -> str:
    """The release that the chart writes beside an image whose tag names none."""
    text = as_text(at(deployment, "metadata", "labels", VERSION_LABEL))
    return text if version_of(text) else ""


def named_version(chart: Mapping[str, object]) -> str:
    return as_text(chart.get("version")).removeprefix("v")
