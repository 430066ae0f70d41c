"""The command line, `mnmt-repro`: a module for each command, whose `add(commands)` declares it.

Further commands are registered, such as those that verify claims and build the book.

No module here imports torch before its command runs, so that `--help` is quick and the base tier
can fit laws and build the book.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mnmt_repro import __version__
from mnmt_repro.cli import (
    compare,
    data,
    evaluate,
    export,
    fit,
    recommend,
    retrain,
    sweep,
    train,
    translate,
    upgrade,
)
from mnmt_repro.cli.options import HelpFormatter
from mnmt_repro.errors import InputError
from mnmt_repro.registered import COMMANDS, registered

TRAIN_TIER = ("torch", "sentencepiece", "sacrebleu", "safetensors", "google")
"""Packages that only the extra `train` installs; protobuf is imported as `google`."""

EXAMPLES = """\
a first run, under two minutes, nothing to download:
  mnmt-repro train
  mnmt-repro evaluate runs/FOLDER_THAT_TRAIN_NAMES

`mnmt-repro COMMAND --help` explains a command and shows an example."""


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="mnmt-repro",
        description="Scaling laws for multilingual translation, and upgrades of trained models.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = (
        data,
        train,
        upgrade,
        translate,
        evaluate,
        compare,
        export,
        fit,
        recommend,
        sweep,
        retrain,
        *registered(COMMANDS).values(),
    )
    for module in modules:
        module.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status.

    0: done; 1: something did not hold (a failed run, a verdict that no longer follows, a disk that
    is full); 2: a mistake in what was given, told on one line; 130: interrupted.
    """
    options = build_parser().parse_args(arguments)
    resumes = options.command in ("train", "sweep", "retrain")
    then = "; the same command goes on from the last checkpoint, if there is one" * resumes
    try:
        return options.act(options)
    except InputError as error:
        print("mnmt-repro: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in TRAIN_TIER:
            raise
        print(
            f"mnmt-repro: `{options.command}` needs {missing}, which is not installed: "
            "`make install` in the project's folder, or pip install -e '.[train]'",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing more can be printed, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        why = error.strerror or error
        print(f"mnmt-repro: {error.filename or 'writing'}: {why}{then}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"mnmt-repro: interrupted{then}", file=sys.stderr)
        return 130
