"""The state of a fleet as one value, computed from live objects: what `kfleet get` and the page show."""
