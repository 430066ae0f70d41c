"""`evaluate`: cross-entropy, and with `--decode` BLEU and chrF, of a trained model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mnmt_repro.commands.options import (
    add_command,
    add_json,
    check_device,
    comma_list,
    print_json,
)
from mnmt_repro.commands.translate import add_search
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.commands.trained import Trained

MEASURES = ("cross_entropy", "bleu", "chrf", "chrfpp", "spbleu", "piece_bleu")


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "evaluate",
        "score a trained model: nats per target token, overall and per domain, and with --decode "
        "BLEU, chrF, chrF++ and spBLEU",
        examples=[
            "mnmt-repro evaluate runs/dezh",
            "mnmt-repro evaluate runs/dezh --test newstest21 --decode --json",
            "mnmt-repro evaluate runs/talks --data eng-deu=test.tsv --decode",
        ],
        act=act,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what `train` wrote")
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="PAIR=FILE",
        help="your own test set (see train)",
    )
    parser.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="NAME",
        help="indomain (default, unless --data), newstest21, newstest22-pivot, multi30k-2016, ...",
    )
    parser.add_argument("--pairs", metavar="PAIR,...", help="default: all that the model knows")
    parser.add_argument("--limit", type=int, metavar="N", help="first N sentences of each set")
    parser.add_argument("--decode", action="store_true", help="translate, and score translations")
    add_search(parser)
    add_json(parser)


CONLANG_SENTENCES = 1000


def act(options: argparse.Namespace) -> int:
    """Print a row for each pair, test set and domain."""
    from mnmt_repro.commands.trained import load_trained

    if options.limit is not None and options.limit < 1:
        raise InputError(f"--limit {options.limit}: give a number of sentences, 1 or more")
    if options.data and options.pairs and not options.test:
        raise InputError("--pairs: is of --test; --data names its own pair")
    check_device(options.device)
    trained = load_trained(options.folder, device=options.device)
    rows = [
        row
        for name, text in _test_sets(trained, options)
        for row in _scores(trained, name, text, options)
    ]
    if options.json:
        print_json(rows)
        return 0
    frame = pd.DataFrame(rows)
    signatures = [column for column in frame.columns if column.endswith("_signature")]
    table = frame.drop(columns=signatures)
    print(
        table.to_string(
            index=False,
            na_rep="",
            formatters={
                name: (f"{{:.{4 if name == 'cross_entropy' else 2}f}}").format
                for name in MEASURES
                if name in table.columns
            },
        )
    )
    for column in signatures:
        for signature in frame[column].dropna().unique():
            print(f"{column.removesuffix('_signature')}: {signature}")
    return 0


def _test_sets(trained: Trained, options: argparse.Namespace) -> Iterator[tuple[str, Bitext]]:
    """Name and text of each test set, in the order of the options."""
    from mnmt_repro.commands.training_text import read_bitexts

    pairs = comma_list(options.pairs or "") or list(trained.pairs)
    for pair in pairs:
        if pair not in trained.pairs:
            raise InputError(f"--pairs {pair}: the model knows {', '.join(trained.pairs)}")
    for spec in options.data:
        for pair, text in read_bitexts([spec]).items():
            if pair not in trained.pairs:
                raise InputError(f"--data {pair}: the model knows {', '.join(trained.pairs)}")
            yield Path(spec.partition("=")[2].partition("?")[0]).name, _first(text, options.limit)
    for name in options.test or ([] if options.data else ["indomain"]):
        for pair in _having(name, pairs, trained):
            yield name, _first(_read(name, pair, trained), options.limit)


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
        if trained.corpus == "own":
            raise InputError("--test indomain: the model was trained on your own text; use --data")
        return pairs
    known = {pair: known_test_sets(pair) for pair in pairs}
    found = [pair for pair in pairs if name in known[pair]]
    if not found:
        there = sorted({each for names in known.values() for each in names} | {"indomain"})
        raise InputError(f"--test {name}: there are {', '.join(there)} for {', '.join(pairs)}")
    return found


def _read(name: str, pair: str, trained: Trained) -> Bitext:
    from mnmt_repro.corpora.bitext import load_split, load_test_set

    if name != "indomain":
        return load_test_set(name, pair)
    if trained.conlang is None:
        return load_split(trained.corpus, pair, "test")
    sentences = trained.conlang.text(pair, 0, CONLANG_SENTENCES, split="test")
    source, target = zip(*sentences, strict=True)
    return Bitext(pair=pair, source=list(source), target=list(target))


def _scores(
    trained: Trained, name: str, text: Bitext, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    from mnmt_repro.corpora.encoding import encode
    from mnmt_repro.experiments.data import SHARED_DOMAINS, TestSet
    from mnmt_repro.experiments.execute import score

    shared = SHARED_DOMAINS.get(trained.corpus, ()) if name == "indomain" else ()
    test = TestSet(
        name=name,
        text=encode(text, trained.vocabulary, trained.tags),
        domains=None if text.domain is None else tuple(text.domain),
        shared=tuple(domain for domain in shared if domain in (text.domain or ())),
    )
    outputs = _translations(trained, text, options) if options.decode else None
    for row in score(trained.model, test):
        if outputs is not None:
            rows = np.flatnonzero(test.selections[row["test_set"], row["domain"]])
            row |= _metrics(trained, text, outputs, rows.tolist())
        yield {"pair": text.pair, **row}


def _translations(trained: Trained, text: Bitext, options: argparse.Namespace) -> list[str]:
    from tqdm import tqdm

    from mnmt_repro.evaluation.search import SearchConfig, translate

    config = SearchConfig(beam=options.beam, length_penalty=options.length_penalty)
    with tqdm(total=len(text), unit="line", desc=text.pair, disable=None, leave=False) as bar:
        return translate(
            trained.model,
            trained.vocabulary,
            text.source,
            text.pair,
            trained.tags,
            config=config,
            batch_sentences=options.batch,
            progress=bar.update,
        )


def _metrics(trained: Trained, text: Bitext, outputs: list[str], rows: list[int]) -> dict[str, Any]:
    from mnmt_repro.evaluation.metrics import scores

    return dict(
        scores(
            [outputs[row] for row in rows],
            [text.target[row] for row in rows],
            text.pair.partition("-")[2],
            vocabulary=None if trained.conlang is not None else trained.vocabulary,
        )
    )
