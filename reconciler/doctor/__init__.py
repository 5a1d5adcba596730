"""What is wrong, risky or wasteful with the Kueue of live clusters, without a fleet. Nothing is written anywhere."""
