"""Programs from release binaries, by HTTP servers on this machine in the place of the release sites."""

import hashlib
import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.sandbox import build, releases
from reconciler.sandbox.build import BuildProgress, build_programs, origin
from reconciler.sandbox.programs import Program
from reconciler.sandbox.releases import read_releases, this_platform

pytestmark = pytest.mark.usefixtures("loopback", "cache")

HELLO = b"#!/bin/sh\necho fetched $1\n"
PLACE = "/".join(this_platform())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tar(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Site:
    """Files by path; a path in `slow` sends its first byte and then nothing until the test is over."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def put(self, path: str, content: bytes) -> str:
        self.files[path] = content
        return sha256(content)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            content = site.files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if self.path in site.slow:
                self.wfile.write((content or b"")[:1])
                self.wfile.flush()
                site.is_over.wait(60)
            elif content is not None:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the library's signature)
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.is_over.set()
    server.shutdown()
    server.server_close()
    thread.join()


Take = Callable[..., list[str]]


@pytest.fixture
def take(program: Program, tmp_path: Path) -> Take:
    """Build the program `hello` by a list of releases; what was reported."""

    def run(**entry: object) -> list[str]:
        path = tmp_path / "releases.yaml"
        path.write_text(json.dumps({"hello": {"hello": entry}}))
        seen: list[BuildProgress] = []
        build_programs([program], seen.append, releases=read_releases(str(path)))
        return [progress.step for progress in seen]

    return run


def said(program: Program) -> str:
    answer = subprocess.run([program.binary, "it"], capture_output=True, text=True, check=True)
    return (answer.stdout + answer.stderr).strip()


def test_release_binary_is_taken_and_nothing_is_compiled(site: Site, take: Take, program: Program) -> None:
    steps = take(url=f"{site.url}/{{os}}/{{arch}}/hello", sha256={PLACE: site.put(f"/{PLACE}/hello", HELLO)})
    assert said(program) == "fetched it"
    assert "fetching modules" not in steps
    assert origin(program) == f"release binary of {site.url}/{PLACE}/hello"


def test_member_of_an_archive_is_taken(site: Site, take: Take, program: Program) -> None:
    digest = site.put("/hello.tar.gz", tar("hello-v1/bin/hello", HELLO))
    take(url=f"{site.url}/hello.tar.gz", member="hello-v1/bin/hello", sha256={PLACE: digest})
    assert said(program) == "fetched it"


def test_file_of_an_image_is_taken_by_the_api_of_registries(site: Site, take: Take, program: Program) -> None:
    """The index names a manifest per platform, and the binary is in the second of three layers."""
    layers = [tar("etc/passwd", b"root"), tar("./manager", HELLO), tar("other", b"x")]
    listed = [{"digest": f"sha256:{site.put(f'/v2/hello/blobs/sha256:{sha256(one)}', one)}"} for one in layers]
    manifest = json.dumps({"layers": listed}).encode()
    site.put(f"/v2/hello/manifests/sha256:{sha256(manifest)}", manifest)
    system, machine = this_platform()
    entries = [
        {"digest": "sha256:0", "platform": {"os": "plan9", "architecture": machine}},
        {"digest": f"sha256:{sha256(manifest)}", "platform": {"os": system, "architecture": machine, "variant": "v8"}},
    ]
    index = json.dumps({"manifests": entries}).encode()
    site.put(f"/v2/hello/manifests/sha256:{sha256(index)}", index)
    take(image=f"{site.url}/v2/hello", member="manager", sha256={PLACE: f"sha256:{sha256(index)}"})
    assert said(program) == "fetched it"
    assert not any(sha256(layers[0]) in path for path in site.asked)


def test_binary_with_another_checksum_is_not_used(site: Site, take: Take, program: Program) -> None:
    site.put("/hello", HELLO + b"rm -rf /\n")
    steps = take(url=f"{site.url}/hello", sha256={PLACE: sha256(HELLO)})
    assert said(program) == "hello"
    (reason,) = [step for step in steps if step.startswith("compiling it")]
    assert f"has the sha256 {sha256(site.files['/hello'])}, and not {sha256(HELLO)}" in reason
    assert reason.partition("because ")[2] in origin(program)
    assert not (program.home / "release").exists()


def test_site_that_is_silent_is_left_for_the_compiler(
    site: Site, take: Take, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "SILENCE", 0.3)
    digest = site.put("/hello", HELLO)
    site.slow.add("/hello")
    steps = take(url=f"{site.url}/hello", sha256={PLACE: digest})
    assert any("compiling it, because" in step and "sent nothing for" in step for step in steps)
    assert said(program) == "hello"


def test_site_that_is_slower_than_the_compiler_is_left(
    site: Site, take: Take, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MIN_DOWNLOAD", timedelta(0))
    digest = site.put("/hello", HELLO)
    steps = take(url=f"{site.url}/hello", sha256={PLACE: digest})
    assert any("is slower than compiling would be" in step for step in steps)
    assert said(program) == "hello"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"url": "http://127.0.0.1:9/hello", "sha256": {PLACE: "0" * 64}}, "Connection refused"),
        ({"url": "SITE/none", "sha256": {PLACE: "0" * 64}}, "answered 404"),
        ({"url": "SITE/hello", "sha256": {"plan9/mips": "0" * 64}}, f"has no sha256 of hello for {PLACE}"),
        ({"url": "SITE/hello", "sha256": {PLACE: sha256(HELLO)}, "member": "x"}, "not a gzip file|file could not be"),
        ({"image": "SITE/v2/hello", "sha256": {PLACE: "0" * 64}, "member": "x"}, "answered 404"),
    ],
    ids=["no site", "no file", "no checksum", "no archive", "no image"],
)
def test_release_that_cannot_be_had_is_compiled_and_the_reason_is_said(
    site: Site, take: Take, program: Program, entry: Mapping[str, object], reason: str
) -> None:
    site.put("/hello", HELLO)
    named = {key: value.replace("SITE", site.url) if isinstance(value, str) else value for key, value in entry.items()}
    steps = take(**named)
    (found,) = [step for step in steps if step.startswith("compiling it")]
    assert any(part in found for part in reason.split("|")), found
    assert said(program) == "hello"
