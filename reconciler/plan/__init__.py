"""Stage 5: predictions become a Plan: what happens to which object, why, in which order, and what is refused."""
