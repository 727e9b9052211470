"""The network of a jail: which hosts can be reached, and what sees to it."""
