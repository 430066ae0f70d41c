"""The options of `train`, and the training, the model and the text that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli.continuing import read_upgraded
from mnmt_repro.cli.options import by_place, comma_list, named_numbers, read_fields
from mnmt_repro.corpora.bitext import SKIP_BAD, skipping_bad
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.runs.grid import SHAPE, Arch, Size
from mnmt_repro.runs.training_text import TextSource, TrainingText
from mnmt_repro.training.config import BUDGET, FIRST_BUDGET, PEAK, USUAL, TrainingConfig
from mnmt_repro.training.published import PUBLISHED
from mnmt_repro.typed_config import (
    Amount,
    Count,
    Few,
    Part,
    Seed,
    Share,
    Temperature,
    build,
    setting,
)

Preset = Literal["paper-a", "paper-b"]
FIRST_CONLANG = ConlangConfig(concepts=64, syllables=24, min_concepts=4)
"""The conlang of a first run: small enough to be learned in a minute."""
ROUNDED = 1e-3  # how far the sum of `--weights` may be from one
SETTLED = (
    *("arch", "d_model", "layers", "heads", "d_ff", "dropout", "attention_dropout"),
    *("pieces", "vocabulary", "vocabulary_temperature"),
)
"""Options that an upgraded model has settled: with one, they are None."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `train`."""

    continue_from: Path | None = setting(
        "train a model that `upgrade` wrote. Its shape is settled, other settings are the old "
        "run's unless they are given, and the budget is new",
        metavar="FOLDER",
    )
    preset: Preset | None = setting(
        "settings of Paper A's first size or Paper B's baseline, which need many GPUs and have not "
        "been run here. Options beside it replace its values",
    )
    data: tuple[str, ...] | None = setting(
        "your own bitext, such as eng-deu=talks.tsv; give the option once for each pair. FILE is "
        "a .tsv, a .jsonl or two text files SOURCE,TARGET, also as .gz or .xz. Columns are named "
        "by FILE.tsv?source=english&target=german, and further ones by &domain=COLUMN, "
        "&split_column=COLUMN&split=train",
        group="text",
        metavar="PAIR=FILE",
    )
    valid: tuple[str, ...] | None = setting(
        "validation text for --data (default: a twentieth held out, at most 400 sentences)",
        metavar="PAIR=FILE",
    )
    skip_bad: bool = setting(SKIP_BAD, False)
    corpus: str | None = setting("a corpus of `data list` (default: conlang)")
    pairs: str | None = setting(
        "language pairs to train (default: all out of English, or of src)", metavar="PAIR,..."
    )
    conlang: ConlangConfig | None = None  # of the model that is trained on; no option
    any_precision: bool = False  # none was asked for, here or by what settings are taken from
    concepts: Count | None = setting("conlang: words to learn (default: 64)")
    languages: str | None = setting(
        "conlang: its languages, also those that an upgrade will add (default: src,aaa,bbb)",
        metavar="NAME,...",
    )
    similarity: Share | None = setting("conlang: share of words in common, 0 to 1 (default: 0)")
    tags: Literal["auto", "none", "source", "both"] = setting(
        "where language tags stand; auto: before the source if targets differ", "auto"
    )
    weights: str | None = setting(
        "weight of each pair, per sentence, such as eng-deu=0.95,eng-fra=0.05, or numbers alone in "
        "the order of --data or --pairs",
        group="mixture (default: as many sentences as a pair has)",
        metavar="PAIR=WEIGHT,...",
    )
    temperature: Temperature | None = setting("weights are size ** (1 / temperature)")
    upsample: tuple[str, ...] | None = setting(
        "multiply the size of a pair by FACTOR", metavar="PAIR=FACTOR"
    )
    arch: Arch = setting("Paper A's shape, or Paper B's", "t5", group="model")
    d_model: Count = setting("width of the model", 32)
    layers: Few = setting("layers of each stack", 1)
    heads: Few = setting("attention heads", 4)
    d_ff: Count | None = setting("feed-forward width (default: 4 times --d-model)")
    dropout: Part = setting("dropout between and inside blocks", 0.0)
    attention_dropout: Part = setting("dropout of attention weights, with --arch fairseq", 0.0)
    pieces: Count = setting("size of the vocabulary that is trained", 4000)
    vocabulary_temperature: Temperature = setting(
        "text for the vocabulary is sampled by size ** (1 / T)", 1.0, metavar="T"
    )
    vocabulary: Path | None = setting(
        "use this vocabulary instead of training one", metavar="FILE.model"
    )
    training: TrainingConfig = field(
        metadata={
            "group": "training",
            # The optimiser decides the rate, and a precision that is not given may be either.
            "defaults": {**USUAL, "optimiser": None, "precision": None},
        }
    )
    exact: bool = setting(
        "train as stored runs were: in float32, never compiled, so that they repeat bit for bit "
        "(default: the fast path where it pays, which rounds otherwise)",
        False,
    )
    out: Path | None = setting(
        "folder of the run, where it also goes on (default: below runs/, named by its settings)",
        group="run",
        metavar="FOLDER",
    )
    results: Path | None = setting(
        "store of its losses (default: `results`, beside the run's folder)", metavar="FOLDER"
    )
    seed: Seed = setting("seed of initial weights, dropout and order of data", 1)
    device: str = setting("cpu, cuda, cuda:1, ...; under torchrun cuda", "cpu")
    threads: Few = setting("processor threads; one is best for small models", 1)
    shard: bool = setting(
        "under torchrun: split the model over the processes (FSDP2), with --optimiser adamw", False
    )
    recompute: bool = setting(
        "compute layers again in the backward pass: less memory, a third more time, same result",
        False,
    )
    checkpoint_seconds: Amount = setting("seconds between checkpoints", 30.0)


def usual(options: argparse.Namespace) -> dict[str, Any]:
    """Defaults that follow from other options: an upgraded model's or a preset's.

    A budget that is given, in steps or in tokens, stands alone, and a learning rate is taken over
    with its optimiser only.

    Raises
    ------
    InputError
        When options exclude each other, or a file that they name does not serve.
    """
    _refuse_excluded(options)
    values: dict[str, Any] = {}
    if options.continue_from is not None:
        values = dict.fromkeys(SETTLED) | of_upgraded(options.continue_from, options)
    elif options.preset is not None:
        values = of_preset(options.preset)
    if options.steps or options.target_tokens:
        values |= dict.fromkeys(BUDGET)
    elif not (values.get("steps") or values.get("target_tokens")):
        values["target_tokens"] = FIRST_BUDGET
    if options.exact:
        values |= {"compile": False, "precision": "float32"}
    before = values.get("optimiser", "adafactor")
    optimiser = options.optimiser or before
    if optimiser != before or "learning_rate" not in values:
        values["learning_rate"] = PEAK[optimiser]
    free = options.precision is None and "precision" not in values
    return {"precision": "float32"} | values | {"optimiser": optimiser, "any_precision": free}


def of_preset(name: str) -> dict[str, Any]:
    """Options and their published values: Paper A's first size, or Paper B's baseline.

    >>> values = of_preset("paper-a")
    >>> values["d_model"], values["pieces"], values["batch_tokens"], values["steps"]
    (512, 128000, 500000, 500000)
    """
    published = PUBLISHED[name]
    model = published.model
    return {
        "arch": published.arch,
        "d_model": model.d_model,
        "layers": model.encoder_layers,
        "heads": model.heads,
        "attention_dropout": model.attention_dropout,
        "pieces": model.vocab_size,
        "vocabulary_temperature": published.vocabulary_temperature,
        "tags": published.tags,
        **dataclasses.asdict(published.training),
    }


def of_upgraded(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Options as an upgraded model and its old run have them.

    Those are text and pairs (where no other is given), tags, and all training settings but the
    budget. The seed is one more than the old one, for other dropout and another order of data.

    Raises
    ------
    InputError
        When it is no upgraded model, or its rate or its text has to be given.
    """
    about = read_upgraded(folder)
    constant = about["upgrade"]["config"]["schedule"] == "constant"
    if constant and options.learning_rate is None:
        peak = about["training"]["learning_rate"]
        raise InputError(
            f"--continue-from {folder}: its rate is constant; give --learning-rate (the "
            f"old model's peak was {peak:g}; a tenth of it is small)"
        )
    values = {name: value for name, value in about["training"].items() if name not in BUDGET}
    values["seed"] = about["seed"] + 1
    if about["tags"] != "none":
        values["tags"] = about["tags"]
    if options.data or (options.corpus or about["corpus"]) != about["corpus"]:
        return values
    if about["corpus"] == "own":
        pairs = ", ".join(about["pairs"])
        raise InputError(
            f"--continue-from {folder}: the model was trained on your own text "
            f"({pairs}); give it again with --data, and that of new pairs"
        )
    values |= {"corpus": about["corpus"], "pairs": ",".join(about["pairs"])}
    if about["conlang"] is not None:
        values["conlang"] = build(ConlangConfig, about["conlang"])
    return values


def _refuse_excluded(options: argparse.Namespace) -> None:
    """Refuse options that exclude each other; the reason names the one that is to go."""
    for names, excluded, why in (
        ("preset", options.continue_from, "{}: the upgraded model has its settings; leave "
         "one of the two out"),
        ("corpus pairs", options.data, "--data: your own text; leave out --corpus and --pairs"),
        ("valid", not options.data, "--valid goes with --data; registered corpora have their own"),
        ("temperature upsample", options.weights, "--weights: leave out --temperature and "
         "--upsample, or it"),
    ):  # fmt: skip
        for name in names.split():
            if excluded and getattr(options, name) is not None:
                raise InputError(why.format(f"--{name}"))
    if options.preset is not None and not (options.data or options.corpus):
        raise InputError(f"--preset {options.preset}: name its text, with --data or --corpus")


def read_options(parsed: argparse.Namespace) -> TrainOptions:
    """The options of `train`, once `usual` has given the defaults.

    Raises
    ------
    InputError
        When a setting is out of range, or an upgraded model has it already.
    """
    if parsed.continue_from is not None:
        for name in SETTLED:
            if getattr(parsed, name) is not None:
                raise InputError(
                    f"--{name.replace('_', '-')}: the upgraded model's own stays; leave it out, or "
                    "make another upgrade"
                )
    try:
        made = {name: vars(parsed).get(name) for name in ("conlang", "any_precision")}
        options = read_fields(parsed, TrainOptions, **made)
    except InputError as error:
        names = (each.name for each in dataclasses.fields(TrainingConfig))
        raise _as_options(error, names) from error
    for name in ("compile", "precision"):
        if options.exact and getattr(options.training, name) not in (False, "float32"):
            raise InputError(f"--exact: stored runs were trained without; leave out --{name}")
    return options


def model_config(options: TrainOptions, vocab_size: int) -> ModelConfig:
    """The model that the options ask for."""
    shape, more = (
        {name: getattr(options, name) for name in names}
        for names in (SHAPE, ("arch", "dropout", "attention_dropout"))
    )
    try:
        return Size(**shape).model(vocab_size, **more)
    except InputError as error:
        raise _as_options(error, (*SHAPE, "attention_dropout", "arch")) from error


def _as_options(error: InputError, fields: Iterable[str]) -> InputError:
    """The same mistake, its fields named as options."""
    names = "|".join(fields)
    text = re.sub(rf"\b({names})\b", lambda at: f"--{at[1]}".replace("_", "-"), str(error))
    return InputError(text.removeprefix("training "))


def text_source(options: TrainOptions) -> TextSource:
    """What `--data`, or `--corpus` and `--pairs`, name, and the pieces to write it in."""
    return TextSource(
        data=skipping_bad(options.data or (), options.skip_bad),
        valid=skipping_bad(options.valid or (), options.skip_bad),
        corpus=options.corpus or "conlang",
        pairs=tuple(comma_list(options.pairs or "")),
        conlang=_conlang(options),
        pieces=options.pieces,
        vocabulary_temperature=options.vocabulary_temperature,
        vocabulary=options.vocabulary,
    )


def _conlang(options: TrainOptions) -> ConlangConfig | None:
    """The generated languages that the options ask for; None where they ask for other text."""
    if options.data or (options.corpus or "conlang") != "conlang":
        return None
    both = {"concepts": options.concepts, "similarity": options.similarity}
    changes: dict[str, Any] = {name: value for name, value in both.items() if value is not None}
    if options.languages is not None:
        languages = tuple(by_place(options.languages, "--languages"))
        changes |= {"languages": languages, "families": None, "orders": None}  # one for each
    return replace(options.conlang or FIRST_CONLANG, **changes)


def read_mixture(options: TrainOptions, text: TrainingText) -> Mixture:
    """The mixture that `--weights`, or `--temperature` and `--upsample`, ask for.

    Without any of them pairs weigh as much as they have sentences; a conlang's, which never end,
    weigh the same.

    Raises
    ------
    InputError
        When there is not a weight for each pair, or `Mixture` refuses them.
    """
    if options.weights is not None:
        parts = by_place(options.weights, "--weights")
        named = parts if "=" in options.weights else map("{}={}".format, text.pairs, parts)
        weights = named_numbers(named, "--weights")
        if len(parts) != len(text.pairs) or weights.keys() != set(text.pairs):
            raise InputError(
                f"--weights {options.weights}: give one weight to each of {', '.join(text.pairs)}"
            )
        total = math.fsum(weights.values())
        if 1e-9 < abs(total - 1.0) <= ROUNDED:
            weights = {pair: weight / total for pair, weight in weights.items()}
        return Mixture.of(weights)
    sizes = {pair: len(text.train[pair]) if text.train else 1 for pair in text.pairs}
    return Mixture.from_sizes(
        sizes,
        temperature=1.0 if options.temperature is None else options.temperature,
        upsampling=named_numbers(options.upsample or [], "--upsample"),
    )
