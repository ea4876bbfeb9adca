"""Who computes: threads, processes and the workers of a cluster."""
