"""Prints SkyPilot's own schema of its config: `python -I -S config_schema.py WHEEL`.

The wheel alone is needed. The hundred packages that SkyPilot runs with, and its other modules, take no part in the
schema, so an empty module stands for each of them.
"""

import importlib.abc
import importlib.machinery
import json
import sys
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

REAL = {"sky.utils.schemas", "sky.utils.kubernetes_enums", "sky.skylet.constants"}
PACKAGES = {"sky", "sky.utils", "sky.skylet"}


class Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds an empty module for each import but those of the standard library and of the schema."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname in REAL or fullname.partition(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name not in PACKAGES:
            return MagicMock(name=spec.name, __path__=[])
        package = ModuleType(spec.name)
        package.__dict__["__version__"] = "0"
        package.__path__ = [f"{sys.argv[1]}/{spec.name.replace('.', '/')}"]
        return package

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


if __name__ == "__main__":
    sys.meta_path.insert(0, Empty())
    from sky.utils import schemas  # type: ignore[import-not-found]

    json.dump(schemas.get_config_schema(), sys.stdout, default=lambda _: {})
