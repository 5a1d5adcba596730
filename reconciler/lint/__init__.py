"""Stage 2, after parsing: finds problems of a fleet that no schema can detect, before any cluster is contacted."""
