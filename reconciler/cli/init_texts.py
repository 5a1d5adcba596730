"""The files of a small fleet, with comments on what to change next. Text only."""

import re
from collections.abc import Mapping, Sequence

import yaml

from reconciler.cli.init_contexts import RoleChoice
from reconciler.kueue.kinds import NEWEST
from reconciler.spec.enums import Role
from reconciler.spec.schema import KFLEET_VERSION

QUEUE = "batch"
FLAVOR = "default"
TEAM = "team-a"

_PLAIN = re.compile(r"[a-z][-a-z0-9.]*")
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def starter_files(fleet: str, members: Sequence[RoleChoice], schema: str) -> Mapping[str, str]:
    """Return the text of each file by its name. `schema` is the path of kfleet.json for editors, or empty."""
    has_workers = any(member.role is Role.WORKER for member in members)
    texts = {
        "fleet.yaml": _FLEET.format(version=KFLEET_VERSION, name=_scalar(fleet)),
        "clusters.yaml": _clusters(members, has_workers=has_workers),
        "flavors.yaml": _FLAVORS.format(version=KFLEET_VERSION, flavor=FLAVOR),
        "queues.yaml": _queues(has_workers=has_workers),
        "tenants.yaml": _tenants(has_workers=has_workers, is_single=len(members) == 1),
    }
    modeline = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    return {name: modeline + text for name, text in texts.items()}


_FLEET = """\
# The fleet as a whole: what kfleet may do on the clusters. Every setting has a safe default.
#
#   kfleet explain fleet.policy      all fields
apiVersion: {version}
kind: Fleet
metadata:
  name: {name} # identifies the objects of this fleet on the clusters: choose it before the first apply
spec:
  policy:
    conflicts: refuse # if another tool owns a field, report it and write nothing
    adopt: unowned # adopt objects that have no other owner
    prune:
      maxDeletes: 10 # refuse a run that would delete more objects
"""


def _clusters(members: Sequence[RoleChoice], *, has_workers: bool) -> str:
    several = _SEVERAL_CLUSTERS if has_workers else _STANDALONE_CLUSTERS
    head = _ONE_CLUSTER if len(members) == 1 else several
    documents = [
        _CLUSTER.format(
            version=KFLEET_VERSION, name=_scalar(member.name), role=member.role, context=_scalar(member.context)
        )
        for member in members
    ]
    return head + _CLUSTERS_NEXT.format(newest=NEWEST) + "---\n".join(documents)


_ONE_CLUSTER = """\
# The cluster. A standalone cluster accepts jobs and runs them itself. In a fleet of several clusters, one is the
# manager, which accepts the jobs, and the others are its workers.
"""
_SEVERAL_CLUSTERS = """\
# The clusters. Jobs are submitted to the manager, which dispatches them to the workers.
"""
_STANDALONE_CLUSTERS = """\
# The clusters. Each accepts jobs and runs them itself; the same queues and teams are on all of them.
"""
_CLUSTERS_NEXT = """\
#
# access.context is a context of your kubeconfig ($KUBECONFIG, or ~/.kube/config). Nothing else of it is copied here.
#
# What to change next:
# - metadata.labels, such as {{site: lyon, accelerator: a100}}: flavors and queues select clusters by them;
# - spec.kueue.version, such as "0.16", if a cluster runs an older Kueue than {newest}.
#
#   kfleet explain cluster           all fields
#   kfleet explain cluster.access    other ways to reach a cluster
"""
_CLUSTER = """\
apiVersion: {version}
kind: Cluster
metadata:
  name: {name}
spec:
  role: {role}
  access:
    context: {context}
"""

_FLAVORS = """\
# Classes of nodes. A flavor becomes a ResourceFlavor on each of its clusters.
#
# What to change next:
# - the numbers: the total of the nodes of one cluster;
# - one flavor for each class of nodes, for example those with GPUs, selected by nodeLabels.
#
#   kfleet explain flavor            all fields
#   kfleet explain flavor.capacity   sources of the capacity
apiVersion: {version}
kind: Flavor
metadata:
  name: {flavor}
spec:
  # clusters: {{matchLabels: {{site: lyon}}}} # only clusters with this label; default: all that run jobs
  # nodeLabels: {{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}} # only nodes with this label; default: all
  capacity:
    source: static # as written below
    resources:
      cpu: "16"
      memory: 64Gi
      # nvidia.com/gpu: "8"
"""


def _queues(*, has_workers: bool) -> str:
    where = "the manager and on each worker" if has_workers else "each cluster that runs its jobs"
    dispatch = "" if not has_workers else f"  dispatch: multikueue {_DISPATCH}\n"
    return _QUEUES.format(version=KFLEET_VERSION, queue=QUEUE, flavor=FLAVOR, where=where, dispatch=dispatch)


_DISPATCH = "# jobs are submitted on the manager; the first worker that admits a job runs it"
_QUEUES = """\
# Queues. A queue becomes a ClusterQueue on {where}.
#
# What to change next:
# - a queue for each group that shares the clusters; shares of one flavor add up to at most 100%;
# - the same cohort for queues that may lend each other their unused quota.
#
#   kfleet explain queue             all fields
#   kfleet explain queue.quota       shares, fixed amounts, limits
apiVersion: {version}
kind: Queue
metadata:
  name: {queue}
spec:
{dispatch}  quota:
  - flavor: {flavor}
    resources: # a share of the flavor's capacity on each cluster, or a fixed amount such as "8"
      cpu: 75%
      memory: 75%
"""


def _tenants(*, has_workers: bool, is_single: bool) -> str:
    alone = "the cluster" if is_single else "each cluster"
    where = "the manager and on each worker" if has_workers else alone
    return _TENANTS.format(version=KFLEET_VERSION, team=TEAM, queue=QUEUE, where=where)


_TENANTS = """\
# Teams. kfleet creates the namespaces of a team, each with a LocalQueue, on {where}.
# A job of the team selects its queue by a label:
#
#   metadata:
#     namespace: {team}
#     labels: {{kueue.x-k8s.io/queue-name: {queue}}}
#
# What to change next: the name and the namespaces, and one document for each team.
#
#   kfleet explain tenant            all fields
apiVersion: {version}
kind: Tenant
metadata:
  name: {team}
spec:
  namespaces: [{team}]
  queue: {queue}
"""

PRE_COMMIT = """\
# Runs `kfleet validate` before each commit: pipx install pre-commit && pre-commit install
repos:
- repo: local
  hooks:
  - id: kfleet-validate
    name: kfleet validate
    entry: kfleet validate{option}
    language: system
    files: \\.(ya?ml|json)$
    pass_filenames: false
"""


def _scalar(text: str) -> str:
    """Quote the text so that every YAML parser reads a string: users choose names of contexts freely."""
    if _PLAIN.fullmatch(text) and text not in _YAML_WORDS:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', width=float("inf"))
    return quoted.strip()
