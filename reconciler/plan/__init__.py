"""Stage 5: predictions become a Plan: the change of each object, its reason, the order, and the refusals."""
