"""The version of a build: that of its git tag. The wheel, the image and the chart are all named by it.

hatchling calls this file (pyproject.toml); `python deploy/version.py [--semver]` prints it. A build without git, such
as that of the image, gets it by KFLEET_VERSION. GitHub fills in ARCHIVE when it packs a commit, as it does for actions.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

NEXT = "0.1.0"  # the release to come, until there is a tag
ARCHIVE = "$Format:%(describe:tags,match=v[0-9]*)$"
DESCRIBE = ("git", "describe", "--tags", "--match", "v[0-9]*", "--long", "--abbrev=12")
COUNT = ("git", "rev-list", "--count", "HEAD")
COMMIT = ("git", "rev-parse", "--short=12", "HEAD")

_RELEASE = r"v?(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?"
_TAGGED = re.compile(_RELEASE + r"(?:-(\d+)-g([0-9a-f]+))?")
_GIVEN = re.compile(r"v?(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?(?:\.dev\d+)?(?:\+[a-z0-9.]+)?)")


def version(root: Path) -> str:
    """Return a version by PEP 440; commits after a tag count as development of the next patch release."""
    if given := os.environ.get("KFLEET_VERSION"):
        if not (found := _GIVEN.fullmatch(given)):
            raise ValueError(f"KFLEET_VERSION: {given!r} is not a version such as 0.1.0, v0.1.0rc1 or 0.1.1.dev3")
        return found[1]
    if not (root / ".git").exists():
        return from_tag(ARCHIVE) or f"{NEXT}.dev0"
    return from_tag(_git(root, DESCRIBE)) or f"{NEXT}.dev{_git(root, COUNT) or 0}{_local(_git(root, COMMIT))}"


def from_tag(described: str) -> str:
    """Return the version for the answer of `git describe`, or nothing when no tag is in it."""
    found = _TAGGED.fullmatch(described)
    if not found:
        return ""
    major, minor, patch, candidate, distance, commit = found.groups(default="")
    release = f"{major}.{minor}.{patch}{candidate}"
    if int(distance or 0) == 0:
        return release
    return f"{_following(release)}.dev{distance}{_local(commit)}"


def _following(release: str) -> str:
    """The next patch release; after a candidate the next candidate."""
    last = re.split(r"\D", release)[-1]
    return f"{release.removesuffix(last)}{int(last) + 1}"


def _local(commit: str) -> str:
    return f"+g{commit}" if commit else ""


def _git(root: Path, command: tuple[str, ...]) -> str:
    try:
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def semver(text: str) -> str:
    """Return the same version as charts and images write it: 0.1.0-rc1, 0.1.1-dev3."""
    return re.sub(r"^(\d+\.\d+\.\d+)\.?([a-z])", r"\1-\2", text)


__version__ = version(Path(__file__).parent.parent)

if __name__ == "__main__":
    print(semver(__version__) if "--semver" in sys.argv else __version__)  # noqa: T201  (for workflows)
