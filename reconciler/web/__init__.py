"""The page: one view of the fleet in a browser, read-only."""
