"""A kubeconfig as somebody wrote it.

Every part is checked when it is used, because a broken login of one cluster must not keep kfleet from the others. No
message quotes a value: what is wrong may be a token.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import ClusterError
from reconciler.objects import ClusterName


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig, the cluster it is read for, where it stands, and the folder that its relative paths start from."""

    cluster: ClusterName
    origin: str
    content: Mapping[str, Any]
    folder: Path = Path()

    def names(self, section: str) -> list[str]:
        return [str(entry["name"]) for entry in self.entries(section) if entry.get("name")]

    def entry(self, section: str, noun: str, name: str) -> Mapping[str, Any]:
        named = {str(entry.get("name")): entry.get(noun) or {} for entry in self.entries(section)}
        if name not in named:
            raise self.wrong(f"there is no {noun} {name!r}; there are: {', '.join(sorted(named)) or 'none'}")
        if not isinstance(named[name], dict):
            raise self.wrong(f"the {noun} {name!r} is no mapping")
        return named[name]

    def text(self, entry: Mapping[str, Any], name: str) -> str:
        """A certificate or key that stands in the kubeconfig, or in a file that it names."""
        if data := entry.get(f"{name}-data"):
            return decoded(self.cluster, f"{self.origin}: {name}-data", data)
        if path := entry.get(name):
            return read_text(self.cluster, self.folder / str(path))
        return ""

    def wrong(self, problem: str) -> ClusterError:
        return ClusterError(self.cluster, f"{self.origin}: {problem}")

    def entries(self, section: str) -> list[Mapping[str, Any]]:
        found = self.content.get(section) or []
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self.wrong(f"{section} is no list of mappings")
        return found


def parse_kubeconfig(cluster: ClusterName, origin: str, text: str, folder: Path = Path()) -> Kubeconfig:
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        # The text of the error may quote a line of the file, and with it a token.
        raise ClusterError(cluster, f"{origin}: is no YAML") from None
    if not isinstance(content, dict):
        raise ClusterError(cluster, f"{origin}: is no kubeconfig: {'empty' if content is None else 'no mapping'}")
    return Kubeconfig(cluster, origin, content, folder)


def decoded(cluster: ClusterName, origin: str, data: object) -> str:
    try:
        return b64decode(str(data)).decode()
    except (binascii.Error, ValueError):
        raise ClusterError(cluster, f"{origin}: is no text in base64") from None


def read_text(cluster: ClusterName, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(cluster, f"cannot read {path}: {getattr(error, 'strerror', 'no text')}") from error
