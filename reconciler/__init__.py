"""kfleet reconciles Kueue queues across many Kubernetes clusters from a git repository.

    load ──► observe ──► render ──► compare ──► plan ──► apply ──► report
    look     look        decide     look        decide   act       decide

Each command and the controller run a prefix of this line. What decides is a pure function over frozen values: no clock,
no network, no files. What looks or acts is thin. A test enforces both, and the direction of imports.

The engine has a room per stage and knows no feature:

| room | what it is |
|---|---|
| `decoding`, `errors`, `objects`, `quantity`, `text` | what all rooms share: nouns, and readers of texts |
| `spec` | the files of one revision become a FleetSpec, or a list of everything that is wrong with them |
| `kueue` | what Kueue knows: kinds, versions, rules, quota arithmetic, the meaning of conditions, its Configuration |
| `snapshot` | what was observed of clusters and message buses |
| `render` | FleetSpec and Snapshot become the objects of each cluster |
| `state` | what an object is and would become: managedFields, ApplySet, tracking metadata, dry run |
| `plan` | what happens to which object, why, in which order, and what a guard refuses |
| `apply` | writes what a plan says; this room decides nothing |
| `report` | plan and outcome as text, exit code and health |
| `lint` | what is wrong or suspicious about a spec, by named rules |
| `scheduling` | what Kueue's scheduler does with workloads, by arithmetic |
| `effects` | what a plan does to teams and to their jobs |
| `admission` | whether Kueue would admit a job |
| `diff` | what a change in git means for the clusters |
| `view` | clusters, queues, jobs, pools and tenants as they are now: what `kfleet get` and the page show |
| `why` | why a job waits, runs or is not queued: its whole story |

A feature has a room of its own, with the same file names inside (observe, render, plan, ...):

| room | what it is |
|---|---|
| `capacity` | live capacity of nodes, ClusterMetrics and pools on NATS becomes quota |
| `multikueue` | queues that MultiKueue dispatches, credentials of the workers, removal of workers |
| `kubestellar` | queues whose jobs KubeStellar downsyncs, and where each job goes |
| `kueue_config` | Kueue's own Configuration, and its rollout |
| `kueue_install` | Kueue itself: which release runs on which cluster, and how the next one gets there |
| `skypilot`, `flux`, `monitoring` | what these systems need beside queues |
| `importer` | a fleet from what live clusters have, and the proof that it changes nothing |
| `uninstall` | the end of a fleet: its objects released or deleted |
| `doctor` | what is wrong or risky with the Kueue of live clusters |

Everything else is about the outside:

| room | what it is |
|---|---|
| `clients` | API servers, git, forges, NATS, HTTP, the lease: one system per file |
| `pipeline` | the line |
| `controller` | `kfleet run`: the line again and again |
| `web` | the page: views in a browser, for those who may see them |
| `cli` | arguments in, results on stdout, an exit code |
| `sandbox` | a real fleet on one machine, for tests, the demo and users |
| `simulate` | the twin of a cluster in a sandbox, and what a change does to its jobs there |
"""
