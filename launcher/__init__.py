"""argv → settings → policy → plan → exec: the launcher, outside the jail."""
