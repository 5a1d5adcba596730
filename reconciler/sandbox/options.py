"""What a sandbox should consist of, before anything is built or started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.errors import SandboxError
from reconciler.objects import ClusterName
from reconciler.sandbox import kubestellar, kueue
from reconciler.sandbox.nodes import DEFAULT_COUNT, read_nodes
from reconciler.sandbox.programs import DEFAULT_KUEUE, KUEUE_VERSIONS, PROGRAMS, Program
from reconciler.sandbox.state import ITS, MANAGER, sandbox_folder

NO_KUEUE = "none"
MAX_WORKERS = 50


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What `up` should bring up.

    `kueue_by_cluster` says which version runs where; the others get the default. Beside KubeStellar only the manager
    has one by default: a worker's Kueue would hold the jobs that arrive there.
    """

    name: str = "default"
    workers: int = 2
    default_kueue: str = DEFAULT_KUEUE
    kueue_by_cluster: Mapping[str, str] = field(default_factory=dict)
    nodes: str = str(DEFAULT_COUNT)
    frameworks: tuple[str, ...] = kueue.FRAMEWORKS
    has_kubestellar: bool = False
    is_owned: bool = False

    @property
    def worker_names(self) -> tuple[ClusterName, ...]:
        return tuple(ClusterName(f"worker{index + 1}") for index in range(self.workers))

    @property
    def cluster_names(self) -> tuple[ClusterName, ...]:
        return (MANAGER, *self.worker_names, *((ITS,) if self.has_kubestellar else ()))

    def kueue_of(self, cluster: str) -> str:
        default = NO_KUEUE if self.has_kubestellar and cluster != MANAGER else self.default_kueue
        version = self.kueue_by_cluster.get(cluster, default)
        return "" if version == NO_KUEUE else version

    @property
    def programs(self) -> tuple[Program, ...]:
        """The Go programs that this sandbox is made of."""
        versions = sorted({self.kueue_of(cluster) for cluster in self.cluster_names} - {""}, reverse=True)
        names = ["etcd", "kubernetes", "kwok", *(f"kueue-{version}" for version in versions)]
        return tuple(PROGRAMS[name] for name in (*names, *(kubestellar.PROGRAM_NAMES if self.has_kubestellar else ())))


def check_options(options: SandboxOptions) -> None:
    """Refuse what cannot be brought up."""
    sandbox_folder(options.name)
    if not 0 <= options.workers <= MAX_WORKERS:
        raise SandboxError("--workers", f"{options.workers} is out of range: 0 to {MAX_WORKERS}")
    for cluster in options.kueue_by_cluster:
        if cluster not in options.cluster_names:
            raise SandboxError("--kueue", f"no cluster {cluster!r}; there will be: {', '.join(options.cluster_names)}")
    for version in (options.default_kueue, *options.kueue_by_cluster.values()):
        if version not in (*KUEUE_VERSIONS, NO_KUEUE):
            raise SandboxError(
                "--kueue", f"no version {version!r}; there are: {', '.join((*KUEUE_VERSIONS, NO_KUEUE))}"
            )
    read_nodes(options.nodes, options.worker_names)
