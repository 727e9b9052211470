"""Calls that neither Landlock nor a filter can judge: the kernel hands them over, they are done here or refused."""
