"""One document of each kind that uses every field of its schema."""

from typing import Any

from tests import fast_yaml

_TEXT = """\
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: research, labels: {a: b}, annotations: {kfleet.dev/lint-ignore: "KF001: tried"}}
spec:
  suspend: true
  homeCluster: east
  lint: [{rule: KF013, level: error, reason: upgraded}]
  defaultClusters: [{path: all.yaml, clusters: all}]
  policy:
    conflicts: take
    adopt: always
    prune: {maxDeletes: 3, maxPercent: 5}
    disruption: {maxEvictions: 4}
    capacity: {headroom: 5%, staleAfter: 2m, dropAfter: 1h30m, shrinkDelay: 500ms, poolLabels: [site, example.org/]}
  nats:
  - {servers: [nats://a], user: u, password: {env: E}, token: {env: E}, credentials: {env: E},
     tls: {ca: {env: E}, certificate: {env: E}, key: {env: E}}}
  - {servers: [nats://b], password: {file: f}, token: {file: f}, credentials: {file: f},
     tls: {ca: {file: f}, certificate: {file: f}, key: {file: f}}}
  - servers: [nats://c]
    password: {secretRef: {namespace: keys, name: nats, key: text}}
    token: {secretRef: {namespace: keys, name: nats, key: text}}
    credentials: {secretRef: {namespace: keys, name: nats, key: text}}
    tls:
      ca: {secretRef: {namespace: keys, name: nats, key: text}}
      certificate: {secretRef: {namespace: keys, name: nats, key: text}}
      key: {secretRef: {namespace: keys, name: nats, key: text}}
  kubestellar:
    version: "0.26"
    selectBy: [name, location-group]
    its: {access: {secretRef: {namespace: keys, name: its, key: kubeconfig}}}
    placement: {rule: weights, weights: {east: 2}, moveAfter: 5m}
    kinds:
    - {apiVersion: example.org/v1, kind: Train, plural: trains, templates: [spec.template], suspend: spec.hold}
  masterQueues: {fromCluster: true}
  monitoring: {dashboards: true, alerts: configMap, namespace: monitoring, labels: {a: b}, clusters: [manager]}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: east, labels: {site: cnaf}, annotations: {note: x}}
spec:
  role: worker
  access: {secretRef: {namespace: keys, name: east, key: config}}
  drain: true
  suspend: true
  publishMetrics: true
  credentials: {lifetime: 24h, server: "https://10.0.0.4:6443"}
  kueue:
    namespace: batch
    version: v0.16.2
    config: {fairSharing: {}}
    install: {version: 0.16.2, values: {controllerManager: {replicas: 2}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {name: a100, labels: {a: b}, annotations: {note: x}}
spec:
  clusters:
    matchLabels: {site: cnaf}
    matchExpressions: [{key: gpu, operator: In, values: [a100, h100]}, {key: spot, operator: DoesNotExist}]
  nodeLabels: {nvidia.com/gpu.product: A100}
  nodeTaints: [{key: gpu, value: present, effect: NoSchedule}]
  tolerations: [{key: gpu, operator: Equal, value: present, effect: NoExecute, tolerationSeconds: 30}]
  topologyName: racks
  capacity: {source: static, headroom: 5%, resources: {cpu: 64, memory: 512Gi, nvidia.com/gpu: "8"}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {name: research, labels: {a: b}, annotations: {note: x}}
spec:
  cohort: science
  clusters: {matchLabels: {site: cnaf}}
  dispatch: multikueue
  quota:
  - flavor: a100
    resources: {cpu: 60%, memory: 0.5, nvidia.com/gpu: "32"}
    borrowingLimit: {cpu: 10}
    lendingLimit: {cpu: 5%}
  managerQuota:
  - flavor: a100
    resources: {cpu: 600}
    borrowingLimit: {cpu: 10}
    lendingLimit: {cpu: 5}
  preemption:
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor, preference: PreemptionOverBorrowing}
  queueingStrategy: StrictFIFO
  stopPolicy: Hold
  namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: b, operator: NotIn, values: [c]}]}
  admissionChecks: [capacity, {name: provisioning, onFlavors: [a100]}]
  fairSharing: {weight: "2"}
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
  drainOnDelete: true
  quotaManagement: Automated
---
apiVersion: kfleet.dev/v1alpha1
kind: Tenant
metadata: {name: team1, labels: {a: b}, annotations: {note: x}}
spec:
  namespaces: [team1, team1-ci]
  queue: research
  localQueue: jobs
  fairSharing: {weight: 3}
  stopPolicy: HoldAndDrain
  namespaceLabels: {team: a}
  members:
  - {kind: Group, name: devs}
  - {kind: ServiceAccount, name: ci, namespace: build, role: admin}
  skypilot:
    version: "0.10.3"
    config: {kubernetes: {ports: ingress}}
    provisioning:
      className: queued.example.org
      managedResources: [cpu]
      parameters: {a: b}
      podSetMergePolicy: IdenticalPodTemplates
---
apiVersion: kfleet.dev/v1alpha1
kind: Overlay
metadata: {name: dev, labels: {a: b}, annotations: {note: x}}
spec:
  base: [small]
  patches:
  - target: {labelSelector: a=b, kind: Queue, name: research, group: kfleet.dev, namespace: ""}
    merge: {spec: {stopPolicy: Hold}}
  - target: {kind: Queue, name: research}
    json6902: [{op: add, path: /spec/cohort, value: x}, {op: move, from: /a, path: /b}]
  remove: [{labelSelector: a=b, kind: Cluster, name: west, group: kfleet.dev, namespace: ""}]
---
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools, labels: {a: b}, annotations: {kfleet.dev/clusters: east}, finalizers: [x]}
spec:
  template:
    cohort: pools
    flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
    preemption:
      borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
      reclaimWithinCohort: Any
      withinClusterQueue: LowerOrNewerEqualPriority
    stopPolicy: StopAndHold
    queueingStrategy: StrictFIFO
    namespaceSelector: {matchLabels: {team: a}, matchExpressions: [{key: b, operator: In, values: [c]}]}
    unknown: dropped
  flavors:
  - name: nats
    nominalQuota: {cpu: 10, memory: 64Gi, pods: 50, nvidia.com/gpu: 4}
    canLendTo: [{queue: branch, lendingLimit: {cpu: "5", memory: 1Gi, pods: 5, nvidia.com/gpu: 1}}]
    natsFlavor:
      natsConnector: nats://user:secret@nats:4222
      natsSubject: interlink.resources
      virtualNode: vk
      pools: [cnaf]
      poolTimeout: 65
  - name: pattern
    natsFlavor: {natsConnector: "nats://nats:4222", natsSubject: interlink.resources, poolRegExp: ^podman-}
  - name: local
    nominalQuota: {}
    localFlavor: {}
"""
WHOLE: dict[str, Any] = {each["kind"]: each for each in fast_yaml.safe_load_all(_TEXT)}
