"""Why a job waits, runs or is not queued: its whole story, from the live objects of all clusters."""
