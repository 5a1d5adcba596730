"""KubeStellar: queues whose jobs it downsyncs, and where each job goes."""
