"""UNIX users that agents run as."""
