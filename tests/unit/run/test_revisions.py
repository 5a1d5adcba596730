"""The revision that a controller follows, while its repository comes and goes."""

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.errors import KfleetError
from reconciler.pipeline.offline import Source
from reconciler.run.revisions import DEFECT, Revisions, text_of
from tests.repositories import example_repository
from tests.support import eventually


def test_repository_that_is_gone_for_a_while_is_told_when_it_goes_and_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.run.revisions")
    repository = example_repository(tmp_path / "repository")
    followed = Revisions(Source(repository.as_uri()), timedelta(hours=1), lambda _: None)
    first = followed.start().computed
    repository.rename(tmp_path / "elsewhere")
    followed.look_now()
    eventually(lambda: followed.now.problem)
    assert followed.now.computed is first
    (tmp_path / "elsewhere").rename(repository)
    followed.look_now()
    eventually(lambda: not followed.now.problem)
    followed.close()
    assert followed.now.computed is first
    eventually(lambda: caplog.messages == ["revision", "revision", "the repository can be read again"])


def test_group_of_errors_is_told_in_their_words_and_a_defect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    errors = [KfleetError(f"problem {number}") for number in range(6)]
    assert text_of(ExceptionGroup("fleet spec", errors)) == "; ".join(f"problem {number}" for number in range(5))
    assert caplog.messages == []
    mixed = ExceptionGroup("fleet spec", [errors[0], ExceptionGroup("more", [KeyError("secret")])])
    assert text_of(mixed) == f"problem 0; {DEFECT}"
    assert caplog.messages == ["defect"]
