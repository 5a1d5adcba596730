"""The revision that a controller follows, while its repository comes and goes."""

import logging
import re
import time
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.controller.revisions import DEFECT, Revisions, text_of
from reconciler.errors import KfleetError
from reconciler.pipeline.load import Source
from tests.repositories import example_repository
from tests.support import eventually


def test_repository_that_is_gone_for_a_while_is_reported_when_it_goes_and_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.controller.revisions")
    repository = example_repository(tmp_path / "repository")
    followed = Revisions(Source(repository.as_uri()), timedelta(hours=1), lambda _: None)
    first = followed.start().revision
    repository.rename(tmp_path / "elsewhere")
    followed.look_now()
    eventually(lambda: followed.now.problem)
    assert followed.now.revision is first
    (tmp_path / "elsewhere").rename(repository)
    followed.look_now()
    eventually(lambda: not followed.now.problem)
    followed.close()
    assert followed.now.revision is first
    eventually(lambda: caplog.messages == ["revision", "revision", "the repository can be read again"])


def test_repository_that_is_not_fetched_for_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = example_repository(tmp_path / "repository")
    followed = Revisions(Source(repository.as_uri()), timedelta(hours=1), lambda _: None)
    assert (followed.unready, followed.state.is_known) == ("no revision has been read yet", False)
    followed.start()
    assert (followed.unready, followed.state.is_known) == ("", True)
    repository.rename(tmp_path / "elsewhere")
    followed.look_now()
    eventually(lambda: followed.state.problem)
    assert not followed.unready
    hours = 3600 * 3 + 1
    before = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: before() + hours)
    age, unready = followed.state.age, followed.unready
    monkeypatch.undo()
    followed.close()
    assert age >= timedelta(seconds=hours)
    assert re.match(r"the repository was not fetched for 108\d\d s: .*cannot be fetched", unready)


def test_restarted_controller_goes_on_where_a_killed_fetch_left_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = example_repository(tmp_path / "repository")
    for _ in range(2):
        followed = Revisions(Source(repository.as_uri()), timedelta(hours=1), lambda _: None)
        assert followed.start().revision is not None
        followed.close()
        (clone,) = (path for path in (tmp_path / "cache" / "kfleet" / "git").iterdir() if path.is_dir())
        (clone / "refs" / "kfleet").mkdir(exist_ok=True)
        for lock in ("refs/heads/main.lock", "refs/kfleet/head.lock", "config.lock"):
            (clone / lock).touch()


def test_group_of_errors_is_reported_in_their_words_and_a_defect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    errors = [KfleetError(f"problem {number}") for number in range(6)]
    assert text_of(ExceptionGroup("fleet spec", errors)) == "; ".join(f"problem {number}" for number in range(5))
    assert caplog.messages == []
    mixed = ExceptionGroup("fleet spec", [errors[0], ExceptionGroup("more", [KeyError("secret")])])
    assert text_of(mixed) == f"problem 0; {DEFECT}"
    assert caplog.messages == ["defect"]
