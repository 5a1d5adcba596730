"""`kfleet run`: the pipeline in a loop."""
