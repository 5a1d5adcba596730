"""Committed files that are generated from the code are what the code generates."""

import shutil
from pathlib import Path

import pytest

from tests.generated import GENERATED, write_generated
from tests.support import ROOT


@pytest.mark.parametrize("path", GENERATED)
def test_generated_file_is_what_the_code_generates(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == GENERATED[path](), "run: make docs"


def test_make_docs_writes_the_files_that_differ(tmp_path: Path) -> None:
    for path in GENERATED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "docs" / "lint.md").write_text("old")
    assert write_generated(tmp_path) == ["docs/lint.md"]
    assert (tmp_path / "docs" / "lint.md").read_text(encoding="utf-8") == GENERATED["docs/lint.md"]()
    assert write_generated(tmp_path) == []
