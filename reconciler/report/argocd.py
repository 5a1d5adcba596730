"""The parameters of the Argo CD plugin, and the annotations by which Argo CD treats objects as kfleet would."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.errors import KfleetError
from reconciler.objects import Manifest, Ref
from reconciler.render.model import wave_of

PARAMETERS = "ARGOCD_APP_PARAMETERS"
SOURCE_PATH = "ARGOCD_APP_SOURCE_PATH"
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
OBSERVED = "kfleet.dev/observations"
# A scheduled job commits new observations. After two days without them, kfleet marks them as stale.
STALE_AFTER = timedelta(days=2)
# kfleet never deletes a Namespace or CustomResourceDefinition, and drains a queue or a worker before it deletes it.
# Argo CD would not.
_PRUNING = {
    "Namespace": "Prune=false",
    "CustomResourceDefinition": "Prune=false",
    "ClusterQueue": "Prune=confirm",
    "MultiKueueCluster": "Prune=confirm",
}
_TITLES = {
    "cluster": "Cluster of the fleet whose objects are rendered",
    "overlay": "Overlay to apply to the fleet",
    "snapshot": "File of `kfleet observe -o json` or `kfleet snapshot`, from the root of the repository",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The plugin's parameters. `snapshot` is a path in the repository; empty if no capacity is observed."""

    cluster: str = ""
    overlay: str = ""
    snapshot: str = ""


def read_parameters(environment: Mapping[str, str]) -> Parameters:
    """Read the Application's parameters; a missing one is read from its `env`."""
    given = {name: _variable(environment, name) for name in _TITLES}
    for entry in _entries(environment.get(PARAMETERS, "")):
        name, value = str(entry.get("name")), entry.get("string")
        if name not in given:
            raise KfleetError(f"parameter {name!r}: is not known; use one of: {', '.join(_TITLES)}")
        if not isinstance(value, str):
            raise KfleetError(f"parameter {name}: must be a string, such as {{name: {name}, string: hub}}")
        given[name] = value
    return Parameters(**given)


def _variable(environment: Mapping[str, str], name: str) -> str:
    found = (environment.get(f"{prefix}_{name.upper()}") for prefix in ("PARAM", "ARGOCD_ENV"))
    return next((value for value in found if value), "")


def _entries(text: str) -> list[Mapping[str, Any]]:
    """The entries of the parameters. Argo CD writes `null` if an Application has none."""
    try:
        content = json.loads(text or "null") or []
    except ValueError:
        content = None
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise KfleetError(f"{PARAMETERS}: is not a list of parameters")
    return content


def announcements(clusters: Iterable[str], overlays: Iterable[str]) -> list[dict[str, Any]]:
    """The parameters in the form that Argo CD's user interface expects."""
    choices = {"cluster": list(clusters), "overlay": list(overlays)}
    return [
        {
            "name": name,
            "title": title,
            "tooltip": f"One of: {', '.join(choices[name])}." if choices.get(name) else "",
            "required": name == "cluster",
            "itemType": "string",
            "collectionType": "string",
        }
        for name, title in _TITLES.items()
    ]


def observed_note(seen: datetime, now: datetime) -> str:
    """When the capacity was observed, and whether that is stale. The text changes only when it becomes stale."""
    moment = seen.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment}, stale: older than {STALE_AFTER.days} days" if now - seen > STALE_AFTER else moment


def annotate_for_argocd(ref: Ref, manifest: Manifest, observed: str = "") -> dict[str, Any]:
    """Add sync wave and sync options to the object. Annotations that the fleet itself sets take precedence."""
    annotations = {WAVE: str(wave_of(ref))}
    if ref.kind in _PRUNING:
        annotations[OPTIONS] = _PRUNING[ref.kind]
    if observed and ref.kind in {"ClusterQueue", "Cohort"}:
        annotations[OBSERVED] = observed
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": annotations | dict(metadata.get("annotations") or {})}}
