"""Definitions of kinds as their projects publish them, from the Go modules of these projects."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from reconciler.sandbox.build import find_go
from tests import fast_yaml


def definition_in(module: str, file: str) -> dict[str, Any]:
    """A CustomResourceDefinition of a module, such as `example.org/module@v1.0.0`, which Go checks and caches."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_go()), "mod", "download", "-json", module]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    files = Path(json.loads(done.stdout)["Dir"])
    found: dict[str, Any] = fast_yaml.safe_load((files / file).read_text())
    return found
