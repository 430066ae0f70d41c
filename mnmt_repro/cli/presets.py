"""What takes the place of the defaults of `train`: published settings, or an upgraded model's."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.cli.continuing import read_upgraded
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import BUDGET
from mnmt_repro.training.published import PUBLISHED
from mnmt_repro.typed_config import build

Preset = Literal["paper-a", "paper-b"]


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
        **asdict(published.training),
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
