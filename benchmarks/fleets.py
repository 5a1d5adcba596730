"""Fleets of any size, as files."""

from pathlib import Path

HEADER = "apiVersion: kfleet.dev/v1alpha1\n"
KUEUE = "apiVersion: kueue.x-k8s.io/v1beta2\n"


def write_fleet(folder: Path, *, workers: int, queues: int) -> int:
    """A fleet with one flavor and one tenant per queue; returns the number of documents."""
    documents = [f"{HEADER}kind: Fleet\nmetadata: {{name: bench}}\n"]
    documents.append(f"{HEADER}kind: Cluster\nmetadata: {{name: hub}}\nspec: {{role: manager}}\n")
    documents += [_worker(number) for number in range(workers)]
    documents += [_flavor(number) for number in range(queues)]
    documents += [_queue(number) for number in range(queues)]
    documents += [_tenant(number) for number in range(queues)]
    _write(folder, documents)
    return len(documents)


def write_native_fleet(folder: Path, *, contexts: list[str], kubeconfig: Path, objects: int) -> int:
    """On each cluster a third each of flavors, queues with 4 flavors x 3 resources, and LocalQueues, as they are."""
    third = objects // 3
    everywhere = "annotations: {kfleet.dev/clusters: all}"
    documents = [f"{HEADER}kind: Fleet\nmetadata: {{name: bench}}\nspec: {{policy: {{prune: {{maxPercent: 100}}}}}}\n"]
    for context in contexts:
        access = f"{{context: {context}, kubeconfig: {kubeconfig}}}"
        documents.append(
            f"{HEADER}kind: Cluster\nmetadata: {{name: {context}}}\nspec: {{role: standalone, access: {access}}}\n"
        )
    documents += [
        f"{KUEUE}kind: ResourceFlavor\nmetadata: {{name: bench-{n:04}, {everywhere}}}\n"
        f"spec: {{nodeLabels: {{class: c{n}}}}}\n"
        for n in range(third)
    ]
    documents += [_native_queue(number, third) for number in range(third)]
    documents += [
        f"{KUEUE}kind: LocalQueue\nmetadata: {{name: bench-{n:04}, namespace: default, {everywhere}}}\n"
        f"spec: {{clusterQueue: bench-{n:04}}}\n"
        for n in range(third)
    ]
    _write(folder, documents)
    return 3 * third


def _worker(number: int) -> str:
    return f"""{HEADER}kind: Cluster
metadata: {{name: w{number:03}, labels: {{site: s{number % 4}}}}}
spec: {{role: worker, kueue: {{version: "0.19"}}}}
"""


def _flavor(number: int) -> str:
    return f"""{HEADER}kind: Flavor
metadata: {{name: flavor-{number:04}}}
spec:
  nodeLabels: {{class: c{number}}}
  capacity: {{source: static, resources: {{cpu: "640", memory: 4Ti, nvidia.com/gpu: "64"}}}}
"""


def _queue(number: int) -> str:
    return f"""{HEADER}kind: Queue
metadata: {{name: queue-{number:04}}}
spec:
  cohort: team-{number % 50}
  quota:
  - flavor: flavor-{number:04}
    resources: {{cpu: 60%, memory: 60%, nvidia.com/gpu: "32"}}
    borrowingLimit: {{nvidia.com/gpu: "8"}}
  preemption: {{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}}
"""


def _tenant(number: int) -> str:
    return f"""{HEADER}kind: Tenant
metadata: {{name: team-{number:04}}}
spec: {{namespaces: [team-{number:04}], queue: queue-{number:04}}}
"""


def _native_queue(number: int, flavors: int) -> str:
    chosen = [f"bench-{(number + offset) % flavors:04}" for offset in range(4)]
    entries = "".join(
        f"""    - name: {name}
      resources:
      - {{name: cpu, nominalQuota: "{10 + number}"}}
      - {{name: memory, nominalQuota: {16 + number}Gi}}
      - {{name: nvidia.com/gpu, nominalQuota: "{number % 8}"}}
"""
        for name in chosen
    )
    return f"""{KUEUE}kind: ClusterQueue
metadata: {{name: bench-{number:04}, annotations: {{kfleet.dev/clusters: all}}}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
{entries}"""


def _write(folder: Path, documents: list[str]) -> None:
    """A hundred documents to a file, as people split them."""
    target = folder / "fleet"
    target.mkdir(parents=True, exist_ok=True)
    for number in range(0, len(documents), 100):
        (target / f"part-{number // 100:04}.yaml").write_text("---\n".join(documents[number : number + 100]))
