"""What takes the place of the defaults of `train`: published settings, or another run's."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.cli.continuing import read_upgraded
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.errors import InputError
from mnmt_repro.runs.trained import read_about
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


def of_run(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Options by the `run.json` of a run that began with random weights.

    Parameters
    ----------
    options
        Of the command line, which say of which text its weights are.

    Raises
    ------
    InputError
        When it is no such run, or the text of its pairs has to be given.
    """
    where = f"--config {file}"
    try:
        about = read_about(file)
    except InputError as error:
        cause = str(error).partition("; train again")[0]
        raise InputError(f"{where}: {cause}; name a run.json that `train` wrote") from error
    if "upgrade" in about or "continued_from" in about:
        raise InputError(f"{where}: its model was upgraded; see --continue-from")
    model = about["model"]
    values = {
        **about["training"],
        **{name: model[name] for name in ("d_model", "d_ff", "heads", "dropout")},
        "attention_dropout": model["attention_dropout"],
        "arch": "t5" if model["feed_forward"] == "gated-gelu" else "fairseq",
        "layers": model["encoder_layers"],
        "tags": about["tags"],
        "seed": about["seed"],
        **({} if options.data else _text(about)),
    }
    if about["conlang"] is None:
        values["pieces"] = model["vocab_size"]
    pairs = about["pairs"]
    if about["corpus"] == "own":
        pairs = [spec.partition("=")[0] for spec in options.data or ()]
    if not (options.pairs or options.weights or options.temperature or options.upsample):
        if set(pairs) != set(about["mixture"]):
            known = ", ".join(about["mixture"])
            raise InputError(f"{where}: give the text of its pairs ({known}) with --data")
        values["weights"] = ",".join(repr(about["mixture"][pair]) for pair in pairs)
    return values


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
    return values | _text(about)


def _text(about: Mapping[str, Any]) -> dict[str, Any]:
    """The text that a `run.json` names: corpus and pairs, unless it is a user's, and languages."""
    values: dict[str, Any] = {}
    if about["corpus"] != "own":
        values |= {"corpus": about["corpus"], "pairs": ",".join(about["pairs"])}
    if about["conlang"] is not None:
        values["conlang"] = build(ConlangConfig, about["conlang"])
    return values
