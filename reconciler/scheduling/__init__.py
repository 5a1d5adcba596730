"""What Kueue's scheduler does with workloads, by arithmetic: its order, flavors, preemption and fair sharing."""
