"""A real fleet on one machine, without containers: control planes, Kueue, nodes and NATS, all on loopback."""
