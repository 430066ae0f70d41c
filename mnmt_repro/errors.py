"""What users are meant to read: the one exception, and lines on standard error."""

from __future__ import annotations

import sys


class InputError(ValueError):
    """A mistake in what the user gave: a file, a line, an option.

    The message names the file, line or option at fault and how to mend it. The command line prints
    it on one line and exits with status 2; anything else that is raised is a bug of ours.
    """


def tell(*lines: str) -> None:
    """Print lines to standard error, each under the name of the program."""
    for line in lines:
        print(f"mnmt-repro: {line}", file=sys.stderr)


def note(*notes: str) -> None:
    """Print notes to standard error: what would not be expected, and is no mistake."""
    tell(*(f"note: {each}" for each in notes))
