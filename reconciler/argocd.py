"""What Argo CD tells its plugin, and what the plugin adds to objects so that Argo CD treats them as kfleet would."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.desired.order import wave_of
from reconciler.errors import KfleetError
from reconciler.objects import Manifest, Ref

PARAMETERS = "ARGOCD_APP_PARAMETERS"
SOURCE_PATH = "ARGOCD_APP_SOURCE_PATH"
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
OBSERVED = "kfleet.dev/observations"
# A committed look is renewed by a job now and then. After two days without one, somebody should know.
STALE_AFTER = timedelta(days=2)
# kfleet deletes no namespace and no definition, and empties a queue or a worker before it goes. Argo CD would not.
_PRUNING = {
    "Namespace": "Prune=false",
    "CustomResourceDefinition": "Prune=false",
    "ClusterQueue": "Prune=confirm",
    "MultiKueueCluster": "Prune=confirm",
}
_TITLES = {
    "cluster": "Cluster of the fleet whose objects are wanted",
    "overlay": "Overlay to lay over the fleet",
    "observations": "File of `kfleet observe -o json`, from the root of the repository",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """`observations` is a path in the repository; empty where no capacity is observed."""

    cluster: str = ""
    overlay: str = ""
    observations: str = ""


def read_parameters(environment: Mapping[str, str]) -> Parameters:
    """From the Application's parameters; from its `env` where there are none of that name."""
    given = {name: _variable(environment, name) for name in _TITLES}
    for entry in _entries(environment.get(PARAMETERS, "")):
        name, value = str(entry.get("name")), entry.get("string")
        if name not in given:
            raise KfleetError(f"parameter {name!r}: is not known; there are: {', '.join(_TITLES)}")
        if not isinstance(value, str):
            raise KfleetError(f"parameter {name}: must be a string, such as {{name: {name}, string: hub}}")
        given[name] = value
    return Parameters(**given)


def _variable(environment: Mapping[str, str], name: str) -> str:
    found = (environment.get(f"{prefix}_{name.upper()}") for prefix in ("PARAM", "ARGOCD_ENV"))
    return next((value for value in found if value), "")


def _entries(text: str) -> list[Mapping[str, Any]]:
    """Argo CD writes `null` where an Application has no parameters."""
    try:
        content = json.loads(text or "null") or []
    except ValueError:
        content = None
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise KfleetError(f"{PARAMETERS}: holds no list of parameters")
    return content


def announcements(clusters: Iterable[str], overlays: Iterable[str]) -> list[dict[str, Any]]:
    """The parameters as Argo CD's user interface lists them."""
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
    """When the capacity was observed, and whether that is too long ago. Stays the same until it becomes stale."""
    moment = seen.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment}, stale: older than {STALE_AFTER.days} days" if now - seen > STALE_AFTER else moment


def dressed(ref: Ref, manifest: Manifest, observed: str = "") -> dict[str, Any]:
    """The object with its wave, and with what must not happen to it. What the fleet itself says of that stays."""
    annotations = {WAVE: str(wave_of(ref))}
    if ref.kind in _PRUNING:
        annotations[OPTIONS] = _PRUNING[ref.kind]
    if observed and ref.kind in {"ClusterQueue", "Cohort"}:
        annotations[OBSERVED] = observed
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": annotations | dict(metadata.get("annotations") or {})}}
