"""kfleet keeps the batch queues of many Kubernetes clusters the way a git repository says.

    git ──► spec ──► observations ──► desired ──► predict ──► plan ──► apply ──► status
            decide   look             decide      look        decide   act       decide

Every way to run kfleet is a prefix of this line, and `pipeline` is the line as a few short functions. Deciding stages
are pure functions over frozen values: no clock, no network, no files. Looking and acting stages are thin. A test
enforces the direction of imports and the purity.

| package | what it is |
|---|---|
| `errors`, `objects`, `quantity`, `ports` | the nouns that all stages share, and the protocols of the outside world |
| `kueue` | what Kueue itself knows: kinds, versions, rules, quota arithmetic, meaning of conditions |
| `spec` | 1. files of one revision become a FleetSpec, or every problem that they have |
| `observations` | 2. clusters and the message bus are looked at; `observed` holds what was seen |
| `capacity` | how much there is: sightings, the ledger that remembers them, and what of that counts now |
| `desired` | 3. FleetSpec and what was seen become the objects of each cluster |
| `placement` | which cluster gets a job that KubeStellar carries, and why |
| `lint` | what is wrong or suspicious about a spec and its objects, by named rules |
| `checking` | whether Kueue would admit a job, by what it reads in a manifest and how its queues would answer |
| `compare` | what a change in git means for the clusters, by two revisions that were computed |
| `ownership` | whose is what: fields of an object, objects of a cluster |
| `predict` | 4. clusters are looked at, and asked where looking is not enough; `prediction` holds the answers |
| `plan` | 5. what happens to which object, why, in which order, and what is refused |
| `apply` | 6. a plan is carried out; `outcome` holds what became of it, `lease` keeps a second writer out |
| `texts` | values on one line, and comments that fit into a pull request |
| `status`, `health` | 7. plan and outcomes as text, the exit code, and what ails the objects |
| `leavers` | workers on their way out, and what still runs there |
| `credential`, `links`, `preflight` | the manager's logins to its workers, and what keeps a fleet from working |
| `rollout` | Kueue's own Configuration, as seen and as it should come into effect |
| `rights` | what kfleet itself may do on a cluster |
| `argocd` | what Argo CD tells its plugin, and what it is told |
| `pipeline` | the line |
| `run` | the line again and again, as a controller |
| `edges` | the outside world, one system per file |
| `cli` | arguments in, results on stdout, an exit code |
| `sandbox` | a real fleet on one machine, for tests, demo and users |
"""
