"""`translate`: translate lines from standard input to standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.options import Noted, add_command, add_model, check_count, check_device
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.evaluation.search import SearchConfig
    from mnmt_repro.runs.trained import Trained


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "translate",
        examples=[
            "echo 'Save the file' | mnmt-repro translate runs/talks --to deu",
            "mnmt-repro translate runs/many --from deu --to eng < test.de > test.en",
        ],
        act=act,
    )
    add_model(parser, "FOLDER")
    parser.add_argument(
        "--to", required=True, metavar="LANGUAGE", help="target language, such as deu"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="LANGUAGE",
        help="source language, if the model has several",
    )
    parser.add_argument(
        "--engine",
        choices=("torch", "ct2"),
        default="torch",
        help="ct2: CTranslate2, which is faster; FOLDER may be one of `export --to ct2`. A few "
        "translations can differ, as CTranslate2 cuts one off at the longest length and raises "
        "other probabilities where a piece is forbidden. With M2M-100 and NLLB-200, more can "
        "differ unless --beam is 1: after the target's tag, CTranslate2 drops hypotheses that end "
        "at once",
    )
    add_search(parser)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Declare how translations are searched for, and where."""
    parser.set_defaults(given=frozenset())
    for name, kind, default, told in (
        ("--beam", int, 4, "hypotheses kept in beam search; 1 is greedy search"),
        ("--length-penalty", float, 1.0, "exponent of the length; 0 ranks by probability alone"),
        ("--batch", int, 64, "sentences translated together"),
    ):
        parser.add_argument(name, type=kind, default=default, action=Noted, help=told)
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        default="float32",
        action=Noted,
        help="bfloat16: faster on GPUs and on processors with AVX512-BF16 or AMX; a few "
        "translations can differ",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")


def check_search(options: argparse.Namespace, decode: bool = True) -> None:
    """Refuse an option that is out of range, or given where only `--decode` would use it."""
    for name in ("metric", "beam", "length_penalty", "batch", "precision"):
        if name in options.given and not decode:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: goes with --decode; add it, or leave this out")
    search_config(options)
    check_device(options.device)


def search_config(options: argparse.Namespace) -> SearchConfig:
    """How the options of `add_search` ask to search; `InputError` where one is out of range."""
    from mnmt_repro.evaluation.search import SearchConfig

    check_count(options.batch, "--batch", "sentences")
    return SearchConfig(beam=options.beam, length_penalty=options.length_penalty)


def translations(
    trained: Trained, lines: Sequence[str], pair: str, options: argparse.Namespace
) -> list[str]:
    """Translate lines as the options of `add_search` ask, with a progress bar."""
    from mnmt_repro.evaluation.search import translate
    from mnmt_repro.model import autocast

    call = partial(translate, trained.model, trained.vocabulary, lines, pair, trained.tags)
    with autocast(options.device, options.precision):
        return _with_bar(call, len(lines), pair, options)


def _with_bar(
    call: Callable[..., list[str]], lines: int, pair: str, options: argparse.Namespace
) -> list[str]:
    from tqdm import tqdm

    config, batch = search_config(options), options.batch
    with tqdm(total=lines, unit="line", desc=pair, disable=None, leave=False) as bar:
        return call(config=config, batch_sentences=batch, progress=bar.update)


def act(options: argparse.Namespace) -> int:
    """Translate all lines; nothing is printed before all are read and found well."""
    from mnmt_repro.corpora.textfile import decode_lines
    from mnmt_repro.runs.trained import load_trained

    check_search(options)
    if options.engine == "ct2":
        found = _with_ct2(options)
    else:
        trained = load_trained(options.folder, device=options.device)
        pair = trained.direction(options.to, options.source)
        lines = decode_lines(sys.stdin.buffer.read(), "standard input")
        found = translations(trained, lines, pair, options)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.flush()
    return 0


def _with_ct2(options: argparse.Namespace) -> list[str]:
    """Translate with CTranslate2; a model of another form is written as its own first."""
    import tempfile

    from mnmt_repro.corpora.textfile import decode_lines
    from mnmt_repro.interchange import Ct2, is_ct2, write_ct2
    from mnmt_repro.interchange.ctranslate import need
    from mnmt_repro.runs.trained import load_trained

    if "precision" in options.given:
        raise InputError("--precision: goes with --engine torch; leave one of the two out")
    need("ctranslate2")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder
        if not is_ct2(folder):
            trained = load_trained(folder)
            folder = Path(temporary) / "ct2"
            write_ct2(folder, trained.model, trained.vocabulary, trained.tags)
            pair = trained.direction(options.to, options.source)
            fast = Ct2.open(folder, device=options.device)
        else:
            fast = Ct2.open(folder, device=options.device)
            if options.source is None and fast.tags not in ("none", "source"):
                raise InputError(f"--to {options.to}: say --from which language")
            pair = f"{options.source or 'source'}-{options.to}"
        lines = decode_lines(sys.stdin.buffer.read(), "standard input")
        return _with_bar(partial(fast.translate, lines, pair), len(lines), pair, options)
