"""The Flux Operator: MiniClusters and the queues that they go through."""
