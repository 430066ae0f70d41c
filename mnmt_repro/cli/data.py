"""`data`: list corpora, look over own text, train, extend, trim or adopt a vocabulary."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mnmt_repro.cli import trim
from mnmt_repro.cli.options import JsonOption, add_command, comma_list, print_json
from mnmt_repro.corpora.bitext import SKIP_BAD, read_bitexts, skipping_bad
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.errors import InputError, note, remedy, show
from mnmt_repro.typed_config import Count, Natural, required, setting

if TYPE_CHECKING:
    from mnmt_repro.corpora.extending import Extension
    from mnmt_repro.corpora.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class CheckOptions(JsonOption):
    """The options of `data check`."""

    data: tuple[str, ...] = required(
        "training text (see train --help): look for repeated and untranslated sentences",
        required=True,
        metavar="PAIR=FILE",
    )
    test: tuple[str, ...] = setting(
        "test text: also look for its sentences in the training text", (), metavar="PAIR=FILE"
    )
    skip_bad: bool = setting(SKIP_BAD, False)


@dataclass(frozen=True, kw_only=True)
class NewVocabulary:
    """Where a vocabulary is written."""

    out: Path = required("new file of the vocabulary", required=True, metavar="FILE.model")

    def write(self, vocabulary: Vocabulary, old: Collection[str] = ()) -> int:
        """Save it, and say what it is; `old` languages had a tag before."""
        vocabulary.save(self.out)
        tags = ", ".join(name for name in vocabulary.languages if name not in old) or "none"
        print(f"{self.out}: {len(vocabulary)} pieces, new tags: {tags}, hash {vocabulary.hash}")
        return 0


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions(NewVocabulary):
    """The options of `data vocabulary`."""

    data: tuple[str, ...] = required(
        "a bitext (see train --help)", required=True, metavar="PAIR=FILE"
    )
    skip_bad: bool = setting(SKIP_BAD, False)
    config: VocabularyConfig = field(metadata={"defaults": {"pieces": 4000}})


@dataclass(frozen=True, kw_only=True)
class ExtendOptions(NewVocabulary):
    """The options of `data extend`."""

    model: Path = required("the model's folder", flags=("model",), metavar="MODEL")
    data: tuple[str, ...] = required(
        "new text (see train), and old text to see how it is cut afterwards; each language without "
        "a tag gets one, so of T5 or mT5 name text of all that you will train",
        required=True,
        metavar="PAIR=FILE",
    )
    skip_bad: bool = setting(SKIP_BAD, False)
    languages: str | None = setting(
        "those that new pieces are learnt from (default: those without a tag)", metavar="CODE,..."
    )
    new_pieces: Natural | None = setting(
        "most new pieces, beside tags; 0: tags alone (default: proposed from the text)", metavar="N"
    )
    min_count: Count = setting("leave out new pieces that occur less often in their text", 2)
    keep_old: bool = setting(
        "leave out new pieces that change how text of the other languages in --data is cut", False
    )


@dataclass(frozen=True, kw_only=True)
class AdoptOptions(NewVocabulary):
    """The options of `data adopt`."""

    model: Path = required("unigram or BPE", flags=("model",), metavar="OWN.model")
    languages: str = required("as in the names of your pairs", required=True, metavar="CODE,...")


EXAMPLES = ("mnmt-repro data list",)


def add_parts(command: argparse.ArgumentParser) -> None:
    """Declare the parts of the command."""
    parts = command.add_subparsers(dest="part", required=True, metavar="PART")
    for name, (purpose, act, *examples) in PARTS.items():
        add_command(parts, name, purpose, examples=examples, act=act)


def act(options: argparse.Namespace) -> int:
    """Never called: a part is required."""
    raise AssertionError(options)


def act_list(options: JsonOption) -> int:
    """Print all cards."""
    from mnmt_repro.corpora.registry import list_cards, locate

    cards = list_cards()
    if options.json:
        print_json([{**asdict(card), "pairs": list(card.pairs)} for card in cards])
        return 0
    for card in cards:
        here = sum(locate(file) is not None for file in card.files)
        size = f"{card.sentences('train'):,} training pairs, {here} of {len(card.files)} files here"
        print(f"{card.name}: {card.title}; {size if card.files else 'always here'}")
        print(f"    licence: {card.licence}")
    return 0


def act_check(options: CheckOptions) -> int:
    """Print the report of one's own text; 1 where test sentences are in training."""
    from mnmt_repro.corpora.text_checks import FAULTS, check_own

    train, test = (skipping_bad(each, options.skip_bad) for each in (options.data, options.test))
    reports = check_own(read_bitexts(train), read_bitexts(test, "--test"))
    if options.json:
        print_json(reports)
    for each in [] if options.json else reports:
        parts = [f"{each['text']}: {each['sentences']:,} sentence pairs"]
        for name, what in FAULTS.items():
            if rows := each[name]:
                first = ", ".join(map(str, rows[:5])) + ", ..." * (len(rows) > 5)
                parts.append(f"{len(rows):,} {what} ({len(rows) / each['sentences']:.1%}: {first})")
        show("; ".join(parts))
    return int(any(each["in_training"] for each in reports))


def act_vocabulary(options: VocabularyOptions) -> int:
    """Train and write a vocabulary."""
    from mnmt_repro.corpora.registry import split_pair
    from mnmt_repro.corpora.vocabulary import train_vocabulary

    texts = read_bitexts(skipping_bad(options.data, options.skip_bad))
    languages = tuple(language for pair in texts for language in split_pair(pair))
    config = replace(options.config, languages=languages)
    return options.write(
        train_vocabulary(config, {p: (t.source, t.target) for p, t in texts.items()})
    )


def act_extend(options: ExtendOptions) -> int:
    """Extend a model's vocabulary, and write it."""
    from mnmt_repro.corpora.extending import NUMBERS, extend_vocabulary, propose
    from mnmt_repro.corpora.registry import split_pair
    from mnmt_repro.runs.trained import load_trained

    old = load_trained(options.model).vocabulary
    texts: dict[str, list[str]] = {}
    for pair, text in read_bitexts(skipping_bad(options.data, options.skip_bad)).items():
        for language, lines in zip(split_pair(pair), (text.source, text.target), strict=True):
            texts.setdefault(language, []).extend(lines)
    known = {form for name in old.languages for form in (name, name.partition("_")[0])}
    tagless = [language for language in texts if language not in known]
    learnt = tagless if options.languages is None else comma_list(options.languages)
    if unknown := [language for language in learnt if language not in texts]:
        raise InputError(f"--languages {unknown[0]}: not in --data; {remedy(unknown[0], texts)}")
    if not tagless and not (learnt and options.new_pieces != 0):
        raise InputError(
            "--data: each language there has a tag; leave out --vocab in `mnmt-repro upgrade`, or "
            "name those that get new pieces by --languages"
        )
    if not old.languages:
        note(
            f"{options.model} has no tag of any language, so only pairs of {', '.join(texts)} can "
            "be trained; to train others too, name their text with --data"
        )
    new = [line for language in learnt for line in texts[language]]
    others = {name: lines for name, lines in texts.items() if name not in learnt}
    kept = [line for lines in others.values() for line in lines]
    if options.keep_old and not kept:
        raise InputError("--keep-old: --data has no text of another language; add such text there")
    keep: Sequence[str] = kept if options.keep_old else ()
    extend = partial(extend_vocabulary, old, tagless, new, min_count=options.min_count, keep=keep)
    if options.new_pieces is not None:
        made = extend(options.new_pieces)
    else:
        tried: list[Extension] = []
        for number in NUMBERS:
            if not (tried and tried[-1].exhausted):
                tried.append(extend(number))
        made = propose(tried, new)
        table = pd.DataFrame(_tried(each, new, kept) for each in (extend(0), *tried))
        why = "twice as many hardly shorten the text"
        if made is tried[-1]:
            why = "the text gives no more" if made.exhausted else "more may shorten it further"
        print(table.to_string(index=False))
        print(f"proposed: --new-pieces {made.asked}; {why}")
    if made.asked:
        print(
            *_by_occurrences(made.occurrences),
            f"{len(made.occurrences)} of {made.asked} new pieces; left out: {made.rare} that occur "
            f"less than {options.min_count} times, {made.recutting} that cut old text differently",
            sep="\n",
        )
    for name, lines in others.items():
        print(f"{name}: {made.recut(lines):.1%} of {len(lines):,} sentences are cut differently")
    return options.write(made.vocabulary, old.languages)


def _tried(made: Extension, new: Sequence[str], old: Sequence[str]) -> dict[str, Any]:
    """What a number of new pieces makes of new and of old text."""
    length, unknown = made.fit(new)
    return {
        "asked for": made.asked, "new pieces": len(made.occurrences),
        "characters a token": f"{length:.2f}", "unknown": f"{unknown:.2%}",
    } | ({"old text cut differently": f"{made.recut(old):.1%}"} if old else {})  # fmt: skip


def _by_occurrences(occurrences: Mapping[str, int]) -> Iterator[str]:
    """Lines on new pieces that occur once, ten times, a hundred times and so on, or more often."""
    often = sorted(occurrences, key=lambda piece: -occurrences[piece])
    for digits, group in groupby(often, lambda piece: len(str(occurrences[piece]))):
        times, pieces = f"{10 ** (digits - 1):,}", [*group]
        some = " ".join(pieces[:5])
        yield f"{times:>9} times or more: {len(pieces):,} new pieces, such as {some}"


def act_adopt(options: AdoptOptions) -> int:
    """Read another program's vocabulary, and write it as one of ours."""
    from mnmt_repro.corpora.adopting import adopt_vocabulary

    return options.write(adopt_vocabulary(options.model, comma_list(options.languages)))


PARTS: dict[str, tuple[Any, ...]] = {
    "list": (
        "list the corpora: languages, size, licence, whether they are on this machine",
        act_list,
        "mnmt-repro data list",
        "mnmt-repro data list --json",
    ),
    "check": (
        "look over bitexts of your own; exits with 1 where test sentences are in training",
        act_check,
        "mnmt-repro data check --data eng-deu=talks.tsv --test eng-deu=news.en,news.de",
    ),
    "vocabulary": (
        "train a SentencePiece vocabulary (unigram, byte fallback, a tag for each language)",
        act_vocabulary,
        "mnmt-repro data vocabulary --data eng-deu=talks.tsv --pieces 4000 --out talks.model",
    ),
    "extend": (
        "add pieces and languages to the vocabulary of a trained model or of a Hugging Face model; "
        "the old pieces keep their ids",
        act_extend,
        "mnmt-repro data extend nllb-200 --data eng_Latn-tyv_Cyrl=new.tsv --out both.model",
    ),
    "trim": (
        "drop the pieces and languages of a trained model or a Hugging Face model that your text "
        "does not need: a smaller model, which cuts this text as before",
        trim.act,
        "mnmt-repro data trim nllb-200 --data eng_Latn-deu_Latn=talks.tsv --out nllb-eng-deu",
    ),
    "adopt": (
        "take over a SentencePiece model of your own: the same pieces, with the special ones in "
        "front that `train` and `upgrade` need, and a tag for each language",
        act_adopt,
        "mnmt-repro data adopt own.model --languages eng,deu,xho --out both.model",
    ),
}
"""Purpose, function and examples of each part."""
