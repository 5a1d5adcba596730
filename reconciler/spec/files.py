"""The files of one revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

MAX_FILE_BYTES = 10 * 2**20
MAX_TOTAL_BYTES = 64 * 2**20
MAX_FILES = 10_000
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class FleetFiles:
    """The YAML files of a fleet and of its overlays, by path. `revision` is empty for files outside of a commit."""

    origin: str
    revision: str
    files: Mapping[str, bytes] = field(repr=False)
    fleet_path: str = "fleet"
    overlays_path: str = "overlays"

    def fleet(self) -> Mapping[str, bytes]:
        """The files of the fleet itself, without overlays that lie inside of its folder."""
        return {
            path: content
            for path, content in self.files.items()
            if is_inside(path, self.fleet_path) and not is_inside(path, self.overlays_path)
        }

    def overlay_names(self) -> tuple[str, ...]:
        below = (_below(path, self.overlays_path) for path in self.files if is_inside(path, self.overlays_path))
        return tuple(sorted({rest.partition("/")[0] for rest in below if "/" in rest}))

    def overlay(self, name: str) -> Mapping[str, bytes]:
        folder = f"{self.overlays_path}/{name}"
        return {path: content for path, content in self.files.items() if is_inside(path, folder)}


def overlays_beside(fleet_path: str) -> str:
    """Overlays lie beside the fleet's folder: `fleet` and `overlays`."""
    path = PurePosixPath(fleet_path)
    return "overlays" if path.name in ("", ".") else str(path.parent / "overlays")


def is_inside(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def _below(path: str, folder: str) -> str:
    return path if folder == "." else path.removeprefix(f"{folder}/")
