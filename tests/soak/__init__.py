"""A random walk: commits, jobs and faults in any order on real clusters, against rules that never bend.

A walk is decided by its seed. It takes some steps, then makes peace: every fault is lifted, and kfleet has to bring
the fleet to what git says. Beside the walk a recorder looks at the clusters themselves, not through kfleet, and writes
down what must not happen. `make soak` walks for as long as it is told; the tests walk a few short ones.
"""
