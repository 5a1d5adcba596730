"""Clients of external systems, one system per file."""
