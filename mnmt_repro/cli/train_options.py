"""The options of `train`, and the training and the model that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli.continuing import UpgradedFolder, of_upgraded, read_upgraded
from mnmt_repro.cli.options import add_fields, refuse_excluded
from mnmt_repro.cli.presets import Preset, of_preset, of_run
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.errors import InputError
from mnmt_repro.runs.grid import SHAPE, Arch, Size
from mnmt_repro.training.config import BUDGET, FIRST_BUDGET, USUAL, TrainingConfig, usual_training
from mnmt_repro.typed_config import Amount, Count, Few, Part, Positive, Seed, Share, setting

FIRST_CONLANG = ConlangConfig(concepts=64, syllables=24, min_concepts=4)
"""The conlang of a first run: small enough to be learned in a minute."""
TRAINING = tuple(each.name for each in dataclasses.fields(TrainingConfig))
SETTLED = (
    "arch d_model layers heads d_ff dropout attention_dropout pieces vocabulary "
    "vocabulary_temperature"
)
"""Options that an upgraded model has settled."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `train`."""

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
    conlang: ConlangConfig | None = None  # of the run that settings are taken from; no option
    concepts: Count | None = setting("conlang: words to learn (default: 64)")
    languages: str | None = setting(
        "conlang: names of its languages; the default pairs go from the first to the others. Also "
        "name the languages that an upgrade will add later (default: src,aaa,bbb)",
        metavar="NAME,...",
    )
    similarity: Share | None = setting("conlang: share of words in common, 0 to 1 (default: 0)")
    tags: Literal["auto", "none", "source", "both"] = setting(
        "where language tags stand; auto: the target's tag before the source if targets differ",
        "auto",
    )
    weights: str | None = setting(
        "weight of each pair, per sentence, in the order of --data or --pairs",
        group="mixture (default: as many sentences as a pair has)",
        metavar="P,...",
    )
    temperature: Positive | None = setting("weights are size ** (1 / temperature)")
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
    vocabulary_temperature: Positive = setting(
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
    seed: Seed = setting("seed of initial weights, dropout and order of data", 1)
    device: str = setting(
        "cpu, cuda, cuda:1, ...; under torchrun cuda is each process's own", "cpu"
    )
    threads: Few = setting("processor threads; one is best for small models", 1)
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
    checkpoint_seconds: Amount = setting("seconds between checkpoints", 30.0)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser; what it parses holds those alone that are given."""
    add_fields(parser, TrainOptions)
    names = {each.name for each in dataclasses.fields(TrainOptions)} | set(TRAINING)
    for action in parser._actions:
        if action.dest in names:
            if action.default not in (None, False):
                action.help = f"{action.help} (default: {action.default})"
            action.default = argparse.SUPPRESS


def settle(parsed: argparse.Namespace) -> tuple[TrainOptions, UpgradedFolder | None]:
    """The options of a run, and the upgraded model that it goes on from.

    An option has the value that is given, else that of ``--config``, ``--preset`` or the upgraded
    model, else its default. A budget that is given, in steps or in tokens, stands alone, and a
    learning rate is taken over with its optimiser only.

    Raises
    ------
    InputError
        When options exclude each other or are out of range, or a file that they name does not
        serve.
    """
    names = {each.name for each in dataclasses.fields(TrainOptions)} | set(TRAINING)
    asked = {name: value for name, value in vars(parsed).items() if name in names}
    continued = "continue_from" in asked
    refuse_excluded(
        asked,
        ("preset config", continued, "{}: the upgraded model has its settings; leave one of the "
         "two out"),
        (SETTLED, continued, "{}: the upgraded model's own stays; leave it out, or make another "
         "upgrade"),
        ("corpus pairs", "data" in asked, "--data: your own text; leave out --corpus and --pairs"),
        ("valid", "data" not in asked, "--valid goes with --data; registered corpora have their "
         "own"),
        ("temperature upsample", "weights" in asked, "--weights: leave out --temperature and "
         "--upsample, or it"),
    )  # fmt: skip
    upgraded, base = None, {}
    if continued:
        upgraded = read_upgraded(asked["continue_from"])
        base = of_upgraded(upgraded, asked)
        if asked.get("tags") == "auto":  # as the old model's
            del asked["tags"]
    if "config" in asked:
        base |= of_run(asked["config"], asked)
    if "preset" in asked:
        base |= of_preset(asked["preset"])
        if not asked.keys() & {"data", "corpus"}:
            raise InputError(f"--preset {asked['preset']}: name its text, with --data or --corpus")
    if asked.keys() & set(BUDGET):
        base |= dict.fromkeys(BUDGET)
    if asked.get("optimiser", base.get("optimiser")) != base.get("optimiser"):
        base.pop("learning_rate", None)
    values = base | asked
    training = {name: values.pop(name) for name in TRAINING if name in values}
    try:
        return TrainOptions(**values, training=usual_training(**training)), upgraded
    except InputError as error:
        raise _as_options(error, TRAINING) from error


def model_config(options: TrainOptions, vocab_size: int) -> ModelConfig:
    """The model that the options ask for."""
    size = Size(**{name: getattr(options, name) for name in SHAPE})
    try:
        return size.model(vocab_size, options.arch, options.dropout, options.attention_dropout)
    except InputError as error:
        raise _as_options(error, (*SHAPE, "attention_dropout", "arch")) from error


def _as_options(error: InputError, fields: Iterable[str]) -> InputError:
    """The same mistake, its fields named as options."""
    names = "|".join(fields)
    text = re.sub(rf"\b({names})\b", lambda at: f"--{at[1]}".replace("_", "-"), str(error))
    return InputError(text.removeprefix("training "))
