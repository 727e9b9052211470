"""A real Slurm on this machine, for as long as a test wants it."""
