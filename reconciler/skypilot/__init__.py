"""SkyPilot: its API server's configuration, and the provisioning of nodes."""
