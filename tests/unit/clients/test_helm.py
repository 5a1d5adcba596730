"""The helm that is found on the PATH, tried with small programs of that name."""

from pathlib import Path

import pytest

from reconciler.clients.helm import Chart, Helm, find_helm
from reconciler.errors import EdgeError

CHART = Chart("/charts/kueue", "0.19.0", "kueue", {})


def program(folder: Path, script: str) -> str:
    path = folder / "helm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo v3.16.4", "is Helm v3.16, which is too old"),
        ("echo unknown", "does not tell its version: unknown"),
        ("echo broken >&2; exit 3", "does not tell its version: broken"),
    ],
)
def test_helm_that_cannot_be_used_is_named(
    script: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EdgeError) as caught:
        find_helm()
    assert (caught.value.where, caught.value.problem) == (path, problem)
    assert "install Helm 3.17 or newer" in caught.value.hint


def test_missing_helm_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EdgeError, match="was not found on the PATH\ninstall Helm"):
        find_helm()


@pytest.mark.parametrize(("text", "version"), [("v3.17.0", (3, 17)), ("v4.3.0+g1", (4, 3)), ("v4.3", (4, 3))])
def test_version_of_helm_is_read(
    text: str, version: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, f"echo {text}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_helm() == Helm(path, version)


def test_settings_that_lead_to_another_cluster_do_not_reach_helm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HELM_NAMESPACE", "HELM_KUBECONTEXT", "HELM_DRIVER", "KUBECONFIG", "HELM_REGISTRY_CONFIG"):
        monkeypatch.setenv(name, "here")
    text = Helm(program(tmp_path, "/usr/bin/env"), (4, 3)).render(CHART, "kueue", "kueue-system", {}, ())
    assert "HELM_REGISTRY_CONFIG=here" in text
    assert not [line for line in text.splitlines() if line.startswith(("HELM_N", "HELM_K", "HELM_D", "KUBECONFIG"))]


def test_what_helm_says_at_last_is_the_problem(tmp_path: Path) -> None:
    helm = Helm(program(tmp_path, "echo 'level=WARN msg=x' >&2; echo 'Error: no such chart' >&2; exit 1"), (4, 3))
    with pytest.raises(EdgeError) as caught:
        helm.render(CHART, "kueue", "kueue-system", {"a": 1}, ("v1/Pod",))
    assert (caught.value.where, caught.value.problem) == ("helm template", "no such chart")


def test_values_reach_helm_in_a_file_and_not_on_its_command_line(tmp_path: Path) -> None:
    script = 'for word in "$@"; do case $word in --values=*) cat "${word#--values=}";; *) echo "$word";; esac; done'
    helm = Helm(program(tmp_path, script), (4, 3))
    text = helm.render(CHART, "kueue", "batch", {"secret": ["x"]}, ("v1/Pod", "apps/v1/Deployment"))
    assert text.splitlines() == [
        "template",
        "kueue",
        "/charts/kueue",
        "--namespace=batch",
        "secret:",
        "- x",
        "--api-versions=apps/v1/Deployment,v1/Pod",
    ]
