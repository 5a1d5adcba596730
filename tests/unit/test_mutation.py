"""The mutation run: the packages that it changes exist, and so does every change that is known to do the same."""

import re
from collections import Counter

import pytest
import yaml

from tests.mutants import find_mutants
from tests.mutation import KNOWN, ROOT, _files, _known_equivalents

MAKEFILE = (ROOT / "Makefile").read_text()


def test_files_of_a_path_that_does_not_exist_are_an_error() -> None:
    assert "reconciler/plan/make.py" in _files(["reconciler/plan"])
    with pytest.raises(FileNotFoundError, match="reconciler/nothing"):
        _files(["reconciler/plan", "reconciler/nothing"])


def test_make_mutants_changes_packages_that_exist() -> None:
    paths = re.findall(r" (reconciler/\w+)", MAKEFILE)
    assert len(paths) >= 4
    assert all((ROOT / path).is_dir() for path in paths)


def test_known_equivalents_name_each_file_once() -> None:
    document = yaml.compose(KNOWN.read_text(), yaml.SafeLoader)
    assert document is not None
    counts = Counter(str(key.value) for key, _ in document.value)
    assert counts and [file for file, count in counts.items() if count > 1] == []


def test_known_equivalents_are_changes_that_can_be_made() -> None:
    """Otherwise the line has changed, and whether the change still does the same is unknown."""
    known = _known_equivalents()
    files = sorted({path for path, _, _ in known})
    possible = {(path, one.text, one.change) for path in files for one in find_mutants(path, (ROOT / path).read_text())}
    assert known - possible == set()
