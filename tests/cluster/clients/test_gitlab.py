"""The GitLab job of docs/pull-requests.md on a real repository; only GitLab is played, by a server that keeps notes."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import fast_yaml
from tests.forges import GPUS, Machine, machine, program, snippets
from tests.repositories import commit, edit, git

pytestmark = pytest.mark.usefixtures("loopback")


NOTES = "/api/v4/projects/5/merge_requests/7/notes"
OWN, FOREIGN = 11, 12
MARKER = "<!-- kfleet diff -->"


@dataclass
class Notes:
    """What GitLab keeps of a merge request, oldest first."""

    held: list[dict[str, Any]] = field(default_factory=list)

    def add(self, author: int, body: str) -> dict[str, Any]:
        self.held.append({"id": len(self.held) + 1, "author": {"id": author}, "body": body})
        return self.held[-1]

    def of(self, author: int) -> list[str]:
        return [note["body"] for note in self.held if note["author"]["id"] == author]

    def page(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        """Newest first, unless asked otherwise, and never more than a hundred."""
        is_ascending = query.get("sort") == ["asc"]
        size, number = (int(query.get(name, [str(default)])[0]) for name, default in (("per_page", 20), ("page", 1)))
        shown = self.held if is_ascending else self.held[::-1]
        return shown[min(size, 100) * (number - 1) :][: min(size, 100)]

    def change(self, number: int, body: str) -> dict[str, Any] | None:
        """Nobody may change what another one wrote."""
        note = self.held[number - 1]
        if note["author"]["id"] != OWN:
            return None
        note["body"] = body
        return note


@contextmanager
def served(notes: Notes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            self._answer({"id": OWN} if asked.path == "/api/v4/user" else notes.page(parse_qs(asked.query)))

        def do_POST(self) -> None:
            assert self.path == NOTES
            self._answer(notes.add(OWN, self._body()), 201)

        def do_PUT(self) -> None:
            assert self.path.startswith(f"{NOTES}/")
            changed = notes.change(int(self.path.rpartition("/")[2]), self._body())
            self._answer(changed, 200 if changed else 403)

        def _body(self) -> str:
            return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

        def _answer(self, content: object, status: int = 200) -> None:
            self.send_response(status if self.headers["PRIVATE-TOKEN"] == "secret" else 401)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            """Not on the screen of whoever tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v4"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass(frozen=True)
class Job:
    """The job of the document on a machine of GitLab."""

    machine: Machine
    notes: Notes
    settings: dict[str, str]

    @property
    def written(self) -> dict[str, Any]:
        (text,) = [text for text in snippets("yaml") if "CI_MERGE_REQUEST_IID" in text]
        (job,) = fast_yaml.safe_load(text).values()
        return dict(job)

    def run(self, **settings: str) -> subprocess.CompletedProcess[str]:
        script = "\n".join((*self.written["before_script"], *self.written["script"]))
        return self.machine.shell(script, self.settings | settings)

    def artifact(self) -> str:
        (path,) = self.written["artifacts"]["paths"]
        return (self.machine.repo / str(path)).read_text()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    lent, notes = machine(tmp_path), Notes()
    program(lent.folder / "bin" / "pip", "#!/bin/sh\nexit 0\n")
    with served(notes) as url:
        settings = {
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(lent.repo, "rev-parse", "HEAD"),
            "CI_API_V4_URL": url,
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "7",
            "KFLEET": "kfleet",
            "KFLEET_TOKEN": "secret",
            "no_proxy": "127.0.0.1",
        }
        edit(lent.repo / "fleet" / "queues.yaml", GPUS, 'nvidia.com/gpu: "24"')
        commit(lent.repo)
        yield Job(lent, notes, settings)


def test_gitlab_job_writes_a_note_and_then_changes_it(job: Job) -> None:
    done = job.run()
    assert done.returncode == 0, done.stderr
    (posted,) = job.notes.of(OWN)
    assert "| nominal | 20 | 24 | +4 |" in posted and posted == job.artifact()
    git(job.machine.repo, "revert", "--no-edit", "HEAD")
    assert job.run().returncode == 0
    (changed,) = job.notes.of(OWN)
    assert ": no changes (4 clusters)" in changed


def test_gitlab_job_shows_nothing_that_others_merged_meanwhile(job: Job) -> None:
    """In a pipeline of merged results the checkout is the merge request merged into its target as that is now."""
    repo = job.machine.repo
    git(repo, "checkout", "--quiet", "main")
    edit(repo / "fleet" / "tenants.yaml", "namespaces: [genomics, genomics-ci]", "namespaces: [genomics]")
    commit(repo)
    git(repo, "merge", "--quiet", "--no-edit", "feature")
    done = job.run(CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=git(repo, "rev-parse", "feature"))
    assert done.returncode == 0, done.stderr
    assert "| nominal | 20 | 24 | +4 |" in job.artifact() and "genomics-ci" not in job.artifact()


def test_gitlab_job_leaves_notes_of_others_alone(job: Job) -> None:
    """Also where more was said, before and after its own note, than fits into one answer."""
    job.notes.add(OWN, f"says {MARKER}")
    job.notes.add(OWN, "")
    for _ in range(2):
        for _ in range(120):
            job.notes.add(FOREIGN, f"{MARKER}\nmine")
        done = job.run()
        assert done.returncode == 0, done.stderr
    assert set(job.notes.of(FOREIGN)) == {f"{MARKER}\nmine"}
    assert job.notes.of(OWN) == [f"says {MARKER}", "", job.artifact()]


def test_gitlab_job_fails_on_a_broken_fleet_after_it_has_said_why(job: Job) -> None:
    edit(job.machine.repo / "fleet" / "tenants.yaml", "queue: gpu", "queue: nowhere")
    commit(job.machine.repo)
    assert job.run().returncode == 1
    assert "fleet/tenants.yaml:9: " in job.artifact()
    assert job.notes.of(OWN) == [job.artifact()]


def test_gitlab_job_without_a_token_leaves_the_artifact(job: Job) -> None:
    done = job.run(KFLEET_TOKEN="")
    assert done.returncode == 0, done.stderr
    assert "| nominal | 20 | 24 | +4 |" in job.artifact() and job.notes.held == []


def test_gitlab_job_stops_where_there_is_nothing_to_compare(job: Job) -> None:
    done = job.run(CI_MERGE_REQUEST_DIFF_BASE_SHA="nowhere")
    assert done.returncode == 1 and "there is no revision 'nowhere'" in done.stderr
    assert job.notes.held == []
