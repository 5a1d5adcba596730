"""Capacity: what was observed, what the ledger remembers of it, and which part counts now. Arithmetic alone.

An observation yields samples. The ledger keeps the last sample of each source and decides by its age what counts. The
time is always an argument.
"""
