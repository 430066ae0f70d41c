"""The papers' settings as options of `train`, for text of one's own."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any, Literal

from mnmt_repro.errors import InputError

Preset = Literal["paper-a", "paper-b"]


def preset(name: str) -> dict[str, Any]:
    """Options and their published values: Paper A's first size, or Paper B's baseline.

    >>> found = preset("paper-a")
    >>> found["d_model"], found["pieces"], found["batch_tokens"], found["steps"]
    (512, 128000, 500000, 500000)
    """
    from mnmt_repro.cohorts import software25_runs, tiers

    if name == "paper-a":
        model, training, tags = tiers.PAPER_A[0].config, tiers.PAPER_TRAINING, "auto"
        temperature = 1.0
    else:
        published = software25_runs.PAPER
        model, training, tags = published.model("same"), published.training, "both"
        temperature = published.vocabulary(()).temperature
    return {
        "arch": "t5" if name == "paper-a" else "fairseq",
        "d_model": model.d_model,
        "layers": model.encoder_layers,
        "heads": model.heads,
        "attention_dropout": model.attention_dropout,
        "pieces": model.vocab_size,
        "vocabulary_temperature": temperature,
        "tags": tags,
        **asdict(training),
    }


def with_preset(options: argparse.Namespace) -> argparse.Namespace:
    """Options of `train` with those not given taken from `--preset`, if there is one.

    A budget that is given, in steps or in tokens, stands alone.

    Raises
    ------
    InputError
        When the model is an upgraded one, which has its settings.
    """
    if options.preset is None:
        return options
    if options.continue_from is not None:
        raise InputError("--preset: the upgraded model has its settings; leave one of the two out")
    found = preset(options.preset)
    if options.given & {"steps", "target_tokens"}:
        del found["steps"], found["target_tokens"]
    return fill_in(options, found)


def fill_in(options: argparse.Namespace, found: dict[str, Any]) -> argparse.Namespace:
    """Options with those not given taken from `found`, a learning rate only with its optimiser."""
    kept = {name: value for name, value in vars(options).items() if name in options.given}
    if kept.get("optimiser", found["optimiser"]) != found["optimiser"]:
        found = {name: value for name, value in found.items() if name != "learning_rate"}
    return argparse.Namespace(**{**vars(options), **found, **kept})
