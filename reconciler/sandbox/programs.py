"""The Go programs of the sandbox and what each is built from."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from reconciler.sandbox.state import cache_folder

SOURCES = Path(__file__).parent / "go"
BUILD_FLAGS = ("-trimpath", "-buildvcs=false")
KUEUE_VERSIONS = ("0.19.0", "0.16.2")
DEFAULT_KUEUE = KUEUE_VERSIONS[0]
NEWER_CHARTS = ("0.19.2",)  # releases to whose chart an upgrade is rehearsed, without their controller
OLD_KINDS = ("0.14.0", "0.11.4")  # releases whose kinds can be installed, without their controller
KUBERNETES_VERSION = "1.36.3"
_KUEUE_FILES = ("config/components/crd/bases/*.yaml", "config/components/webhook/manifests.yaml")
_KWOK_FILES = tuple(
    f"kustomize/stage/{name}.yaml"
    for name in (
        "node/fast/node-initialize",
        "node/heartbeat-with-lease/node-heartbeat-with-lease",
        "pod/fast/pod-ready",
        "pod/fast/pod-complete",
        "pod/fast/pod-delete",
    )
)


@dataclass(frozen=True, slots=True)
class Program:
    """A binary, the folder with its go.mod, and the files of its Go module that it needs at run time.

    Without a target there are only the files. `is_verbatim` keeps them as they are, and not as JSON.
    """

    name: str
    source: Path
    target: str = "."
    stamps: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    files: tuple[str, ...] = ()
    minutes: float = 1
    is_verbatim: bool = False

    @property
    def link_flags(self) -> str:
        return " ".join(("-s -w", *(f"-X {name}={value}" for name, value in self.stamps.items())))

    @property
    def home(self) -> Path:
        """Where the finished build lies, named by a hash of everything it is made from."""
        digest = hashlib.sha256()
        for path in sorted(self.source.iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        more = ("verbatim",) if self.is_verbatim else ()
        recipe = (self.target, self.link_flags, BUILD_FLAGS, self.module, self.files, *more)
        digest.update(repr((recipe, platform.system(), platform.machine())).encode())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:16]}"

    @property
    def binary(self) -> Path:
        return self.home / self.name

    def manifests(self, pattern: str) -> list[dict[str, Any]]:
        """The documents of files that were kept from the program's Go module."""
        paths = sorted((self.home / "files").glob(pattern))
        return [document for path in paths for document in orjson.loads(path.read_bytes())]


def _kubernetes() -> Program:
    major, minor, _ = KUBERNETES_VERSION.split(".")
    # Without its version the API server calls itself v0.0.0-master, which Kueue cannot parse.
    stamps = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
    package = "k8s.io/component-base/version"
    return Program(
        "kubernetes",
        SOURCES / "kubernetes",
        stamps={f"{package}.{name}": value for name, value in stamps.items()},
        minutes=6,
    )


def _kwok() -> Program:
    return Program(
        "kwok",
        SOURCES / "kwok",
        target="sigs.k8s.io/kwok/cmd/kwok",
        module="sigs.k8s.io/kwok",
        files=_KWOK_FILES,
        minutes=1.5,
    )


def _kueue(version: str) -> Program:
    return Program(
        f"kueue-{version}",
        SOURCES / f"kueue-{version}",
        target="sigs.k8s.io/kueue/cmd/kueue",
        stamps={"sigs.k8s.io/kueue/pkg/version.GitVersion": f"v{version}"},
        module="sigs.k8s.io/kueue",
        files=_KUEUE_FILES,
        minutes=4,
    )


def _kueue_kinds(version: str) -> Program:
    name = f"kueue-crds-{version}"
    return Program(name, SOURCES / name, target="", module="sigs.k8s.io/kueue", files=_KUEUE_FILES[:1], minutes=0.1)


def _kueue_chart(version: str) -> Program:
    """No part of a sandbox: tests have helm install it."""
    name, files = f"kueue-chart-{version}", ("charts/kueue/**/*",)
    source = SOURCES / (name if version in NEWER_CHARTS else f"kueue-{version}")
    return Program(name, source, target="", module="sigs.k8s.io/kueue", files=files, minutes=0.1, is_verbatim=True)


def _work_agent() -> Program:
    return Program(
        "ocm-work",
        SOURCES / "ocm-work",
        target="open-cluster-management.io/ocm/cmd/work",
        module="open-cluster-management.io/api",
        files=("cluster/v1/*managedclusters.crd.yaml", "work/v1/*.crd.yaml"),
        minutes=3.5,
    )


def _argocd() -> Program:
    """No part of a sandbox: tests have it run kfleet's plugin."""
    return Program(
        "argocd",
        SOURCES / "argocd",
        module="github.com/argoproj/argo-cd/v3",
        files=("manifests/crds/application*-crd.yaml",),
        minutes=2.5,
    )


def _helm() -> Program:
    """No part of a sandbox: tests have it render the chart."""
    return Program("helm", SOURCES / "helm", target="helm.sh/helm/v4/cmd/helm", minutes=2)


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("etcd", SOURCES / "etcd", minutes=0.6),
        _kubernetes(),
        _kwok(),
        *(_kueue(version) for version in KUEUE_VERSIONS),
        *(_kueue_kinds(version) for version in OLD_KINDS),
        *(_kueue_chart(version) for version in (*KUEUE_VERSIONS, *NEWER_CHARTS)),
        Program("kubestellar", SOURCES / "kubestellar", minutes=1.5),
        _work_agent(),
        _argocd(),
        _helm(),
    )
}
