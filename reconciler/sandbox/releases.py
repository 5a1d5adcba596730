"""Official release binaries: which there are, by a list of addresses and checksums, and how one is fetched.

Decision: a binary is run only if its checksum was written down before it was fetched, so a release site that was broken
into is noticed. Instead of trusting a checksum that comes from the same site, programs without one are compiled.
"""

import hashlib
import os
import platform
import shutil
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import yaml

from reconciler.errors import SandboxError

DEFAULTS = Path(__file__).parent / "releases.yaml"
VARIABLE = "KFLEET_RELEASES"
SILENCE = 10.0  # seconds without a byte
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_FIELDS = {"url", "image", "member", "sha256"}
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_CHUNK = 1 << 20


class NotFetchedError(Exception):
    """No release binary could be had, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBinary:
    """Where a binary is: a file, a member of an archive, or a file in an image. No checksum: it is not fetched."""

    name: str
    url: str
    is_image: bool
    member: str
    sha256: str


Releases = Mapping[str, tuple[ReleaseBinary, ...]]


def this_platform() -> tuple[str, str]:
    machine = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def read_releases(path: str = "") -> Releases:
    """Read the list that comes with kfleet; a program in the file of the user takes the place of the one in it."""
    chosen = path or os.environ.get(VARIABLE, "")
    listed = {**_read(DEFAULTS), **(_read(Path(chosen)) if chosen else {})}
    return {program: tuple(_binaries(chosen or str(DEFAULTS), program, entry)) for program, entry in listed.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SandboxError(str(path), f"cannot read the list of releases: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SandboxError(str(path), f"is not a list of releases: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise SandboxError(str(path), "is not a list of releases", "start from: kfleet sandbox releases")
    return content


def _binaries(path: str, program: str, entry: Any) -> Iterator[ReleaseBinary]:
    if not isinstance(entry, dict):
        raise _unknown(path, program)
    for name, fields in entry.items():
        is_known = isinstance(fields, dict) and set(fields) <= _FIELDS and ("url" in fields) != ("image" in fields)
        if not is_known or not isinstance(fields.get("sha256", {}), dict):
            raise _unknown(path, f"{program}.{name}")
        yield _binary(path, program, str(name), fields)


def _unknown(path: str, where: str) -> SandboxError:
    problem = f"{where}: takes url or image, member, and sha256 by platform such as linux/amd64"
    return SandboxError(path, problem, "start from: kfleet sandbox releases")


def _binary(path: str, program: str, name: str, fields: Mapping[str, Any]) -> ReleaseBinary:
    system, machine = this_platform()
    place = {key: str(fields.get(key, "")).format(os=system, arch=machine) for key in ("url", "image", "member")}
    address = place["url"] or place["image"].rstrip("/")
    if not address.startswith(("https://", "http://")):
        raise SandboxError(path, f"{program}.{name}: the address is not one of https or http")
    return ReleaseBinary(
        name=name,
        url=address,
        is_image="image" in fields,
        member=place["member"],
        sha256=str(fields.get("sha256", {}).get(f"{system}/{machine}", "")).removeprefix("sha256:").lower(),
    )


def fetch(binaries: tuple[ReleaseBinary, ...], folder: Path, limit: timedelta) -> None:
    """Write all binaries of a program into the folder, verified, within the limit of time."""
    if not binaries:
        raise NotFetchedError("the list of releases does not name it")
    if missing := [binary.name for binary in binaries if not binary.sha256]:
        listed = ", ".join(missing)
        raise NotFetchedError(f"the list of releases has no sha256 of {listed} for {'/'.join(this_platform())}")
    folder.mkdir()
    deadline = time.monotonic() + limit.total_seconds()
    for binary in binaries:
        target = folder / binary.name
        try:
            _fetch_one(binary, target, deadline)
        except (urllib.error.URLError, OSError, tarfile.TarError, ValueError) as error:
            raise NotFetchedError(f"{binary.url}: {_why(error)}") from error
        target.chmod(0o755)


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"answered {error.code} {error.reason}"
    if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
        return f"sent nothing for {SILENCE:.0f} s"
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def _fetch_one(binary: ReleaseBinary, target: Path, deadline: float) -> None:
    archive = target.with_name(f".{binary.name}.partial")
    if binary.is_image:
        _from_image(binary, archive, target, deadline)
    else:
        _download(binary.url, archive, binary.sha256, deadline)
        if not binary.member:
            archive.rename(target)
        elif not _unpack(archive, binary.member, target):
            raise NotFetchedError(f"{binary.url}: holds no file {binary.member}")
    archive.unlink(missing_ok=True)


def _download(url: str, target: Path, sha256: str, deadline: float, accept: str = "*/*") -> None:
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310  (http or https, checked above)
    digest = hashlib.sha256()
    with urllib.request.urlopen(request, timeout=SILENCE) as answer, target.open("wb") as file:  # noqa: S310
        while chunk := answer.read1(_CHUNK):
            if time.monotonic() > deadline:
                raise NotFetchedError(f"{url}: is slower than compiling would be")
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != sha256:
        target.unlink()
        raise NotFetchedError(f"{url}: has the sha256 {digest.hexdigest()}, and not {sha256} as the list says")


def _unpack(archive: Path, member: str, target: Path) -> bool:
    with tarfile.open(archive) as content:
        for entry in content:
            if entry.name.removeprefix("./").strip("/") == member.strip("/") and entry.isfile():
                source = content.extractfile(entry)
                assert source  # noqa: S101  (it is a regular file)
                with source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
                return True
    return False


def _from_image(binary: ReleaseBinary, partial: Path, target: Path, deadline: float) -> None:
    """Take a file out of an image by the registry's HTTP API; layers are searched from the last one."""
    manifest = _manifest(binary.url, binary.sha256, partial, deadline)
    if "manifests" in manifest:
        system, machine = this_platform()
        fits = [one for one in manifest["manifests"] if one.get("platform", {}).items() >= _of(system, machine)]
        if not fits:
            raise NotFetchedError(f"{binary.url}: is not for {system}/{machine}")
        manifest = _manifest(binary.url, _hex(fits[0]["digest"]), partial, deadline)
    for layer in reversed(manifest.get("layers", ())):
        digest = _hex(layer["digest"])
        _download(f"{binary.url}/blobs/sha256:{digest}", partial, digest, deadline)
        if _unpack(partial, binary.member, target):
            return
    raise NotFetchedError(f"{binary.url}: holds no file {binary.member}")


def _of(system: str, machine: str) -> Any:
    return {"os": system, "architecture": machine}.items()


def _manifest(url: str, digest: str, partial: Path, deadline: float) -> dict[str, Any]:
    _download(f"{url}/manifests/sha256:{digest}", partial, digest, deadline, ", ".join((*_INDEXES, *_MANIFESTS)))
    content = orjson.loads(partial.read_bytes())
    if not isinstance(content, dict):
        raise NotFetchedError(f"{url}: has no manifest of an image")
    return content


def _hex(digest: Any) -> str:
    return str(digest).removeprefix("sha256:")
