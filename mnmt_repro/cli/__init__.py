"""The library's commands: a module for each, with its `act`, its options and `EXAMPLES`.

`mnmt_repro.__main__` adds those of the companion, which verify claims and build the book. Their
modules are always imported, so they import little before they run.

A module is imported when its command is asked for, so that `--help` is quick. None imports torch
before its command runs, so that the base tier can fit laws and build the book.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import cast

from mnmt_repro import __version__
from mnmt_repro.cli.options import PURPOSES, HelpFormatter, Parser, add_command
from mnmt_repro.errors import InputError, missing_extra, remedy, tell

TRAIN_TIER = ("torch", "sentencepiece", "sacrebleu", "safetensors", "google")
"""Packages that only the extra `train` installs; protobuf is imported as `google`."""

_NO_MEMORY = re.compile("MemoryError|allocate memory|out of memory|map segment|new thread")
"""In what Python, the system, torch and the loader of libraries raise when memory runs out."""

EXAMPLES = """\
a first run, under two minutes, nothing to download:
  mnmt-repro train
  mnmt-repro evaluate runs/FOLDER_THAT_TRAIN_NAMES

laws of your own losses, and a page for a reviewer of this reproduction:
  mnmt-repro fit losses.csv
  mnmt-repro report

`mnmt-repro COMMAND --help` explains a command and shows an example."""


def build_parser(
    asked: str | None = None, *, commands_beside: Sequence[ModuleType] = ()
) -> argparse.ArgumentParser:
    """All commands and their options.

    Parameters
    ----------
    asked
        Leave out the options of all commands but this one, and import no module for them, so that
        the help is quick.
    commands_beside
        Modules of further commands; each has `add`.
    """
    parser = Parser(
        prog="mnmt-repro",
        description="Scaling laws for multilingual translation, and upgrades of trained models.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in PURPOSES.items():
        if asked in (None, name):
            module = import_module(f"mnmt_repro.cli.{name}")
            command = add_command(
                commands,
                name,
                examples=module.EXAMPLES,
                act=module.act,
                more=getattr(module, "MORE", ""),
                read=getattr(module, "READ", None),
                usual=getattr(module, "USUAL", None),
            )
            if name == "data":
                module.add_parts(command)
        else:
            commands.add_parser(name, help=purpose)
    for module in commands_beside:
        module.add(commands)
    return parser


def main(
    arguments: Sequence[str] | None = None,
    parser: Callable[[str], argparse.ArgumentParser] = build_parser,
) -> int:
    """Run the command line; return its exit status.

    0: done; 1: something did not hold (a failed run, a verdict that no longer follows, a disk that
    is full); 2: a mistake in what was given, told on one line; 130: interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    asked = next((word for word in arguments if not word.startswith("-")), "")
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files are printed byte for byte
        sys.stdout.reconfigure(errors="surrogateescape")
    resumes = asked in ("train", "sweep", "retrain")
    then = "; the same command goes on from the last checkpoint, if there is one" * resumes
    try:
        options, unknown = parser(asked).parse_known_args(arguments)
        if unknown:
            known = f"is no option; {remedy(unknown[0], options.parser._option_string_actions)}"
            wrong = known if unknown[0].startswith("-") else "is more than it takes"
            options.parser.error(f"{unknown[0]} {wrong}")
        return cast(int, options.act(options))
    except InputError as error:
        tell(" ".join(str(error).split()))
        return 2
    except UnicodeEncodeError as error:
        character = ascii(error.object[error.start])
        tell(
            f"{character} cannot be written in {error.encoding}: rename the file whose name has it"
            + ", or set PYTHONUTF8=1" * (error.encoding != "utf-8")
        )
        return 2
    except RecursionError:
        tell("what was given is nested too deeply, or contains itself; write it without")
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing more can be printed, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        # A library that does not fit into memory is no missing one.
        if _NO_MEMORY.search(repr(error)):
            tell(f"there is not enough memory; give smaller numbers or less text{then}")
            return 1
        if isinstance(error, OSError):
            tell(f"{error.filename or 'writing'}: {error.strerror or error}{then}")
            return 1
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        if missing not in TRAIN_TIER or not isinstance(error, ModuleNotFoundError):
            raise
        tell(f"`{asked}` {missing_extra(error, 'train')}")
        return 2
    except KeyboardInterrupt:
        tell(f"interrupted{then}")
        return 130
