"""The options of `train`, and the training and the model that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
import re
import typing
from pathlib import Path
from typing import Any

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli.options import Noted
from mnmt_repro.cli.presets import PRESETS
from mnmt_repro.cli.training_text import FIRST_RUN
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import TrainingConfig

PEAK = {"adafactor": 0.3, "adamw": 0.005}
"""Learning rate where none is given: Adafactor's is relative to each parameter's size."""
DEFAULTS = {"warmup_steps": 100, "batch_tokens": 512}
FIRST_BUDGET = 600_000  # target tokens, where neither they nor steps are given

TRAINING_HELP = {
    "learning_rate": "peak of the schedule (default: 0.3 for adafactor, 0.005 for adamw)",
    "warmup_steps": "linear rise to the peak; then it falls with 1 / sqrt(step)",
    "batch_tokens": "target tokens a step",
    "target_tokens": f"budget in target tokens over all pairs (default: {FIRST_BUDGET:,})",
    "steps": "budget in steps, in place of --target-tokens",
    "max_length": "leave out sentence pairs with a side of more tokens",
    "optimiser": "how weights are updated",
    "weight_decay": "share of each weight taken off a step, times the learning rate",
    "beta1": "AdamW: decay of the first moment",
    "beta2": "AdamW: decay of the second moment",
    "clip_norm": "clip the gradient to this norm (default: never)",
    "label_smoothing": "share of probability spread evenly over all pieces",
    "precision": "bfloat16: autocast, for GPUs",
    "curve_points": "validations, spaced evenly in log(target tokens)",
    "keep": "which weights are the result: last, or best on validation",
    "decay_share": "last share of the budget, over which the rate falls linearly to zero; 0.3 "
    "serves well (default: no decay)",
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser; `given` of what it returns holds those that were given."""
    parser.register("action", None, Noted)  # of every option that says nothing else
    parser.set_defaults(given=frozenset())
    parser.add_argument(
        "--continue-from",
        type=Path,
        metavar="FOLDER",
        help="train on a model that `upgrade` wrote, with its learning-rate scaling, optimiser "
        "state and schedule; model options are settled then, and training settings that are not "
        "given, but for the budget, are the old run's",
    )
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        help="published settings for text of your own: Paper A's with the first of its eight "
        "sizes, or Paper B's baseline; options given beside it win. They are for many GPUs (see "
        "the last example) and have not been run here",
    )
    text = parser.add_argument_group("text")
    text.add_argument(
        "--data",
        action="append",
        metavar="PAIR=FILE",
        help="your own bitext, once a pair: PAIR=FILE.tsv, PAIR=FILE.jsonl or PAIR=SOURCE,TARGET "
        "(.gz and .xz too); name columns by FILE.tsv?source=english&target=german, and more by "
        "&domain=COLUMN, &split_column=COLUMN&split=train, &format=tsv",
    )
    text.add_argument(
        "--valid",
        action="append",
        metavar="PAIR=FILE",
        help="validation text for --data (default: a twentieth held out, at most 400 sentences)",
    )
    text.add_argument("--corpus", help="a corpus of `data list` (default: conlang)")
    text.add_argument("--pairs", metavar="PAIR,...", help="default: all out of English (or src)")
    text.add_argument(
        "--concepts", type=int, default=FIRST_RUN["concepts"], help="conlang: words to learn"
    )
    text.add_argument(
        "--similarity", type=float, default=0.0, help="conlang: share of words in common, 0 to 1"
    )
    text.add_argument(
        "--tags",
        choices=("auto", "none", "source", "both"),
        default="auto",
        help="where language tags go; auto: the target's before the source if targets differ",
    )

    mixture = parser.add_argument_group("mixture (default: as many sentences as a pair has)")
    mixture.add_argument("--weights", metavar="P,...", help="per sentence, in the order of pairs")
    mixture.add_argument("--temperature", type=float, help="weights are size ** (1 / temperature)")
    mixture.add_argument(
        "--upsample", action="append", metavar="PAIR=FACTOR", help="count a pair's size so often"
    )

    model = parser.add_argument_group("model")
    model.add_argument(
        "--arch", choices=("t5", "fairseq"), default="t5", help="Paper A's shape, or Paper B's"
    )
    model.add_argument("--d-model", type=int, default=32, help="width")
    model.add_argument("--layers", type=int, default=1, help="layers of each stack")
    model.add_argument("--heads", type=int, default=4, help="attention heads")
    model.add_argument("--d-ff", type=int, help="feed-forward width (default: 4 times --d-model)")
    model.add_argument("--dropout", type=float, default=0.0, help="between and inside blocks")
    model.add_argument(
        "--attention-dropout", type=float, default=0.0, help="of attention, fairseq only"
    )
    model.add_argument(
        "--pieces", type=int, default=4000, help="vocabulary size, where one is trained"
    )
    model.add_argument(
        "--vocabulary-temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="pairs are sampled by size ** (1 / T) to train it",
    )
    model.add_argument(
        "--vocabulary", type=Path, metavar="FILE.model", help="use this vocabulary, train none"
    )
    _add_training(parser.add_argument_group("training"))

    run = parser.add_argument_group("run")
    run.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="the run's; one that was stopped, or that is to have a larger budget, goes on in its "
        "folder (default: one below runs/, named by its settings)",
    )
    run.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="results store that the run's losses are added to, which `mnmt_repro.results` reads "
        "(default: `results`, beside the run's folder)",
    )
    run.add_argument("--seed", type=int, default=1, help="of weights, dropout and order of data")
    run.add_argument(
        "--device",
        default="cpu",
        help="cpu, cuda, cuda:1, ...; under torchrun cuda is each process's own",
    )
    run.add_argument(
        "--threads", type=int, default=1, help="of the processor; one is best for small models"
    )
    run.add_argument(
        "--checkpoint-seconds", type=float, default=30.0, help="time between checkpoints"
    )


def _add_training(group: argparse._ArgumentGroup) -> None:
    """Declare one option for each field of `TrainingConfig`."""
    kinds = typing.get_type_hints(TrainingConfig)
    for field in dataclasses.fields(TrainingConfig):
        options: dict[str, Any] = {"help": TRAINING_HELP[field.name]}
        parts = typing.get_args(kinds[field.name])
        if all(isinstance(part, str) for part in parts) and parts:
            options["choices"] = parts
        else:
            options["type"] = next((part for part in parts), kinds[field.name])
        default = DEFAULTS.get(field.name, field.default)
        options["default"] = None if default is dataclasses.MISSING else default
        group.add_argument(f"--{field.name.replace('_', '-')}", **options)


def training_config(options: argparse.Namespace) -> TrainingConfig:
    """The training that the options ask for."""
    given = {
        field.name: getattr(options, field.name) for field in dataclasses.fields(TrainingConfig)
    }
    if given["learning_rate"] is None:
        given["learning_rate"] = PEAK[options.optimiser]
    if given["target_tokens"] is None and given["steps"] is None:
        given["target_tokens"] = FIRST_BUDGET
    try:
        return TrainingConfig(**given)
    except InputError as error:  # which names its fields
        names = "|".join(field.name for field in dataclasses.fields(TrainingConfig))
        told = re.sub(rf"\b({names})\b", lambda at: f"--{at[1]}".replace("_", "-"), str(error))
        raise InputError(told.removeprefix("training ")) from error


def model_config(options: argparse.Namespace, vocab_size: int) -> ModelConfig:
    """The model that the options ask for."""
    if options.heads < 1 or options.d_model % options.heads:
        raise InputError(f"--heads {options.heads}: must divide --d-model {options.d_model}")
    shape: dict[str, Any] = {
        "vocab_size": vocab_size,
        "d_model": options.d_model,
        "layers": options.layers,
        "heads": options.heads,
        "d_ff": options.d_ff,
        "dropout": options.dropout,
    }
    if options.arch == "fairseq":
        return ModelConfig.fairseq(**shape, attention_dropout=options.attention_dropout)
    if options.attention_dropout:
        raise InputError("--attention-dropout goes with --arch fairseq")
    return ModelConfig.t5(**shape)


def resolve_tags(choice: str, mixture: Mixture) -> Any:
    """Where tags go; `auto` puts them before the source where there are several targets.

    >>> resolve_tags("auto", Mixture.two("eng-deu", "eng-zho", 0.5))
    'source'
    """
    if choice != "auto":
        return choice
    targets = {pair.partition("-")[2] for pair in mixture.pairs}
    return "source" if len(targets) > 1 else "none"
