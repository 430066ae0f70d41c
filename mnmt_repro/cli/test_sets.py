"""Which test sets a command scores models on: `--data`, `--test`, `--pairs`, `--limit`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_repro.cli.options import add_texts, check_count, comma_list
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.corpora.conlang import Conlang
    from mnmt_repro.runs.trained import Trained

CONLANG_SENTENCES = 1000


def add_test_sets(parser: argparse.ArgumentParser) -> None:
    """Declare the options that name test sets."""
    add_texts(
        parser, "--data", "your own test set (see train), of a trained direction or a zero-shot one"
    )
    parser.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="NAME",
        help="indomain (default, unless --data; of your own text what `train` held out), "
        "newstest21, newstest22-pivot, multi30k-2016, ...",
    )
    parser.add_argument(
        "--pairs", metavar="PAIR,...", help="language pairs (default: all of the model)"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="first N sentences of each set")


def check_test_sets(options: argparse.Namespace) -> None:
    """Refuse options that exclude one another, before a model is read."""
    check_count(options.limit, "--limit", "sentences")
    if options.data and options.pairs and not options.test:
        raise InputError("--pairs: is of --test; --data names its own pair")


def read_test_sets(trained: Trained, options: argparse.Namespace) -> Iterator[tuple[str, Bitext]]:
    """Name and text of each test set, in the order of the options."""
    from mnmt_repro.corpora.bitext import read_bitexts

    pairs = comma_list(options.pairs or "") or list(trained.pairs)
    for pair in pairs:
        if trained.any_pair:
            trained.check_direction(pair, f"--pairs {pair}")
        elif pair not in trained.pairs:
            raise InputError(f"--pairs {pair}: the model was trained on {', '.join(trained.pairs)}")
    for spec in options.data:
        for pair, text in read_bitexts([spec]).items():
            trained.check_direction(pair, f"--data {pair}")
            files = spec.partition("=")[2].partition("?")[0].split(",")
            yield ",".join(Path(file).name for file in files), _first(text, options.limit)
    if trained.any_pair and options.test and not pairs:
        raise InputError("--test: the model may translate any pair, so name some with --pairs")
    for name in options.test or ([] if options.data else ["indomain"]):
        if name == "indomain" and trained.corpus == "own":
            texts: Iterable[Bitext] = _held_out(trained, pairs)
        else:
            texts = (_read(name, pair, trained) for pair in _having(name, pairs, trained))
        for text in texts:
            yield name, _first(text, options.limit)


def _held_out(trained: Trained, pairs: list[str]) -> Iterable[Bitext]:
    """What `train` held out of a user's own text, where her files are still there."""
    from mnmt_repro.runs.trained import RUN, read_about
    from mnmt_repro.runs.training_text import valid_text

    try:
        found = valid_text(read_about(trained.folder) if (trained.folder / RUN).is_file() else {})
        texts = [found[pair] for pair in pairs if pair in found]
        if not texts:
            raise InputError(f"no text of {', '.join(pairs)} was held out")
        return texts
    except InputError as error:
        raise InputError(f"{trained.folder}: {error}; name text with --data PAIR=FILE") from error


def _first(text: Bitext, limit: int | None) -> Bitext:
    return text if limit is None else text.select(range(min(limit, len(text))))


def _having(name: str, pairs: list[str], trained: Trained) -> list[str]:
    """The pairs for which there is such a test set.

    Raises
    ------
    InputError
        When it is there for none of them; those there are, are listed.
    """
    from mnmt_repro.corpora.registry import known_test_sets

    if name == "indomain":
        return pairs
    known = {pair: known_test_sets(pair) for pair in pairs}
    found = [pair for pair in pairs if name in known[pair]]
    if not found:
        there = sorted({each for names in known.values() for each in names} | {"indomain"})
        raise InputError(f"--test {name}: there are {', '.join(there)} for {', '.join(pairs)}")
    return found


def _read(name: str, pair: str, trained: Trained) -> Bitext:
    from mnmt_repro.corpora.bitext import load_test_set

    if name != "indomain":
        return load_test_set(name, pair)
    return split_text(trained.corpus, trained.conlang, pair, "test", CONLANG_SENTENCES)


def split_text(
    corpus: str, conlang: Conlang | None, pair: str, split: str, sentences: int
) -> Bitext:
    """A pair's text of a split of a corpus; so many sentences where it is a conlang's."""
    from mnmt_repro.corpora.bitext import load_split

    if conlang is None:
        return load_split(corpus, pair, split)
    source, target = map(list, zip(*conlang.text(pair, 0, sentences, split=split), strict=True))
    return Bitext(pair=pair, source=source, target=target)
