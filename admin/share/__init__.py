"""Directories that people share with their bots."""
