"""Durable memory: raw transcripts and markdown pages in one folder, one role that writes, everybody asks.

Import from the modules: ``place`` (where it is and who writes), ``actions`` (what a role can do), ``command`` (the
shell commands). Nothing is imported here, so that a seat that only checks a path loads no database.
"""
