"""The layered-config engine and the files it ships."""
