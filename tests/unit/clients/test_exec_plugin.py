"""Credential plugins: programs that a kubeconfig names, and everything that they may do wrong."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients import kubeconfig as exec_plugin
from reconciler.clients.access import find_access
from reconciler.clients.kubeconfig import ClusterLogin, parse_kubeconfig
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.pipeline.observe import connect
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

V1 = "client.authentication.k8s.io/v1"
TOKEN = "k8s-aws-v1.aHR0cHM6Ly9zdHMuZXhhbXBsZQ"  # noqa: S105  (made up)
HUB = ClusterName("hub")
FLEET = """
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: test}
"""
CLUSTER = """---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: %s}
spec: {role: standalone, access: {kubeconfig: %s}}
"""


def credential(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def plugin(folder: Path, printed: str, *lines: str) -> Path:
    """A program that prints this, after it has done what the lines say."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plugin"
    text = "\n".join((f"#!{sys.executable}", "import json, os, sys, time", *lines, f"print({printed!r})", ""))
    path.write_text(text)
    path.chmod(0o755)
    return path


def kubeconfig(folder: Path, **entry: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "eks",
        "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "eks"}}],
        "clusters": [{"name": "eks", "cluster": {"server": "https://192.0.2.1:6443"}}],
        "users": [{"name": "eks", "user": {"exec": {"apiVersion": V1, "command": "./plugin", **entry}}}],
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    return path


def plugin_spec(**clusters: Path) -> FleetSpec:
    text = FLEET + "".join(CLUSTER % (name, path) for name, path in clusters.items())
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))


def access(folder: Path, **entry: Any) -> ClusterLogin:
    (cluster,) = plugin_spec(hub=kubeconfig(folder, **entry)).clusters
    return find_access(cluster)


def problem(folder: Path, **entry: Any) -> str:
    with pytest.raises(ClusterError) as raised:
        access(folder, **entry)
    return raised.value.problem


def test_plugin_gives_a_token(tmp_path: Path) -> None:
    plugin(tmp_path, credential(token=TOKEN))
    assert access(tmp_path).headers == {"Authorization": f"Bearer {TOKEN}"}


def test_plugin_gives_a_certificate(tmp_path: Path) -> None:
    plugin(tmp_path, credential(clientCertificateData="a certificate", clientKeyData="a key"))
    found = access(tmp_path)
    assert (found.client_certificate, found.client_key, found.headers) == ("a certificate", "a key", {})


def test_plugin_gives_both(tmp_path: Path) -> None:
    plugin(tmp_path, credential(token=TOKEN, clientCertificateData="a certificate", clientKeyData="a key"))
    found = access(tmp_path)
    assert (found.token, found.client_certificate, found.client_key) == (TOKEN, "a certificate", "a key")


def test_plugin_is_found_on_the_path_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(tmp_path / "bin", credential(token=TOKEN))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert access(tmp_path, command="plugin").token == TOKEN


def test_plugin_gets_its_arguments_variables_and_cluster(tmp_path: Path) -> None:
    told = tmp_path / "told"
    plugin(
        tmp_path,
        credential(token=TOKEN),
        "told = [sys.argv[1:], os.environ['REGION'], json.loads(os.environ['KUBERNETES_EXEC_INFO'])]",
        f"open({str(told)!r}, 'w').write(json.dumps(told))",
    )
    access(tmp_path, args=["--name", 7], env=[{"name": "REGION", "value": "eu"}], provideClusterInfo=True)
    cluster = {"server": "https://192.0.2.1:6443"}
    info = {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": cluster}}
    assert json.loads(told.read_text()) == [["--name", "7"], "eu", info]


def test_plugin_is_asked_again_each_time_that_a_way_is_opened(tmp_path: Path) -> None:
    """Credentials expire: a controller opens its ways anew every minute."""
    soon = (datetime.now(UTC) + timedelta(seconds=90)).isoformat()
    plugin(tmp_path, credential(token=TOKEN, expirationTimestamp=soon), "open('asked', 'a').write('x')")
    path = kubeconfig(tmp_path)
    (tmp_path / "plugin").write_text(
        (tmp_path / "plugin").read_text().replace("'asked'", repr(str(tmp_path / "asked")))
    )
    for _ in range(2):
        connect(plugin_spec(hub=path)).close()
    assert (tmp_path / "asked").read_text() == "xx"


def test_credential_of_a_plugin_is_renewed_by_asking_it_again(tmp_path: Path) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=90)
    status = f"dict(token=str(os.getpid()), expirationTimestamp={soon.isoformat()!r})"
    plugin(
        tmp_path,
        "",
        f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential', status={status})))",
        "sys.exit()",
    )
    found = access(tmp_path)
    assert found.expires == soon and found.renew is not None
    again = found.renew()
    assert again.token != found.token
    assert again == replace(found, token=again.token)


def test_credential_without_an_end_is_not_renewed(tmp_path: Path) -> None:
    plugin(tmp_path, credential(token=TOKEN))
    assert (access(tmp_path).expires, access(tmp_path).renew) == (None, None)


def test_token_in_the_file_wins_over_a_plugin(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    content = json.loads(path.read_text())
    content["users"][0]["user"]["token"] = "written"  # noqa: S105  (made up)
    path.write_text(json.dumps(content))
    (cluster,) = plugin_spec(hub=path).clusters
    assert find_access(cluster).token == "written"  # noqa: S105  (made up)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "is not an ExecCredential"),
        (TOKEN, "is not an ExecCredential"),
        ("[]", "is not an ExecCredential"),
        ('{"kind": "ExecCredential"}', "is not an ExecCredential"),
        (credential("client.authentication.k8s.io/v1beta1", token=TOKEN), f"must print an ExecCredential of {V1}"),
        (credential(), "returned neither token nor certificate"),
        (credential(clientCertificateData="a certificate"), "returned a certificate without its key"),
        (credential(token=TOKEN, expirationTimestamp="yesterday"), "is not an ExecCredential"),
        (credential(token=TOKEN, expirationTimestamp="2020-01-01T00:00:00Z"), "that expired at 2020-01-01T00:00Z"),
    ],
)
def test_plugin_that_gives_nothing_or_garbage_is_one_message_without_it(
    tmp_path: Path, printed: str, said: str
) -> None:
    plugin(tmp_path, printed)
    message = problem(tmp_path)
    assert said in message and "./plugin" in message and TOKEN not in message


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "its apiVersion must be one of"),
        ({"command": ""}, "names no command"),
        ({"command": "/nowhere/plugin", "installHint": "get it from us"}, "no such file or directory; get it from us"),
        ({"interactiveMode": "Always"}, "wants to prompt for input"),
        ({"env": ["REGION=eu"]}, "is not a mapping with command, args and env"),
    ],
)
def test_plugin_that_cannot_be_run_is_one_message(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    plugin(tmp_path, credential(token=TOKEN))
    assert said in problem(tmp_path, **entry)


def test_plugin_that_fails_is_quoted_without_what_may_be_a_secret(tmp_path: Path) -> None:
    plugin(tmp_path, "", f"sys.exit('refused: the session {TOKEN} has expired')")
    assert problem(tmp_path).endswith("exited with 1: refused: the session … has expired")


def test_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children hold its output open, as those of a shell script do; they end too."""
    monkeypatch.setattr(exec_plugin, "TIMEOUT", timedelta(seconds=1))
    plugin(tmp_path / "slow", credential(token=TOKEN), "import subprocess", "subprocess.run(['sleep', '600'])")
    plugin(tmp_path / "quick", credential(token=TOKEN))
    opened = connect(plugin_spec(slow=kubeconfig(tmp_path / "slow"), quick=kubeconfig(tmp_path / "quick")))
    opened.close()
    assert list(opened.clients) == ["quick"]
    (gap,) = opened.gaps
    assert gap.cluster == "slow" and gap.why.endswith("returned no credential within 1 s and was killed")


def test_plugins_run_at_the_same_time(tmp_path: Path) -> None:
    """Each of these waits until all have begun."""
    names = ("a", "b", "c")
    wait = f"while not all(os.path.exists(f'{tmp_path}/{{name}}/begun') for name in {names}): time.sleep(0.01)"
    for name in names:
        plugin(tmp_path / name, credential(token=TOKEN), f"open('{tmp_path}/{name}/begun', 'w')", wait)
    opened = connect(plugin_spec(**{name: kubeconfig(tmp_path / name) for name in names}))
    opened.close()
    assert (tuple(opened.clients), opened.gaps) == (names, ())


def test_kubeconfig_of_no_mapping_is_one_message() -> None:
    broken = parse_kubeconfig(HUB, "config", "users: []")
    with pytest.raises(ClusterError, match="is not a mapping with command"):
        exec_plugin.run_plugin(broken, "aws eks get-token", {})  # type: ignore[arg-type]  # as it may stand in a file
