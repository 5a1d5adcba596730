import re

import pytest

from reconciler.web.server import KINDS, SAFETY, STATIC, VIEWS, is_local_name, is_loopback, page_answer

INDEX = (STATIC / "index.html").read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_an_address(view: str) -> None:
    answer = page_answer(f"/{view}?q=a&state=waiting")
    assert answer is not None
    assert (answer.status, answer.kind) == (200, "text/html; charset=utf-8")
    assert b'src="static/app.js"' in answer.body


def test_root_leads_to_the_fleet() -> None:
    answer = page_answer("/")
    assert answer is not None
    assert (answer.status, answer.headers["Location"]) == (302, "fleet")


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/", "/static/x.js"]
)
def test_file_outside_of_the_folder_does_not_exist(path: str) -> None:
    answer = page_answer(path)
    assert answer is not None and answer.status == 404


@pytest.mark.parametrize("path", ["/api/view", "/metrics", "/static", "/fleets", "/fleet/x"])
def test_other_addresses_are_not_part_of_the_page(path: str) -> None:
    assert page_answer(path) is None


def test_unchanged_file_is_not_sent_again() -> None:
    first = page_answer("/static/app.js")
    assert first is not None
    again = page_answer("/static/app.js", first.headers["ETag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1:80", True),
        ("127.0.0.2:80", True),
        ("localhost:80", True),
        ("[::1]:80", True),
        ("0.0.0.0:80", False),
        ("127.example.org:80", False),
        (":80", False),
        ("10.0.0.1:80", False),
        ("[::]:80", False),
    ],
)
def test_loopback_is_only_what_this_machine_reaches(address: str, is_local: bool) -> None:  # noqa: FBT001
    assert is_loopback(address) is is_local


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost:8466", True),
        ("127.0.0.1", True),
        ("[::1]:1", True),
        ("LOCALHOST:1", True),
        ("localhost.attacker.example", False),
        ("attacker.example:8466", False),
        ("127.0.0.1.attacker.example", False),
        ("", False),
    ],
)
def test_host_header_must_name_this_machine(host: str, is_local: bool) -> None:  # noqa: FBT001
    assert is_local_name(host) is is_local


def test_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = SAFETY["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy


def test_index_has_no_inline_script_or_style() -> None:
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", INDEX) == []


def test_index_loads_every_module_at_once() -> None:
    preloaded = set(re.findall(r'modulepreload" href="static/([a-z]+\.js)"', INDEX))
    assert preloaded | {"app.js"} == {path.name for path in STATIC.glob("*.js")}


def test_static_files_name_no_other_host() -> None:
    for path in STATIC.iterdir():
        found = re.findall(r"https?://[^\s\"')]+", path.read_text())
        assert set(found) <= {"http://www.w3.org/2000/svg"}, path.name
        assert path.suffix in KINDS
