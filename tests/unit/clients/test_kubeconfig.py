"""Kubeconfigs that somebody broke: each is one message, which quotes no secret, and no defect of ours."""

import traceback
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients import access
from reconciler.clients.access import open_cluster
from reconciler.clients.kubeconfig import Kubeconfig
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from tests import fast_yaml
from tests.cluster.clients.test_access import cluster

WORD = "sesame"
NO_TEXT = b64encode(b"\xff\xfe" + WORD.encode()).decode()
NO_PEM = b64encode(WORD.encode()).decode()


def broken(server: object = None, user: object = None, **sections: object) -> dict[str, Any]:
    """A kubeconfig that is right but for what is said."""
    server = {"server": "https://127.0.0.1:1"} if server is None else server
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": server}],
        "users": [{"name": "a", "user": {"token": "t"} if user is None else user}],
    } | sections


def with_ca(data: object) -> dict[str, Any]:
    return broken(server={"server": "https://127.0.0.1:1", "certificate-authority-data": data})


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/plugin", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "config: is not a kubeconfig: empty"),
        (broken(contexts=["a"]), "config: contexts is not a list of mappings"),
        (broken(contexts=WORD), "config: contexts is not a list of mappings"),
        (broken(users=None), "config: there is no user 'a'; there are: none"),
        (broken(user=WORD), "config: the user 'a' is not a mapping"),
        (
            broken(server={"certificate-authority-data": NO_PEM}),
            "config: the server of 'a' must be a URL such as https",
        ),
        (broken(server={"server": "127.0.0.1:1"}), "config: the server of 'a' must be a URL such as https"),
        (with_ca("sesame!"), "config: certificate-authority-data: is not valid base64 text"),
        (with_ca(NO_TEXT), "config: certificate-authority-data: is not valid base64 text"),
        (with_ca(12345), "config: certificate-authority-data: is not valid base64 text"),
        (with_ca(NO_PEM), "https://127.0.0.1:1: the certificate authority is not a certificate"),
        (
            broken(user={"client-certificate-data": NO_PEM, "client-key-data": NO_PEM}),
            "https://127.0.0.1:1: the client certificate and its key cannot be used",
        ),
        (broken(user={"token": f"{WORD}\nx: y"}), "https://127.0.0.1:1: the token contains line breaks"),
        (broken(user={"token": f"{WORD}ü"}), "https://127.0.0.1:1: the token contains line breaks or characters"),
        (broken(user={"exec": PLUGIN}), "config: exec: /nowhere/plugin cannot be run: no such file"),
    ],
)
def test_kubeconfig_that_is_broken_is_one_message_without_secrets(
    tmp_path: Path, content: object, problem: str
) -> None:
    path = tmp_path / "config"
    path.write_text("" if content is None else fast_yaml.safe_dump(content))
    with pytest.raises(ClusterError, match=problem) as failure:
        open_cluster(cluster(f"{{kubeconfig: {path}}}"))
    assert WORD not in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize("name", [{"name": "a"}, {}, {"name": 0}, {"name": None}])
def test_kubeconfig_of_a_secret_has_instructions_in_no_entry(name: dict[str, object]) -> None:
    content = {"users": [{"name": "b", "user": {"token": "x"}}, {**name, "user": {"exec": {"command": "id"}}}]}
    with pytest.raises(ClusterError, match="has exec; a kubeconfig in a Secret may contain inline data only"):
        access._refuse_instructions(Kubeconfig(ClusterName("east"), "secret", content))


def test_kubeconfig_that_is_a_folder_is_not_called_missing(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=f"cannot read {tmp_path}: Is a directory"):
        open_cluster(cluster(f"{{kubeconfig: {tmp_path}}}"))


def test_login_by_the_kubernetes_package_leaves_no_key_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    texts = {name: b64encode(f"the {name}".encode()).decode() for name in ("certificate", "key")}
    user = {
        "username": "ada",
        "password": "sesame",
        "client-certificate-data": texts["certificate"],
        "client-key-data": texts["key"],
    }
    (tmp_path / "config").write_text(fast_yaml.safe_dump_all([broken(user=user)]))
    for _ in range(2):
        found = access.find_access(cluster(f"{{kubeconfig: {tmp_path / 'config'}}}"))
        assert (found.client_certificate, found.client_key) == ("the certificate", "the key")
        assert [*(tmp_path / "files").iterdir()] == []
