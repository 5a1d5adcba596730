"""What a plan does to teams and to their jobs: quota before and after, and the workloads that gain or lose."""
