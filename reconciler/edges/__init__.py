"""The outside world, one system per file. Library exceptions end here, as errors of our own."""
