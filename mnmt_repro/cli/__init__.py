"""The library's commands: a module for each, whose `add(commands)` declares it.

`mnmt_repro.__main__` adds those of the companion, which verify claims and build the book. Their
modules are always imported, so they import little before they run.

A module is imported when its command is asked for, so that `--help` is quick. None imports torch
before its command runs, so that the base tier can fit laws and build the book.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn, cast

from mnmt_repro import __version__
from mnmt_repro.cli.options import HelpFormatter
from mnmt_repro.errors import InputError, tell
from mnmt_repro.option_fields import remedy
from mnmt_repro.repository import ARCHIVE

PURPOSES = {
    "data": "list corpora, check texts, fetch public losses, train or adopt a vocabulary",
    "train": "train a translation model; the same command again goes on where it stopped",
    "upgrade": (
        "give a trained model a vocabulary for more languages, more width and more depth; `train "
        "--continue-from` trains it further"
    ),
    "translate": "translate lines from standard input to standard output with a trained model",
    "evaluate": (
        "score a trained model: nats per target token, overall and per domain, and with --decode "
        "BLEU, chrF, chrF++ and spBLEU"
    ),
    "compare": (
        "test whether one model is better than another, or whether it is chance: paired bootstrap "
        "over the sentences of each test set, paired t-test over the directions"
    ),
    "export": (
        "write a trained or upgraded model, with its tokenizer, as a folder that transformers "
        "loads (hf) or that CTranslate2 runs (ct2)"
    ),
    "fit": (
        "fit a scaling law to a table of losses, each pair apart: by size (Eq. 3), by size and "
        "weight where a column p has several weights (Eq. 7), or by size and data"
    ),
    "recommend": (
        "recommend the weights of a mixture at one model size, by the law of Eqs. 11 and 12 "
        "fitted to each pair"
    ),
    "sweep": (
        "train what is missing of declared cohorts or of a grid of your own, or decode or analyse "
        "finished runs; without a name, list the cohorts"
    ),
    "retrain": (
        "train stored runs again on this machine and compare their test losses with the stored "
        "ones; without a run, list the quickest"
    ),
}
"""What each command does, in the order of the help; `mnmt_repro.cli.NAME` declares it."""

TRAIN_TIER = ("torch", "sentencepiece", "sacrebleu", "safetensors", "google")
"""Packages that only the extra `train` installs; protobuf is imported as `google`."""

EXAMPLES = """\
a first run, under two minutes, nothing to download:
  mnmt-repro train
  mnmt-repro evaluate runs/FOLDER_THAT_TRAIN_NAMES

laws of your own losses, and a page for a reviewer of this reproduction:
  mnmt-repro fit losses.csv
  mnmt-repro report

`mnmt-repro COMMAND --help` explains a command and shows an example."""


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line; the usage of all options would hide it."""

    def error(self, message: str) -> NoReturn:
        if command := self.prog.removeprefix("mnmt-repro").strip():
            raise InputError(f"{command}: {message}")
        raise InputError(f"{message}; see mnmt-repro --help")


def build_parser(
    asked: str | None = None,
    *,
    commands_beside: Sequence[ModuleType] = (),
    data_beside: Sequence[ModuleType] = (),
) -> argparse.ArgumentParser:
    """All commands and their options.

    Parameters
    ----------
    asked
        Leave out the options of all commands but this one, and import no module for them, so that
        the help is quick.
    commands_beside, data_beside
        Modules of further commands, and of further parts of `data`; each has `add`.
    """
    parser = _Parser(
        prog="mnmt-repro",
        description="Scaling laws for multilingual translation, and upgrades of trained models.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in PURPOSES.items():
        if asked in (None, name):
            beside = {"beside": data_beside} if name == "data" else {}
            import_module(f"mnmt_repro.cli.{name}").add(commands, **beside)
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
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in TRAIN_TIER:
            raise
        how = "pip install 'WHEEL[train]', with the file of the wheel"
        if not ARCHIVE.is_file():
            how = "`make install` in the project's folder, or pip install -e '.[train]'"
        tell(f"`{asked}` needs {missing}, which is not installed: {how}")
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing more can be printed, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        why = error.strerror or error
        tell(f"{error.filename or 'writing'}: {why}{then}")
        return 1
    except KeyboardInterrupt:
        tell(f"interrupted{then}")
        return 130
