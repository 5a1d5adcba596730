"""kfleet keeps the batch queues of many Kubernetes clusters the way a git repository says.

    git ──► spec ──► observations ──► desired ──► predict ──► plan ──► apply ──► status
            decide   look             decide      look        decide   act       decide

Every way to run kfleet is a prefix of this line. Deciding stages are pure functions over frozen values: no clock, no
network, no files. Looking and acting stages are thin. A test enforces the direction of imports and the purity.

| package | what it is |
|---|---|
| `errors`, `objects` | the nouns that all stages share |
| `edges` | the outside world, one system per file |
| `cli` | arguments in, results on stdout, an exit code |
| `sandbox` | a real fleet on one machine, for tests, demo and users |
"""
