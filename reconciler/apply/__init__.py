"""Stage 6: apply executes a plan. It decides nothing."""
