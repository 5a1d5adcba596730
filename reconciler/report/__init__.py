"""Stage 7: reports a plan and its outcome to users and to other programs."""
