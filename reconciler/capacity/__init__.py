"""How much there is: what was seen, what is remembered of it, and what of that counts now. Arithmetic alone.

A look at the world gives sightings; the ledger remembers the last one of every source, and decides by their age what
counts. The time is always an argument.
"""
