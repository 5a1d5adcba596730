"""Kueue itself as the judge of a Configuration: it reads it before it looks for a cluster."""

import json
import subprocess
from pathlib import Path
from typing import Any

from reconciler.kueue.structure import SchemaNode
from reconciler.sandbox.programs import PROGRAMS
from tests import fast_yaml

GROUP = "config.kueue.x-k8s.io"
# The first thing that goes wrong with a Configuration that is right.
NO_CLUSTER = "unable to get kubeconfig"
SAMPLES = {"string": "1s", "integer": 1, "number": 0.5, "boolean": True, "quantity": "1", "map": {}}


def base(api_version: str = "v1beta2") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{api_version}", "kind": "Configuration"}


def verdict_of_kueue(release: str, content: Any, folder: Path) -> str:
    """Why this release does not start with a Configuration; nothing where it does."""
    path = folder / f"{abs(hash(json.dumps(content)))}.yaml"
    path.write_text(fast_yaml.safe_dump(content))
    command = [str(PROGRAMS[f"kueue-{release}"].binary), f"--config={path}", "--kubeconfig=/nowhere"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    lines = [line for line in (answer.stdout + answer.stderr).splitlines() if '"error"' in line]
    said = json.loads(lines[-1])
    return "" if said["msg"] == NO_CLUSTER else said["error"]


def sample(node: SchemaNode) -> Any:
    """A value for everything that a node knows."""
    if node.choices:
        return node.choices[0]
    if node.type == "object":
        return {name: sample(child) for name, child in node.fields.items() if child.type != "any"}
    if node.type == "list":
        return [sample(node.items)] if node.items else []
    if node.type == "map" and node.items:
        return {"name": sample(node.items)}
    return SAMPLES[node.type]
