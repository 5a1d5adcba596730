"""Definitions of kinds as their projects publish them, from the Go modules of these projects."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from reconciler.sandbox.build import find_go
from tests import fast_yaml


def definition_in(module: str, file: str) -> dict[str, Any]:
    """A CustomResourceDefinition of a module, such as `example.org/module@v1.0.0`, which Go checks and caches."""
    (found,) = definitions_in(module, file)
    return found


def definitions_in(module: str, file: str, sums: Path | None = None) -> list[dict[str, Any]]:
    """All of one file. `sums` is a folder whose go.sum has the checksum of the module already."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (sums / "go.mod", sums / "go.sum") if sums else ():
            shutil.copy(path, folder)
        command = [str(find_go()), "mod", "download", "-json", module]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    files = Path(json.loads(done.stdout)["Dir"])
    return [one for one in fast_yaml.safe_load_all((files / file).read_text()) if one]
