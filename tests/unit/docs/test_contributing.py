"""What CONTRIBUTING.md names exists: files, functions of the walk, and targets of make."""

import re

import pytest

from tests.support import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:reconciler|tests|schemas|deploy|docs|benchmarks)/[^`: ]*)`", TEXT)))
STEPS = re.findall(r"^\|.*\| `([^`]+\.py)` \| `(\w+)` \|$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("path", PATHS)
def test_path_exists(path: str) -> None:
    assert list(ROOT.glob(path.rstrip("/"))), f"CONTRIBUTING.md names {path}, which does not exist"


def test_walk_has_the_stages_of_the_pipeline() -> None:
    stages = {path.rpartition("/")[2].removesuffix(".py") for path, _ in STEPS if "/pipeline/" in path}
    assert stages == {"load", "line", "observe", "render", "compare", "plan"}


@pytest.mark.parametrize(("path", "function"), STEPS)
def test_function_of_the_walk_is_in_its_file(path: str, function: str) -> None:
    assert re.search(rf"^def {function}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z]+)", TEXT))))
def test_target_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
