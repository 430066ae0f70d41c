"""The one exception that users are meant to read."""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in what the user gave: a file, a line, an option.

    The message names the file, line or option at fault and how to mend it. The command line prints
    it on one line and exits with status 2; anything else that is raised is a bug of ours.
    """
