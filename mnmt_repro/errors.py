"""What users are meant to read: the one exception, lines on standard error, and remedies."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Iterable, Sequence


class InputError(ValueError):
    """A mistake in what the user gave: a file, a line, an option.

    The message names the file, line or option at fault and how to mend it. The command line prints
    it on one line and exits with status 2; anything else that is raised is a bug of ours.
    """


def missing_extra(error: ImportError, extra: str) -> InputError:
    """What to raise where a package of an extra cannot be imported.

    `pip` takes the name for what is installed, a wheel or a checkout: no index has it.
    """
    return InputError(f"needs the extra {extra} ({error}): pip install 'mnmt-repro[{extra}]'")


def tell(*lines: str) -> None:
    """Print lines to standard error, each under the name of the program."""
    for line in lines:
        print(f"mnmt-repro: {printable(line)}", file=sys.stderr)


_ESCAPED = ("Cc", "Cf", "Cs")


def printable(text: str) -> str:
    r"""Text in which characters that a terminal obeys, or that hide others, are escaped.

    So are bytes of a file's name that are no characters.

    >>> printable("a\x1b[2J\u202eb")
    'a\\x1b[2J\\u202eb'
    """
    return "".join(
        repr(each)[1:-1] if unicodedata.category(each) in _ESCAPED and each != "\n" else each
        for each in text
    )


def show(text: str) -> None:
    """Print to standard output what holds words of a user's files; see `printable`."""
    print(printable(text))


def note(*notes: str) -> None:
    """Print notes to standard error: what would not be expected, and is no mistake."""
    tell(*(f"note: {each}" for each in notes))


def remedy(wanted: str, known: Iterable[str], most: int = 1) -> str:
    """What to write instead of an unknown name: the nearest known ones, or which there are.

    >>> remedy("Sead", ["seed", "steps"]), remedy("x", ["seed", "steps"])
    ('did you mean seed?', 'there are seed, steps')
    """
    known = list(known)
    names = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(wanted.casefold(), names, most)
    if near:
        return f"did you mean {' or '.join(names[each] for each in near)}?"
    return listed(known)


def listed(names: Sequence[str], most: int = 30) -> str:
    """Which names there are; of many, the first ones.

    >>> listed(["deu", "eng"]), listed("abcd", 2), listed([])
    ('there are deu, eng', 'there are a, b and 2 more', 'there are none')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are {', '.join(names[:most]) or 'none'}{more}"
