"""The files of a small fleet, with comments that say what to change next. Text alone."""

import re
from collections.abc import Mapping, Sequence

import yaml

from reconciler.cli.init_choice import Member
from reconciler.kueue.kinds import NEWEST
from reconciler.spec.schema import KFLEET_VERSION

QUEUE = "batch"
FLAVOR = "default"
TEAM = "team-a"

_PLAIN = re.compile(r"[a-z][-a-z0-9.]*")
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def starter_files(fleet: str, members: Sequence[Member], schema: str) -> Mapping[str, str]:
    """The text of each file by its name. `schema` is the path of kfleet.json for editors, or empty."""
    is_single = len(members) == 1
    texts = {
        "fleet.yaml": _FLEET.format(version=KFLEET_VERSION, name=_scalar(fleet)),
        "clusters.yaml": _clusters(members, is_single=is_single),
        "flavors.yaml": _FLAVORS.format(version=KFLEET_VERSION, flavor=FLAVOR),
        "queues.yaml": _queues(is_single=is_single),
        "tenants.yaml": _tenants(is_single=is_single),
    }
    modeline = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    return {name: modeline + text for name, text in texts.items()}


_FLEET = """\
# The fleet as a whole: what kfleet may do on the clusters. Every setting has a careful default.
#
#   kfleet explain fleet.policy      what else can be said here
apiVersion: {version}
kind: Fleet
metadata:
  name: {name} # marks the objects of this fleet on the clusters: choose it before the first apply
spec:
  policy:
    conflicts: refuse # where another tool owns a field, say so and write nothing
    adopt: unowned # take over objects that nobody else claims
    prune:
      maxDeletes: 10 # a run that would delete more than this is refused
"""


def _clusters(members: Sequence[Member], *, is_single: bool) -> str:
    head = _ONE_CLUSTER if is_single else _SEVERAL_CLUSTERS
    documents = [
        _CLUSTER.format(
            version=KFLEET_VERSION, name=_scalar(member.name), role=member.role, context=_scalar(member.context)
        )
        for member in members
    ]
    return head + _CLUSTERS_NEXT.format(newest=NEWEST) + "---\n".join(documents)


_ONE_CLUSTER = """\
# The cluster. A standalone one takes jobs and runs them itself; with more clusters, one becomes the manager, which
# takes the jobs in, and the others its workers.
"""
_SEVERAL_CLUSTERS = """\
# The clusters. The manager takes the jobs in and sends them to the workers, which run them.
"""
_CLUSTERS_NEXT = """\
#
# access.context is a context of your kubeconfig ($KUBECONFIG, or ~/.kube/config). Nothing else of it is written here.
#
# What to change next:
# - metadata.labels, such as {{site: lyon, accelerator: a100}}: flavors and queues choose clusters by them;
# - spec.kueue.version, such as "0.16", where a cluster runs an older Kueue than {newest}.
#
#   kfleet explain cluster           what else can be said here
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
# - the numbers: what the nodes of one cluster hold together;
# - one flavor for each class of nodes, for example those with GPUs, told apart by nodeLabels.
#
#   kfleet explain flavor            what else can be said here
#   kfleet explain flavor.capacity   where the numbers can come from
apiVersion: {version}
kind: Flavor
metadata:
  name: {flavor}
spec:
  # clusters: {{matchLabels: {{site: lyon}}}} # only clusters with this label; otherwise all that run jobs
  # nodeLabels: {{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}} # only nodes with this label; otherwise all
  capacity:
    source: static # as written below
    resources:
      cpu: "16"
      memory: 64Gi
      # nvidia.com/gpu: "8"
"""


def _queues(*, is_single: bool) -> str:
    where = "each cluster that runs its jobs" if is_single else "the manager and on each worker"
    dispatch = "" if is_single else f"  dispatch: multikueue {_DISPATCH}\n"
    return _QUEUES.format(version=KFLEET_VERSION, queue=QUEUE, flavor=FLAVOR, where=where, dispatch=dispatch)


_DISPATCH = "# jobs are submitted on the manager; the first worker that has room runs them"
_QUEUES = """\
# Queues. A queue becomes a ClusterQueue on {where}.
#
# What to change next:
# - a queue for each group that shares the clusters; shares of one flavor add up to at most 100%;
# - the same cohort in queues that may lend each other what they do not use.
#
#   kfleet explain queue             what else can be said here
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


def _tenants(*, is_single: bool) -> str:
    where = "the cluster" if is_single else "the manager and on each worker"
    return _TENANTS.format(version=KFLEET_VERSION, team=TEAM, queue=QUEUE, where=where)


_TENANTS = """\
# Teams. The namespaces of a team, each with a LocalQueue, are made on {where}.
# A job of the team says which queue it goes to by a label:
#
#   metadata:
#     namespace: {team}
#     labels: {{kueue.x-k8s.io/queue-name: {queue}}}
#
# What to change next: the name and the namespaces, and one document for each team.
#
#   kfleet explain tenant            what else can be said here
apiVersion: {version}
kind: Tenant
metadata:
  name: {team}
spec:
  namespaces: [{team}]
  queue: {queue}
"""


def _scalar(text: str) -> str:
    """The text so that every YAML reader takes it for a text: names of contexts hold whatever a user typed."""
    if _PLAIN.fullmatch(text) and text not in _YAML_WORDS:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', width=float("inf"))
    return quoted.strip()
