"""One list of refused system calls, and the ready filters made from it."""
