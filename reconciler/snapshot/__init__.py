"""The observations of clusters and message buses, as one value."""
