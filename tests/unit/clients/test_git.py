"""Against real repositories, made by git itself."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.clients import working_tree as folder
from reconciler.clients.git import Repository, is_repository, mask, open_repository, plain_address
from reconciler.clients.git_cache import Clone
from reconciler.errors import GitError
from reconciler.spec import files as limits

GIT = shutil.which("git") or "git"


def run(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run([GIT, *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, **contents: str) -> str:
    for name, content in contents.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    run(folder, "add", "--all")
    run(folder, "commit", "--quiet", "--allow-empty", "-m", "change")
    return run(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    run(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, fleet__a="a: 1", fleet__sub__b="b: 1", overlays__dev__o="o: 1", other__c="c: 1")
    (folder / "fleet" / "notes.txt").write_text("no yaml")
    (folder / "fleet" / ".hidden.yaml").write_text("h: 1")
    commit(folder)
    return folder


def read(folder: Path, revision: str = "main", path: str = "fleet") -> dict[str, bytes]:
    with open_repository(str(folder)) as repository:
        return dict(repository.read(revision, path).files)


def test_read_takes_yaml_files_of_the_fleet_and_its_overlays(repo: Path) -> None:
    wanted = {"fleet/a.yaml": b"a: 1", "fleet/sub/b.yaml": b"b: 1", "overlays/dev/o.yaml": b"o: 1"}
    assert read(repo) == wanted
    with open_repository(str(repo)) as repository:
        assert repository.read_working_tree().files == wanted
        skipped = {"fleet/.hidden.yaml", "fleet/notes.txt"}
        for found in (repository.read("main"), repository.read_working_tree()):
            assert {one.path for one in found.skipped} == skipped


def test_read_takes_the_whole_repository_when_asked(repo: Path) -> None:
    assert set(read(repo, path=".")) == {"fleet/a.yaml", "fleet/sub/b.yaml", "overlays/dev/o.yaml", "other/c.yaml"}


@pytest.mark.parametrize("name", ["old", "v1", "{commit}", "{short}", "main~1", "refs/heads/old"])
def test_read_sees_one_revision_whole(repo: Path, name: str) -> None:
    before = run(repo, "rev-parse", "HEAD")
    run(repo, "branch", "old")
    run(repo, "tag", "-a", "v1", "-m", "first")
    commit(repo, fleet__a="a: 2")
    (repo / "fleet" / "a.yaml").write_text("a: 3")
    with open_repository(str(repo)) as repository:
        files = repository.read(name.format(commit=before, short=before[:10]))
        assert (files.files["fleet/a.yaml"], files.revision) == (b"a: 1", before)
        assert repository.read("HEAD").files["fleet/a.yaml"] == b"a: 2"
        assert repository.read_working_tree().files["fleet/a.yaml"] == b"a: 3"
        assert repository.read_working_tree().revision == ""


@pytest.mark.parametrize("revision", ["main", "refs/heads/main", "heads/main", "{commit}", "main~0", "HEAD"])
@pytest.mark.parametrize("is_url", [False, True], ids=["path", "url"])
def test_branch_is_not_replaced_by_a_ref_of_its_name(
    repo: Path, tmp_path: Path, revision: str, *, is_url: bool
) -> None:
    """Whoever may not push to the branch may push tags, and branches of other names."""
    wanted = run(repo, "rev-parse", "main")
    named = revision.format(commit=wanted)
    run(repo, "checkout", "--quiet", "-b", "foreign")
    run(repo, "tag", "main", commit(repo, fleet__a="a: foreign"))
    run(repo, "checkout", "--quiet", "refs/heads/main")
    run(repo, "symbolic-ref", "HEAD", "refs/heads/main")
    if "~" not in named:
        run(repo, "update-ref", f"refs/tags/{named}", "foreign")
    if named not in {"main", "main~0"}:
        run(repo, "update-ref", f"refs/heads/{named}", "foreign")
    with open_repository(repo.as_uri() if is_url else str(repo), cache=tmp_path / "cache") as repository:
        assert repository.resolve(named) == wanted


def test_head_of_a_url_is_the_one_of_the_other_side(repo: Path, tmp_path: Path) -> None:
    for name in ("main", "master", "trunk"):
        run(repo, "checkout", "--quiet", "-B", name)
        commit(repo, fleet__a=f"a: {name}")
    for name in ("trunk", "main", "master"):
        run(repo, "checkout", "--quiet", name)
        with open_repository(repo.as_uri(), cache=tmp_path / "cache") as repository:
            assert repository.read("HEAD").files["fleet/a.yaml"] == f"a: {name}".encode()
            assert repository.resolve(repository.default_branch()) == run(repo, "rev-parse", name)


def test_working_tree_is_dirty_when_a_file_below_the_path_differs(repo: Path) -> None:
    with open_repository(str(repo)) as repository:
        assert not repository.is_dirty("fleet")
        (repo / "other" / "c.yaml").write_text("c: 2")
        assert not repository.is_dirty("fleet")
        assert repository.is_dirty()
        (repo / "fleet" / "new.yaml").write_text("n: 1")
        assert repository.is_dirty("fleet")


def test_merge_base_is_where_two_revisions_parted(repo: Path) -> None:
    base = run(repo, "rev-parse", "HEAD")
    run(repo, "checkout", "--quiet", "-b", "feature")
    commit(repo, fleet__a="a: 2")
    run(repo, "checkout", "--quiet", "main")
    commit(repo, fleet__a="a: 3")
    with open_repository(str(repo)) as repository:
        assert repository.merge_base("main", "feature") == base


def test_merge_base_of_unrelated_histories_is_an_error(repo: Path) -> None:
    run(repo, "checkout", "--quiet", "--orphan", "stranger")
    commit(repo, fleet__a="a: 2")
    with open_repository(str(repo)) as repository, pytest.raises(GitError, match="have no commit in common"):
        repository.merge_base("main", "stranger")


@pytest.mark.parametrize("revision", ["nope", "--output=x", "", "HEAD^{tree}", "main:fleet"])
def test_revision_that_is_none_is_named(repo: Path, revision: str) -> None:
    with open_repository(str(repo)) as repository, pytest.raises(GitError, match="there is no revision"):
        repository.resolve(revision)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere", "there is no folder 'nowhere'"),
        ("../repo", "is outside the repository"),
        ("/etc", "is outside the repository"),
        ("fleet/a.yaml", "is not a folder"),
    ],
)
def test_path_that_is_not_a_folder_is_named(repo: Path, path: str, problem: str) -> None:
    with pytest.raises(GitError, match=problem):
        read(repo, path=path)


def test_repository_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is not a git repository"):
        open_repository(str(tmp_path))
    with pytest.raises(GitError, match="is not a git repository"):
        open_repository(str(tmp_path / "nowhere"))
    assert not is_repository(str(tmp_path))


def test_repository_without_a_working_tree_says_so(repo: Path, tmp_path: Path) -> None:
    run(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare")
    assert is_repository(str(tmp_path / "bare"))
    with open_repository(str(tmp_path / "bare")) as repository:
        assert not repository.is_dirty()
        with pytest.raises(GitError, match="has no working tree"):
            repository.read_working_tree()


@pytest.mark.parametrize("target", ["/etc/hostname", "../other/c.yaml", "a.yaml", "../fleet"])
def test_symbolic_link_is_an_error_in_a_commit_and_in_its_checkout(repo: Path, target: str) -> None:
    (repo / "fleet" / "link.yaml").symlink_to(target)
    commit(repo)
    with open_repository(str(repo)) as repository:
        with pytest.raises(GitError, match=r"fleet/link\.yaml: symbolic links are not followed"):
            repository.read("main")
        with pytest.raises(GitError, match=r"fleet/link\.yaml: symbolic links are not followed"):
            repository.read_working_tree()


def test_fleet_folder_that_is_a_symbolic_link_is_an_error(repo: Path) -> None:
    (repo / "link").symlink_to("fleet")
    commit(repo)
    with open_repository(str(repo)) as repository:
        with pytest.raises(GitError, match="link: is not a folder"):
            repository.read("main", "link")
        with pytest.raises(GitError, match="link: symbolic links are not followed"):
            repository.read_working_tree("link")


def test_submodule_is_an_error(repo: Path, tmp_path: Path) -> None:
    run(tmp_path, "clone", "--quiet", str(repo), "inner")
    run(repo, "submodule", "--quiet", "add", str(tmp_path / "inner"), "fleet/inner")
    commit(repo)
    with pytest.raises(GitError, match="fleet/inner: submodules are not read"):
        read(repo)


def test_url_is_cloned_and_then_fetched(repo: Path, tmp_path: Path) -> None:
    source, cache = repo.as_uri(), tmp_path / "cache"
    with open_repository(source, cache=cache) as repository:
        first = repository.resolve("main")
        second = commit(repo, fleet__a="a: 2")
        run(repo, "branch", "short-lived")
        repository.fetch()
        assert repository.resolve("main") == second != first
    run(repo, "branch", "-D", "short-lived")
    with open_repository(source, cache=cache) as repository:
        assert repository.read("main").files["fleet/a.yaml"] == b"a: 2"
        assert not repository.is_dirty()
        with pytest.raises(GitError, match="there is no revision"):
            repository.resolve("short-lived")
    assert clone_in(cache)


def clone_in(cache: Path) -> Path:
    (clone,) = (path for path in cache.iterdir() if path.is_dir())
    return clone


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "refs/heads/feature/other.lock", "packed-refs.lock"])
def test_lock_of_a_killed_fetch_is_removed(repo: Path, tmp_path: Path, name: str) -> None:
    run(repo, "branch", "feature/other")
    url, cache = repo.as_uri(), tmp_path / "cache"
    open_repository(url, cache=cache).__exit__(None, None, None)
    wanted = commit(repo, fleet__a="a: 2")
    run(repo, "branch", "--force", "feature/other")
    lock = clone_in(cache) / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with open_repository(url, cache=cache) as clone:
        assert clone.resolve("main") == wanted
    assert not lock.exists() or name == "packed-refs.lock"


def test_clone_is_fetched_by_one_process_at_a_time(repo: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    open_repository(repo.as_uri(), cache=cache).__exit__(None, None, None)
    folder = clone_in(cache)
    with folder.with_suffix(".turn").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another kfleet has been fetching for 0 s"):
            Clone(repo.as_uri(), folder, {}, 0)
    Clone(repo.as_uri(), folder, {}, 0).repo.close()


# What is written over which files; None where they are gone.
OBJECTS = ("objects/??/*", "objects/pack/*.pack")
BROKEN: dict[str, tuple[tuple[str, ...], bytes | None]] = {
    "objects": (OBJECTS, b"garbage"),
    "empty objects": (OBJECTS, b""),
    "no objects": (OBJECTS, None),
    "no packs": (("objects/pack/*",), None),
    "configuration": (("config",), b"[core\nbare = "),
    "head": (("HEAD",), b""),
    "packed refs": (("packed-refs",), b"no refs\n"),
    "refs": (("refs/heads/*",), b""),
    "strange refs": (("refs/heads/*",), b"1" * 40),
}


def _break(clone: Path, patterns: tuple[str, ...], content: bytes | None) -> None:
    for path in [path for pattern in patterns for path in clone.glob(pattern) if path.is_file()]:
        path.chmod(0o600)
        path.unlink()
        if content is not None:
            path.write_bytes(content)


@pytest.mark.parametrize("has_news", [False, True])
@pytest.mark.parametrize("what", BROKEN)
def test_broken_clone_is_mended(repo: Path, tmp_path: Path, what: str, *, has_news: bool) -> None:
    cache = tmp_path / "cache"
    with open_repository(repo.as_uri(), cache=cache) as repository:
        before = repository.read("main")
    if has_news:
        commit(repo, fleet__more="m: 1")
    clone = clone_in(cache)
    _break(clone, *BROKEN[what])
    left = cache / f"{clone.name}.half-made"
    left.mkdir()
    with open_repository(repo.as_uri(), cache=cache) as repository:
        after = repository.read("main")
    assert before.files.items() <= after.files.items() and ("fleet/more.yaml" in after.files) is has_news
    # Nothing more is left beside it.
    assert {path for path in cache.iterdir() if path.is_dir()} <= {clone, left}


def test_clone_is_the_same_for_another_password(tmp_path: Path) -> None:
    """Its folder is named in messages, and a weak password could be guessed by a hash of it."""
    for password in ("hunter2", "letmein"):
        with pytest.raises(GitError, match="cannot be fetched"):
            open_repository(f"https://bot:{password}@127.0.0.1:1/x.git", cache=tmp_path / "cache")
    assert clone_in(tmp_path / "cache")


def test_fetch_that_fails_keeps_what_is_there(repo: Path, tmp_path: Path) -> None:
    with open_repository(repo.as_uri(), cache=tmp_path / "cache") as repository:
        repo.rename(tmp_path / "gone")
        with pytest.raises(GitError, match="cannot be fetched"):
            repository.fetch()
        assert repository.read("main").files["fleet/a.yaml"] == b"a: 1"


def test_hooks_do_not_run(repo: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with open_repository(repo.as_uri(), cache=cache):
        clone = clone_in(cache)
    hook = clone / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    commit(repo, fleet__a="a: 2")
    open_repository(repo.as_uri(), cache=cache)
    assert not (tmp_path / "ran").exists()


def test_cache_lies_where_xdg_says(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    open_repository(repo.as_uri())
    assert clone_in(tmp_path / "xdg" / "kfleet" / "git")


def test_cache_that_cannot_be_written_is_named(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GitError, match="cannot be cached in"):
        open_repository(repo.as_uri(), cache=tmp_path / "file")


@pytest.mark.parametrize(
    "source", ["ext::sh -c touch% ran", "http://example.org/x.git", "git://example.org/x.git", "ftp://example.org/x"]
)
def test_transport_that_is_not_allowed_is_named(source: str, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is not allowed: use https, ssh, file or a path"):
        open_repository(source, cache=tmp_path)


@pytest.mark.parametrize("where", ["127.0.0.1:9/x.git", "nowhere/x.git"])
@pytest.mark.parametrize("transport", ["https", "file"])
def test_password_is_masked_everywhere(tmp_path: Path, transport: str, where: str) -> None:
    source = f"{transport}://user:hunter2@{where}"
    with pytest.raises(GitError) as caught:
        open_repository(source, cache=tmp_path)
    assert f"{transport}://***@{where}: cannot be fetched" in str(caught.value)
    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__} {caught.value.__context__!r}"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"hunter2" in content for content in written)


@pytest.mark.parametrize("password", ["hun#ter2", "hun/ter2", "hun?ter2", "12/34"])
def test_password_with_characters_that_end_a_host_is_refused_without_it(tmp_path: Path, password: str) -> None:
    with pytest.raises(GitError) as caught:
        open_repository(f"https://bot:{password}@git.example.org/x.git", cache=tmp_path)
    assert str(caught.value).startswith("https://***@git.example.org/x.git: its user or password contains '/'")
    assert password not in f"{caught.value!r} {caught.value.__context__!r}" and list(tmp_path.iterdir()) == []


def test_password_in_what_a_transport_prints_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "no way to $*" >&2\nexit 1\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    with pytest.raises(GitError) as caught:
        open_repository("ssh://user:hunter2@example.org/x", cache=tmp_path / "cache")
    assert "no way to" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "masked"),
    [
        ("https://bot:s3cr#et@host/x.git", "https://***@host/x.git"),
        ("https://bot:pa/ss@host/x.git", "https://***@host/x.git"),
        ("https://host/x.git?private_token=glpat-secret", "https://host/x.git?***"),
        ("https://host/x@v2.git", "https://***@v2.git"),
        ("https://tok/en@host/x.git", "https://***@host/x.git"),
        ("https://to#ken@host/x.git", "https://***@host/x.git"),
        ("https://bot:a@b/c@host/x.git", "https://***@host/x.git"),
        ("https://token@example.org/x", "https://***@example.org/x"),
        ("ssh://git@example.org/x", "ssh://***@example.org/x"),
        ("git@example.org:x", "git@example.org:x"),
        ("/a/b", "/a/b"),
    ],
)
def test_mask_leaves_the_rest(source: str, masked: str) -> None:
    assert mask(source) == masked


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("https://bot:s3cret@Example.org/team/fleet.git", "example.org/team/fleet"),
        ("ssh://git@example.org/team/fleet.git/", "example.org/team/fleet"),
        ("git@example.org:team/fleet", "example.org/team/fleet"),
        ("https://example.org/team/fleet?private_token=s3cret", "example.org/team/fleet"),
        ("/a/b", ""),
    ],
)
def test_address_of_a_repository_has_no_login_and_no_transport(source: str, address: str, repo: Path) -> None:
    assert plain_address(source) == address
    run(repo, "remote", "add", "origin", source)
    with open_repository(str(repo)) as repository:
        assert repository.remote() == address


def test_large_file_is_refused(repo: Path) -> None:
    commit(repo, fleet__big="a" * (limits.MAX_FILE_BYTES + 1))
    with open_repository(str(repo)) as repository:
        assert_refused(repository, "fleet/big.yaml: has 10485761 bytes: at most 10485760 are read")


def test_too_many_bytes_are_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_TOTAL_BYTES", 10)
    with open_repository(str(repo)) as repository:
        assert_refused(repository, "the files have more than 10 bytes together")


def test_too_many_files_are_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 2)
    with open_repository(str(repo)) as repository:
        assert_refused(repository, "there are more than 2 files")


def assert_refused(repository: Repository, problem: str) -> None:
    with pytest.raises(GitError, match=problem):
        repository.read("main")
    with pytest.raises(GitError, match=problem):
        repository.read_working_tree()
