"""The options of `train`, and the training and the model that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli.options import Noted, NotedAppend, NotedTrue, add_fields, read_fields
from mnmt_repro.cli.presets import Preset
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import FIRST_BUDGET, USUAL, TrainingConfig, usual_training
from mnmt_repro.typed_config import setting

FIRST_RUN: dict[str, Any] = {"concepts": 64, "syllables": 24, "min_concepts": 4}
"""The conlang of a first run: small enough to be learned in a minute, fields of ConlangConfig."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `train`."""

    given: frozenset[str] = frozenset()  # names of those that are on the command line

    continue_from: Path | None = setting(
        "train a model that `upgrade` wrote, with its learning-rate scaling, optimiser state and "
        "schedule. Model options cannot be given. Training settings are the old run's unless they "
        "are given; the budget is new",
        metavar="FOLDER",
    )
    preset: Preset | None = setting(
        "published settings for text of your own: Paper A's with the first of its eight "
        "sizes, or Paper B's baseline. Options beside it replace its values. These settings need "
        "many GPUs (see the last example) and have not been run here",
    )
    config: Path | None = setting(
        "take the settings of another run from its run.json. Options beside it replace its "
        "values. Give text of your own again with --data",
        metavar="FILE",
    )
    data: tuple[str, ...] | None = setting(
        "your own bitext, such as eng-deu=talks.tsv; give the option once for each pair. FILE is "
        "a .tsv, a .jsonl or two text files SOURCE,TARGET, also as .gz or .xz. Columns are named "
        "by FILE.tsv?source=english&target=german, and further ones by &domain=COLUMN, "
        "&split_column=COLUMN&split=train, &format=tsv",
        group="text",
        metavar="PAIR=FILE",
    )
    valid: tuple[str, ...] | None = setting(
        "validation text for --data (default: a twentieth held out, at most 400 sentences)",
        metavar="PAIR=FILE",
    )
    corpus: str | None = setting("a corpus of `data list` (default: conlang)")
    pairs: str | None = setting(
        "language pairs to train (default: all out of English, or of src)", metavar="PAIR,..."
    )
    concepts: int = setting("conlang: words to learn", FIRST_RUN["concepts"])
    languages: str | None = setting(
        "conlang: names of its languages; the default pairs go from the first to the others. Also "
        "name the languages that an upgrade will add later (default: src,aaa,bbb)",
        metavar="NAME,...",
    )
    similarity: float = setting("conlang: share of words in common, 0 to 1", 0.0)
    tags: Literal["auto", "none", "source", "both"] = setting(
        "where language tags stand; auto: the target's tag before the source if targets differ",
        "auto",
    )
    weights: str | None = setting(
        "weight of each pair, per sentence, in the order of --data or --pairs",
        group="mixture (default: as many sentences as a pair has)",
        metavar="P,...",
    )
    temperature: float | None = setting("weights are size ** (1 / temperature)")
    upsample: tuple[str, ...] | None = setting(
        "multiply the size of a pair by FACTOR", metavar="PAIR=FACTOR"
    )
    arch: Literal["t5", "fairseq"] = setting("Paper A's shape, or Paper B's", "t5", group="model")
    d_model: int = setting("width of the model", 32)
    layers: int = setting("layers of each stack", 1)
    heads: int = setting("attention heads", 4)
    d_ff: int | None = setting("feed-forward width (default: 4 times --d-model)")
    dropout: float = setting("dropout between and inside blocks", 0.0)
    attention_dropout: float = setting("dropout of attention weights, with --arch fairseq", 0.0)
    pieces: int = setting("size of the vocabulary that is trained", 4000)
    vocabulary_temperature: float = setting(
        "text for the vocabulary is sampled by size ** (1 / T)", 1.0, metavar="T"
    )
    vocabulary: Path | None = setting(
        "use this vocabulary instead of training one", metavar="FILE.model"
    )
    training: TrainingConfig = field(
        metadata={
            "group": "training",
            "defaults": USUAL,
            "notes": {
                "learning_rate": "default: 0.3 for adafactor, 0.005 for adamw",
                "target_tokens": f"default: {FIRST_BUDGET:,}",
            },
        }
    )
    out: Path | None = setting(
        "folder of the run. A stopped run goes on in its folder, and so does one with a larger "
        "budget (default: a folder below runs/, named by the settings)",
        group="run",
        metavar="FOLDER",
    )
    results: Path | None = setting(
        "results store that the run's losses are added to, which `mnmt_repro.results` reads "
        "(default: `results`, beside the run's folder)",
        metavar="FOLDER",
    )
    seed: int = setting("seed of initial weights, dropout and order of data", 1)
    device: str = setting(
        "cpu, cuda, cuda:1, ...; under torchrun cuda is each process's own", "cpu"
    )
    threads: int = setting("processor threads; one is best for small models", 1)
    shard: bool = setting(
        "under torchrun: each process holds its part of weights, gradients and optimiser state in "
        "place of a whole copy (FSDP2). Goes with --optimiser adamw",
        False,
    )
    tensorboard: Path | None = setting(
        "write the loss and learning rate of each step for TensorBoard, which the extra "
        "mnmt-repro[tensorboard] installs",
        metavar="FOLDER",
    )
    recompute: bool = setting(
        "compute each layer again in the backward pass, which takes less memory and a third more "
        "time. The result is the same to the bit",
        False,
    )
    checkpoint_seconds: float = setting("seconds between checkpoints", 30.0)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser; `given` of what it returns holds those that were given."""
    parser.register("action", None, Noted)
    parser.register("action", "append", NotedAppend)
    parser.register("action", "store_true", NotedTrue)
    parser.set_defaults(given=frozenset())
    add_fields(parser, TrainOptions)


def read_options(options: argparse.Namespace) -> TrainOptions:
    """What the options come to when presets and old runs have filled in those not given."""
    return read_fields(
        options, TrainOptions, given=options.given, training=training_config(options)
    )


def training_config(options: argparse.Namespace) -> TrainingConfig:
    """The training that the options ask for."""
    given = {
        field.name: getattr(options, field.name) for field in dataclasses.fields(TrainingConfig)
    }
    try:
        return usual_training(**given)
    except InputError as error:  # which names its fields
        names = "|".join(field.name for field in dataclasses.fields(TrainingConfig))
        told = re.sub(rf"\b({names})\b", lambda at: f"--{at[1]}".replace("_", "-"), str(error))
        raise InputError(told.removeprefix("training ")) from error


def model_config(options: TrainOptions, vocab_size: int) -> ModelConfig:
    """The model that the options ask for."""
    if options.heads < 1 or options.d_model % options.heads:
        raise InputError(f"--heads {options.heads}: must divide --d-model {options.d_model}")
    shape = {name: getattr(options, name) for name in ("d_model", "layers", "heads", "d_ff")}
    shape |= {"vocab_size": vocab_size, "dropout": options.dropout}
    if options.arch == "fairseq":
        return ModelConfig.fairseq(**shape, attention_dropout=options.attention_dropout)
    if options.attention_dropout:
        raise InputError("--attention-dropout goes with --arch fairseq")
    return ModelConfig.t5(**shape)
