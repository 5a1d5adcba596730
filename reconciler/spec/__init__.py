"""Stage 1: parses the files of one revision into a FleetSpec, or reports every problem."""
