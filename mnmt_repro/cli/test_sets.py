"""Which test sets a command scores models on: `--data`, `--test`, `--pairs`, `--limit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_repro.cli.options import comma_list
from mnmt_repro.corpora.bitext import SKIP_BAD, parse_spec, read_bitexts, skipping_bad
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError, printable, tell
from mnmt_repro.typed_config import Count, setting

if TYPE_CHECKING:
    from mnmt_repro.corpora.batches import EncodedPair
    from mnmt_repro.corpora.conlang import Conlang
    from mnmt_repro.runs.trained import Trained

CONLANG_SENTENCES = 1000


@dataclass(frozen=True, kw_only=True)
class TestSetOptions:
    """Which test sets a command scores models on."""

    data: tuple[str, ...] = setting(
        "your own test set (see train), of a trained direction or a zero-shot one",
        (),
        metavar="PAIR=FILE",
    )
    test: tuple[str, ...] = setting(
        "indomain (default; of your own text what `train` held out), newstest21, ...",
        (),
        metavar="NAME",
    )
    pairs: str | None = setting("language pairs (default: all of the model)", metavar="PAIR,...")
    limit: Count | None = setting("first N sentences of each set", metavar="N")
    skip_bad: bool = setting(SKIP_BAD, False)


def read_test_sets(trained: Trained, options: TestSetOptions) -> Iterator[tuple[str, Bitext]]:
    """Name and text of each test set, in the order of the options."""
    if options.data and options.pairs and not options.test:
        raise InputError("--pairs: is of --test; --data names its own pair")
    pairs = comma_list(options.pairs or "") or list(trained.pairs)
    for pair in pairs:
        if trained.any_pair:
            trained.check_direction(pair, f"--pairs {pair}")
        elif pair not in trained.pairs:
            raise InputError(f"--pairs {pair}: the model was trained on {', '.join(trained.pairs)}")
    for spec in options.data:
        for pair, text in read_bitexts(skipping_bad([spec], options.skip_bad)).items():
            trained.check_direction(pair, f"--data {pair}")
            name = printable(",".join(path.name for path in parse_spec(spec).paths))
            yield name, _first(text, options.limit)
    if trained.any_pair and options.test and not pairs:
        raise InputError("--test: the model may translate any pair, so name some with --pairs")
    for name in options.test or ([] if options.data else ["indomain"]):
        if name == "indomain" and trained.corpus == "own":
            texts: Iterable[Bitext] = _held_out(trained, pairs)
        else:
            texts = (_read(name, pair, trained) for pair in _having(name, pairs, trained))
        for text in texts:
            yield name, _first(text, options.limit)


def tell_unknown(folder: Path, encoded: EncodedPair, what: str) -> None:
    """Say on stderr how many tokens of a test set a model cannot write."""
    from mnmt_repro.corpora.vocabulary import UNK

    if unknown := int((encoded.target.flat == UNK).sum()):
        tell(
            f"{folder}: cannot write {unknown} token(s) of {what}; <unk> is cheap, so its loss "
            "looks too good"
        )


def _held_out(trained: Trained, pairs: list[str]) -> Iterable[Bitext]:
    """What `train` held out of a user's own text, where her files are still there."""
    from mnmt_repro.runs.trained import RUN, read_about
    from mnmt_repro.runs.training_text import valid_text

    try:
        held = valid_text(read_about(trained.folder) if (trained.folder / RUN).is_file() else {})
        texts = [held[pair] for pair in pairs if pair in held]
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
    having = [pair for pair in pairs if name in known[pair]]
    if not having:
        there = sorted({each for names in known.values() for each in names} | {"indomain"})
        raise InputError(f"--test {name}: there are {', '.join(there)} for {', '.join(pairs)}")
    return having


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
