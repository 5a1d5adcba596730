"""FleetSpec and Snapshot become the objects of each cluster."""
