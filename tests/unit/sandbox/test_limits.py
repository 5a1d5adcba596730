"""A part that ends at a limit of the machine: which limit, and how to raise it."""

import re
from pathlib import Path

import pytest
import yaml

from reconciler.errors import SandboxError
from reconciler.sandbox.programs import KUBERNETES_VERSION, PROGRAMS
from reconciler.sandbox.releases import DEFAULTS, read_releases
from reconciler.sandbox.waiting import explain_limit


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ('E1118 run.go:72] "command failed" err="couldn\'t initialize inotify: too many open files"', "max_user_inst"),
        ('{"error":"creating watcher: too many open files"}', "fs.inotify.max_user_instances=1024"),
        ("failed to add watch of tls.crt: no space left on device", "fs.inotify.max_user_watches"),
        ("accept tcp 127.0.0.1:20000: accept4: too many open files", "ulimit -n"),
        ("runtime: failed to create new OS thread (have 5 already; errno=11)", "ulimit -u"),
        ("fatal error: runtime: cannot allocate memory", "the memory of the machine"),
    ],
)
def test_limit_is_named_with_how_to_raise_it(line: str, want: str) -> None:
    assert want in explain_limit(f"I1118 starting\n{line}\nI1118 goodbye")


def test_other_ends_are_no_limits() -> None:
    assert (
        explain_limit("panic: listen tcp 127.0.0.1:20000: bind: address already in use\nno space left on device") == ""
    )


def test_addresses_of_releases_are_of_the_versions_that_are_compiled() -> None:
    listed = yaml.safe_load(DEFAULTS.read_text())
    versions = {
        "kubernetes": KUBERNETES_VERSION,
        "etcd": _required("etcd", "go.etcd.io/etcd/server/v3"),
        "kwok": _required("kwok", "sigs.k8s.io/kwok"),
    }
    assert set(listed) == set(versions)
    for program, version in versions.items():
        for binary in listed[program].values():
            assert f"v{version}/" in binary["url"]


def _required(program: str, module: str) -> str:
    text = (PROGRAMS[program].source / "go.mod").read_text()
    (found,) = re.findall(rf"\s{re.escape(module)} v(\S+)", text)
    return str(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- etcd", "is not a list of releases"),
        ("etcd: {etcd: {sha256: {}}}", r"etcd\.etcd: takes url or image"),
        ("etcd: {etcd: {url: 'https://a', image: 'https://b'}}", r"etcd\.etcd: takes url or image"),
        ("etcd: {etcd: {url: 'https://a', digest: x}}", r"etcd\.etcd: takes url or image"),
        ("etcd: {etcd: {url: 'file:///etc/passwd'}}", "the address is not one of https or http"),
        ("etcd: [a]", "etcd: takes url or image"),
        ("a: [", "is not a list of releases"),
    ],
)
def test_list_of_releases_that_is_wrong_is_one_message(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "releases.yaml"
    path.write_text(text)
    with pytest.raises(SandboxError, match=problem) as failure:
        read_releases(str(path))
    assert failure.value.where == str(path)


def test_list_of_releases_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="cannot read the list of releases: No such file"):
        read_releases(str(tmp_path / "none.yaml"))
