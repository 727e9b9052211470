"""The CA bundle: the system's roots and the site's own, as one file that every program inside is told of.

attach.py policy → policy with the bundle · kept.py what earlier launches made, and is it still true · sources.py the files it is made of ·
pem.py bytes → blocks · build.py blocks → bundle, with a real parser, loaded when a bundle must be made and never else.
"""
