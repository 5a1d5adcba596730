"""The line, one file and one function per stage. `line` is the order; every command and the controller call it there.

    load      git           ──► Revision      spec, what it renders by itself, lint findings
    observe   clusters, NATS ─► Snapshot      what later stages need to know about clusters and buses
    render    pure          ──► Rendered      the objects of each cluster
    compare   clusters      ──► Comparison    what each object is and would become
    plan      pure          ──► Plan          changes, guards, preflight, placements
    apply     clusters      ──► outcomes      the lease, the ledger, objects, ClusterMetrics
    report    pure          ──► health issues what does not work although it was written; `apply --wait` asks clusters

`capacity` and `objects` hold the parts of `observe` that talk to message buses, and that list queues and jobs.
`admission` reads for `kfleet check --live`, `contexts` reads clusters without a fleet, `revisions` reads two commits.
"""
