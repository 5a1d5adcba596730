"""What a change in git means for the clusters."""
