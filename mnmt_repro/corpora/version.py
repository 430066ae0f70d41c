"""The version of what this room makes of the same text and settings.

Part of a run's identity (`runs.code_version`, which says when to raise it) and of the names
under which vocabularies are kept on disk.
"""

CORPORA_VERSION = 1
