"""What never gets into a snapshot: values of Secrets, tokens, and the content of jobs beyond what decides about them.

Decision: of pod templates and jobs only named fields are kept. A field that is not known here may hold a command or a
password, so it is dropped. Of all other objects everything is kept except what looks like a pod template.
"""

import json
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from reconciler.decoding import load_json, load_yaml
from reconciler.kueue.frameworks import FRAMEWORKS
from reconciler.objects import Manifest
from reconciler.state.values import LAST_APPLIED, SECRET_KINDS

MASKED = "masked"
# The value of each key of a Secret.
MASKED_DATA = b64encode(MASKED.encode()).decode()
KUBECONFIG = "kubeconfig"
_CLAIMS = ("sub", "iat", "exp")
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
# Jobs keep the annotations of Kueue, KubeStellar and kfleet: these decide where a job goes.
_JOB_ANNOTATIONS = ("kueue.x-k8s.io/", "kfleet.dev/", "kubestellar.io/", "control.kubestellar.io/")
_OTHER_JOBS = {"Workload", "MiniCluster", "ReplicaSet", "SparkApplication"}
JOB_KINDS = frozenset({kind.kind for kind in FRAMEWORKS.values()} | _OTHER_JOBS)
# Fields whose whole value is kept, below a job's spec.
_WHOLE = {
    "resources", "requests", "limits", "overhead", "nodeSelector", "affinity", "tolerations", "topologyRequest",
    "topologySpreadConstraints", "selector", "matchLabels", "labels", "resourceClaims", "schedulingGates",
    "successPolicy", "failurePolicy", "podFailurePolicy", "preemptionGates",
}  # fmt: skip
# Fields whose text is kept. Numbers and booleans are always kept.
_TEXTS = {
    "name", "namespace", "kind", "apiVersion", "queueName", "priorityClassName", "priorityClassSource", "managedBy",
    "schedulerName", "runtimeClassName", "restartPolicy", "nodeName", "completionMode", "groupName", "uid",
    "creationTimestamp", "deletionTimestamp", "startTime", "priorityClassRef", "group", "subGroupIndexLabel",
}  # fmt: skip
_DROPPED = {"env", "envFrom", "image", "command", "args", "volumes", "volumeMounts", "annotations", "managedFields"}
# Kueue's own Deployment says which release runs, with which feature gates and which ConfigMap.
_DEPLOYMENT = {"name", "image", "args", "resources"}


def masked_body(path: str, body: Manifest | str) -> Manifest | str:
    """The body of an answer without secrets. The path and the body both say of which kind it is."""
    if isinstance(body, str):
        return body
    kind = str(body.get("kind") or "")
    if kind == "APIGroupDiscoveryList":
        return _short_discovery(body)
    if isinstance(body.get("items"), list):
        item_kind = "Secret" if _is_secret_path(path) else kind.removesuffix("List")
        return {**body, "items": [masked_object(item_kind, item) for item in body["items"]]}
    return masked_object("Secret" if _is_secret_path(path) and kind != "Status" else kind, body)


def masked_object(kind: str, manifest: Manifest) -> Manifest:
    if kind in SECRET_KINDS:
        return _masked_secret(manifest)
    if kind in JOB_KINDS:
        return _masked_job(manifest)
    if kind == "Node":
        return _without_images(manifest)
    shown: Manifest = _without_templates(manifest, _DEPLOYMENT if kind == "Deployment" else frozenset())
    return shown


def masked_token(token: str) -> str:
    """A token that no server accepts, with the subject and the times of the real one."""
    parts = token.split(".")
    if len(parts) != 3:
        return MASKED
    try:
        claims = load_json(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        kept = {name: claims[name] for name in _CLAIMS if isinstance(claims.get(name), str | int)}
    except (ValueError, AttributeError):
        return MASKED
    payload = urlsafe_b64encode(json.dumps(kept, sort_keys=True).encode()).decode().rstrip("=")
    return f"{MASKED}.{payload}.{MASKED}"


def _is_secret_path(path: str) -> bool:
    parts = path.partition("?")[0].split("/")
    return parts[:3] == ["", "api", "v1"] and "secrets" in (parts[3:4] + parts[5:6])


def _masked_secret(secret: Manifest) -> Manifest:
    """The names of the keys and the metadata. A kubeconfig stays readable, with another token."""
    metadata = dict(secret.get("metadata") or {})
    annotations = {name: MASKED for name in metadata.get("annotations") or {} if name != LAST_APPLIED}
    own = {name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith("kfleet.dev/")}
    if "annotations" in metadata:
        metadata["annotations"] = {**annotations, **own}
    if "managedFields" in metadata:
        metadata["managedFields"] = [_without_values(entry) for entry in metadata["managedFields"]]
    kept = {name: secret[name] for name in ("apiVersion", "kind", "type", "immutable") if name in secret}
    data = {key: _masked_data(key, value) for key, value in (secret.get("data") or {}).items()}
    return {**kept, "metadata": metadata, **({"data": data} if "data" in secret else {})}


def _without_values(entry: Any) -> Any:
    """Owners of fields by name: an item of a list or set is named by its value."""
    if not isinstance(entry, Mapping):
        return entry
    return {key: _without_values(value) for key, value in entry.items() if not key.startswith(("v:", "k:"))}


def _masked_data(key: str, value: Any) -> str:
    masked = _masked_kubeconfig(value) if key == KUBECONFIG and isinstance(value, str) else None
    return MASKED_DATA if masked is None else b64encode(masked.encode()).decode()


def _masked_kubeconfig(value: str) -> str | None:
    """The kubeconfig with the fields that kfleet writes itself; None if it cannot be read."""
    try:
        content = load_yaml(b64decode(value))
        shown = {name: _masked_entries(name, found) for name, found in content.items() if name in _KUBECONFIG}
        return str(yaml.safe_dump(shown, sort_keys=False))
    except (ValueError, TypeError, AttributeError, LookupError, yaml.YAMLError):
        return None


_KUBECONFIG = {"apiVersion", "kind", "clusters", "users", "contexts", "current-context"}
_ENTRIES = {"clusters": "cluster", "users": "user", "contexts": "context"}


def _masked_entries(section: str, found: Any) -> Any:
    if section not in _ENTRIES:
        return str(found)
    noun = _ENTRIES[section]
    return [
        {
            key: str(entry[key]) if key == "name" else _masked_entry(noun, entry[key])
            for key in entry
            if key in ("name", noun)
        }
        for entry in found
    ]


def _masked_entry(noun: str, content: Mapping[str, Any]) -> dict[str, Any]:
    if noun == "user":
        known = {"token": masked_token(str(content.get("token", ""))), "client-certificate-data": MASKED_DATA}
        return {key: known[key] for key in content if key in known}
    names = {"cluster": ("server", "certificate-authority-data"), "context": ("cluster", "user")}[noun]
    return {key: _without_login(str(value)) for key, value in content.items() if key in names}


def _without_login(server: str) -> str:
    """A URL without a user and password in it."""
    scheme, mark, rest = server.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else server


def _masked_job(job: Manifest) -> Manifest:
    shown = {name: value for name, value in job.items() if name in ("apiVersion", "kind")}
    shown |= {"metadata": _job_metadata(job.get("metadata") or {})}
    if "spec" in job:
        shown["spec"] = _job_fields(job["spec"])
    if "status" in job:
        shown["status"] = _without_templates(job["status"])
    return shown


def _job_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {name: value for name, value in metadata.items() if name not in ("managedFields", "annotations")}
    marks = metadata.get("annotations") or {}
    own = {
        name: value for name, value in marks.items() if name.startswith(_JOB_ANNOTATIONS) or "kueue.x-k8s.io/" in name
    }
    return {**kept, "annotations": own} if own else kept


def _job_fields(value: Any) -> Any:
    """Numbers, structure and the texts that decide about admission and placement."""
    if isinstance(value, Mapping):
        return {
            key: found if key in _WHOLE else _job_fields(found)
            for key, found in value.items()
            if key not in _DROPPED and (not isinstance(found, str) or key in _TEXTS)
        }
    if isinstance(value, list):
        return [_job_fields(one) for one in value if not isinstance(one, str)]
    return value


def _without_images(node: Manifest) -> Manifest:
    """A Node without its list of images, which is most of it."""
    status = {name: value for name, value in (node.get("status") or {}).items() if name != "images"}
    return {**node, "status": status}


def _without_templates(value: Any, kept: Iterable[str] = ()) -> Any:
    """Any value without the content of containers: objects of other systems wrap whole jobs."""
    if isinstance(value, list):
        return [_without_templates(one, kept) for one in value]
    if not isinstance(value, Mapping):
        return value
    if not any(_is_containers(value.get(name)) for name in _CONTAINERS):
        return {name: _without_templates(found, kept) for name, found in value.items()}
    containers = {name: _short_containers(value[name], kept) for name in _CONTAINERS if _is_containers(value.get(name))}
    volumes = {"volumes": _mounted(value["volumes"])} if kept and isinstance(value.get("volumes"), list) else {}
    rest = {name: found for name, found in value.items() if name not in containers and name != "volumes"}
    return {**_job_fields(rest), **volumes, **containers}


def _is_containers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _short_containers(containers: Iterable[Mapping[str, Any]], kept: Iterable[str]) -> list[Any]:
    return [{**_job_fields(one), **{name: value for name, value in one.items() if name in kept}} for one in containers]


def _mounted(volumes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{name: one[name] for name in ("name", "configMap") if name in one} for one in volumes]


def _short_discovery(body: Manifest) -> Manifest:
    """Names and scopes of the served kinds."""
    return {
        "kind": body["kind"],
        "apiVersion": body.get("apiVersion", ""),
        "metadata": {},
        "items": [
            {
                "metadata": {"name": (group.get("metadata") or {}).get("name", "")},
                "versions": [
                    {"version": version.get("version"), "resources": _short_resources(version.get("resources") or ())}
                    for version in group.get("versions") or ()
                ],
            }
            for group in body.get("items") or ()
        ],
    }


def _short_resources(resources: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    return [
        {
            "resource": one.get("resource"),
            "responseKind": {"kind": (one.get("responseKind") or {}).get("kind")},
            "scope": one.get("scope"),
        }
        for one in resources
    ]
