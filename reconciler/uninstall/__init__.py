"""Ending a fleet: its objects are released and stay, or are deleted in the safe order."""
