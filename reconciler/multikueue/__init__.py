"""MultiKueue: the manager's queues, its credentials for the workers, and workers that are removed."""
