"""The twin: a snapshot's queues and workloads on a real Kueue in a sandbox, and what a change does to them there."""
