"""How a cluster is reached, tried on a real API server."""

import contextlib
import json
import os
import shutil
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, ClassVar

import pytest

from reconciler.clients.access import open_cluster
from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import Cluster
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.cluster.accounts import account

EXEC = "client.authentication.k8s.io/v1"


def cluster(access: str) -> Cluster:
    text = (
        "apiVersion: kfleet.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n---\n"
        "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker1}\n"
        f"spec: {{role: worker{access and f', access: {access}'}}}\n"
    )
    return parse_fleet(FleetFiles("test", "", {"fleet/a.yaml": text.encode()})).clusters[0]


def uid_of(fleet: Sandbox, name: str = "worker1") -> str:
    return str(fleet.api(name).get("/api/v1/namespaces/kube-system")["metadata"]["uid"])


def uid_through(access: str, **more: Any) -> str:
    port = open_cluster(cluster(access), **more)
    try:
        return str(port.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
    finally:
        port.close()


def test_access_by_context_and_file(fleet: Sandbox) -> None:
    assert uid_through(f"{{context: worker2, kubeconfig: {fleet.state.kubeconfig}}}") == uid_of(fleet, "worker2")


def test_access_by_the_cluster_name_in_the_default_files(fleet: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["/nowhere/config", str(fleet.state.kubeconfig)]))
    assert uid_through("") == uid_of(fleet)


def test_access_by_the_current_context_of_a_named_file(fleet: Sandbox) -> None:
    path = fleet.folder / "worker2" / "kubeconfig"
    assert uid_through(f"{{kubeconfig: {path}}}") == uid_of(fleet, "worker2")


@pytest.mark.parametrize("is_path", [True, False])
def test_access_by_a_variable(fleet: Sandbox, monkeypatch: pytest.MonkeyPatch, *, is_path: bool) -> None:
    path = fleet.folder / "worker1" / "kubeconfig"
    monkeypatch.setenv("WORKER", str(path) if is_path else path.read_text())
    assert uid_through("{env: WORKER}") == uid_of(fleet)


def test_access_by_a_secret_on_the_manager(fleet: Sandbox, unique: str) -> None:
    content = b64encode((fleet.folder / "worker1" / "kubeconfig").read_bytes()).decode()
    metadata = {"name": unique, "namespace": "kueue-system"}
    manager = fleet.api("manager")
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"kubeconfig": content}})
    try:
        reference = f"{{secretRef: {{namespace: kueue-system, name: {unique}}}}}"
        assert uid_through(reference, manager=manager) == uid_of(fleet)
        with pytest.raises(ClusterError, match="has no key 'other'"):
            uid_through(reference.replace("}}", ", key: other}}"), manager=manager)
    finally:
        manager.delete(f"/api/v1/namespaces/kueue-system/secrets/{unique}")


def test_access_by_a_secret_of_garbage_is_one_message(fleet: Sandbox, unique: str) -> None:
    metadata = {"name": unique, "namespace": "kueue-system"}
    content = {"kubeconfig": b64encode(b"\xff\xfesesame").decode()}
    manager = fleet.api("manager")
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": content})
    try:
        reference = f"{{secretRef: {{namespace: kueue-system, name: {unique}}}}}"
        with pytest.raises(
            ClusterError, match=f"secret kueue-system/{unique} on the manager: kubeconfig: is not valid base64 text"
        ):
            uid_through(reference, manager=manager)
    finally:
        manager.delete(f"/api/v1/namespaces/kueue-system/secrets/{unique}")


@pytest.mark.parametrize(
    ("noun", "field", "value"),
    [
        ("user", "exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "{folder}/plugin"}),
        ("user", "auth-provider", {"name": "oidc"}),
        ("user", "tokenFile", "{folder}/token"),
        ("user", "client-key", "{folder}/key"),
        ("cluster", "certificate-authority", "{folder}/ca"),
        ("cluster", "proxy-url", "http://127.0.0.1:1"),
    ],
)
def test_access_by_a_secret_runs_no_command_and_reads_no_file(
    fleet: Sandbox, unique: str, tmp_path: Path, noun: str, field: str, value: Any
) -> None:
    """Who may write Secrets on the manager does not become the operator of kfleet by that."""
    (tmp_path / "plugin").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "plugin").chmod(0o755)
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    planted = json.loads(json.dumps(value).replace("{folder}", str(tmp_path)))
    content[f"{noun}s"][0][noun] |= {field: planted}
    data = {"kubeconfig": b64encode(fast_yaml.safe_dump(content).encode()).decode()}
    metadata = {"name": unique, "namespace": "kueue-system"}
    manager = fleet.api("manager")
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    try:
        with pytest.raises(ClusterError, match=f"has {field}; a kubeconfig in a Secret may contain inline data only"):
            uid_through(f"{{secretRef: {{namespace: kueue-system, name: {unique}}}}}", manager=manager)
    finally:
        manager.delete(f"/api/v1/namespaces/kueue-system/secrets/{unique}")
    assert not (tmp_path / "ran").exists()


def test_access_with_the_token_of_a_plugin(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    """Who has no other login is known to the server by the token."""
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    with account(fleet.api("worker1"), unique, rules) as visiting:
        status = {"token": visiting.access.token}
        told = json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": status})
        (tmp_path / "plugin").write_text(f"#!/bin/sh\ncat <<'E'\n{told}\nE\n")
        (tmp_path / "plugin").chmod(0o755)
        content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
        content["users"][0]["user"] = {"exec": {"apiVersion": EXEC, "command": "./plugin"}}
        (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
        assert uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}") == uid_of(fleet)


def test_access_with_a_token_that_is_not_accepted_says_what_to_do(fleet: Sandbox, tmp_path: Path) -> None:
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    content["users"][0]["user"] = {"token": "sesame"}
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    with pytest.raises(ClusterError, match=r"401 Unauthorized .* has expired, was revoked, .*: renew it") as failure:
        uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}")
    assert "sesame" not in str(failure.value)


def certificate_of(fleet: Sandbox, kind: str) -> str:
    """The administrator's certificate, `crt`, or its key, `key`."""
    return (fleet.folder / "worker1" / f"admin.{kind}").read_text()


def test_access_by_a_certificate_in_the_kubeconfig(fleet: Sandbox, tmp_path: Path) -> None:
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    content["users"][0]["user"] = {
        f"client-{name}-data": b64encode(certificate_of(fleet, kind).encode()).decode()
        for name, kind in (("certificate", "crt"), ("key", "key"))
    }
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    assert uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}") == uid_of(fleet)


def test_access_by_files_beside_the_kubeconfig(fleet: Sandbox, tmp_path: Path) -> None:
    known = fleet.state.cluster("worker1").access
    certificate, key = certificate_of(fleet, "crt"), certificate_of(fleet, "key")
    for name, text in (("ca.crt", known.ca), ("me.crt", certificate), ("me.key", key)):
        (tmp_path / name).write_text(text)
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    content["clusters"][0]["cluster"] = {"server": known.server, "certificate-authority": "ca.crt"}
    content["users"][0]["user"] = {"client-certificate": "me.crt", "client-key": "me.key"}
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    assert uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}") == uid_of(fleet)


def test_access_by_a_plugin_that_has_to_be_run(fleet: Sandbox, tmp_path: Path) -> None:
    certificate, key = certificate_of(fleet, "crt"), certificate_of(fleet, "key")
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": shutil.which("cat") or sys.executable,
        "args": [str(tmp_path / "credential.json")],
        "interactiveMode": "Never",
    }
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    content["users"][0]["user"] = {"exec": plugin}
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    assert uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}") == uid_of(fleet)


def test_access_without_verification_is_possible_where_the_kubeconfig_says_so(fleet: Sandbox, tmp_path: Path) -> None:
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    server = content["clusters"][0]["cluster"]
    del server["certificate-authority-data"]
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    with pytest.raises(ClusterError, match="certificate"):
        uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}")
    server["insecure-skip-tls-verify"] = True
    (tmp_path / "config").write_text(fast_yaml.safe_dump(content))
    assert uid_through(f"{{kubeconfig: {tmp_path / 'config'}}}") == uid_of(fleet)


@pytest.mark.parametrize(
    ("access", "problem"),
    [
        ("{context: mars, kubeconfig: CONFIG}", r"no context 'mars' in .*; there are: .*worker1, worker2"),
        ("{context: worker1, kubeconfig: /nowhere/config}", "no kubeconfig: /nowhere/config does not exist"),
        ("{env: NOT_SET}", "the environment variable NOT_SET is not set"),
        ("{inCluster: true}", "works only inside a pod"),
        ("{secretRef: {name: x}}", "needs a manager cluster"),
        ("{kubeconfig: BROKEN}", "broken: is not valid YAML"),
        ("{kubeconfig: LIST}", "list: is not a kubeconfig: not a mapping"),
    ],
)
def test_access_that_is_wrong_is_one_message(fleet: Sandbox, tmp_path: Path, access: str, problem: str) -> None:
    (tmp_path / "broken").write_text("token: [sesame")
    (tmp_path / "list").write_text("- 1\n")
    files = {"CONFIG": fleet.state.kubeconfig, "BROKEN": tmp_path / "broken", "LIST": tmp_path / "list"}
    for name, path in files.items():
        access = access.replace(name, str(path))
    with pytest.raises(ClusterError, match=problem) as failure:
        uid_through(access)
    assert "sesame" not in str(failure.value)


def test_access_never_shows_itself(fleet: Sandbox) -> None:
    known = fleet.state.cluster("worker1").access
    assert repr(known) == f"Access({known.server})"


def kubeconfig_with(fleet: Sandbox, folder: Path, **server: str) -> Path:
    """The kubeconfig of worker1, with more fields of its server."""
    content = fast_yaml.safe_load((fleet.folder / "worker1" / "kubeconfig").read_text())
    content["clusters"][0]["cluster"] |= {name.replace("_", "-"): value for name, value in server.items()}
    path = folder / "config"
    path.write_text(fast_yaml.safe_dump(content))
    return path


def test_access_by_a_server_name_of_its_own(fleet: Sandbox, tmp_path: Path) -> None:
    known = kubeconfig_with(fleet, tmp_path, tls_server_name="kubernetes.default.svc")
    assert uid_through(f"{{kubeconfig: {known}}}") == uid_of(fleet)
    strange = kubeconfig_with(fleet, tmp_path, tls_server_name="mars.example")
    with pytest.raises(ClusterError, match=r"not valid for 'mars\.example'"):
        uid_through(f"{{kubeconfig: {strange}}}")


class Tunnel(StreamRequestHandler):
    """An HTTP proxy that asks for a login and passes everything on."""

    asked: ClassVar[list[str]] = []

    def handle(self) -> None:
        lines = [line.decode().strip() for line in iter(self.rfile.readline, b"\r\n")]
        host, _, port = lines[0].split()[1].partition(":")
        self.asked.append(host)
        self.asked.extend(line for line in lines if line.lower().startswith("proxy-authorization"))
        if host != "127.0.0.1":
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with socket.create_connection((host, int(port))) as server:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._copy, args=(server, self.connection))
            back.start()
            self._copy(self.connection, server)
            back.join()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):  # whoever has hung up has read what it wanted
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def tunnel() -> Iterator[str]:
    Tunnel.asked.clear()
    with ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_access_through_a_proxy_that_wants_a_login(fleet: Sandbox, tmp_path: Path, tunnel: str) -> None:
    path = kubeconfig_with(fleet, tmp_path, proxy_url=f"http://me:sesame@{tunnel}")
    assert uid_through(f"{{kubeconfig: {path}}}") == uid_of(fleet)
    login = b64encode(b"me:sesame").decode()
    assert [line.lower() for line in Tunnel.asked] == ["127.0.0.1", f"proxy-authorization: basic {login}".lower()]


def test_proxy_of_the_environment_is_for_other_machines_only(
    fleet: Sandbox, tmp_path: Path, tunnel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{tunnel}")
    monkeypatch.setenv("NO_PROXY", "hub.example")
    assert uid_through(f"{{context: worker1, kubeconfig: {fleet.state.kubeconfig}}}") == uid_of(fleet)
    for host in ("hub.example", "elsewhere.invalid"):
        path = kubeconfig_with(fleet, tmp_path, server=f"https://{host}:1")
        with pytest.raises(ClusterError):
            uid_through(f"{{kubeconfig: {path}}}")
    assert Tunnel.asked == ["elsewhere.invalid"]


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("socks5://me:sesame@127.0.0.1:1", "its proxy has the scheme socks5"),
        ("http://me:sesame/x@proxy:1", "its proxy is not a URL"),
    ],
)
def test_proxy_that_cannot_be_used_is_reported_without_its_password(
    fleet: Sandbox, tmp_path: Path, proxy: str, problem: str
) -> None:
    path = kubeconfig_with(fleet, tmp_path, proxy_url=proxy)
    with pytest.raises(ClusterError, match=problem) as failure:
        uid_through(f"{{kubeconfig: {path}}}")
    assert "sesame" not in str(failure.value)
