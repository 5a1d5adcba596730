"""A fleet written from live clusters: nothing that runs there changes when it is applied for the first time."""
