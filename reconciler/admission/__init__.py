"""Whether Kueue would admit a job and, if not, the reason."""
