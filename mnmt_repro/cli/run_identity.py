"""Which run a folder holds: the same one goes on there, another is refused."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli.train_options import model_config
from mnmt_repro.cli.training_text import TrainingText
from mnmt_repro.corpora.formats import content_hash
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.runs.code_version import code_version
from mnmt_repro.runs.spec import digest
from mnmt_repro.training.checkpoint import copy_checkpoint, read_progress
from mnmt_repro.training.config import BUDGET, LAST, STEM, TrainingConfig
from mnmt_repro.training.loop import finished, standing


def run_identity(options: argparse.Namespace, text: TrainingText, about: dict[str, Any]) -> str:
    """All that decides a run but its budget, as a hash: a larger budget goes on with the same run.

    Parameters
    ----------
    about
        What `run.json` will say of it, as far as known before there is a vocabulary.
    """
    training = {name: value for name, value in about["training"].items() if name not in BUDGET}
    unbounded = about | {"training": training}
    return digest([unbounded, _text_identity(options, text), _model_identity(options)], 12)


def differences(options: argparse.Namespace, known: dict[str, Any], about: dict[str, Any]) -> str:
    """What sets the run in a folder, `known`, apart from the one asked for."""
    names = ("corpus", "pairs", "mixture", "tags", "seed")
    there, here = (
        (run["conlang"] or {}) | {name: run.get(name) for name in names} | run["training"]
        for run in (known, json.loads(json.dumps(about)))
    )
    if (known.get("continued_from") or {}).get("identity") != (
        about.get("continued_from") or {}
    ).get("identity"):
        return "it goes on from another upgraded model"
    if options.continue_from is None and "model" in known:
        there |= known["model"]
        here |= dataclasses.asdict(model_config(options, known["model"]["vocab_size"]))
    told = [
        f"{name}: {_shown(there.get(name))} there, {_shown(here.get(name))} here"
        for name in sorted((here.keys() | there.keys()) - set(BUDGET))
        if there.get(name) != here.get(name)
    ]
    return "; ".join(told) or "its text, vocabulary or program version differ"


def same_budget(known: dict[str, Any], config: TrainingConfig) -> bool:
    """Whether a run in a folder was asked for with this budget."""
    return all(known["training"][name] == getattr(config, name) for name in BUDGET)


def check_budget(folder: Path, known: dict[str, Any], config: TrainingConfig) -> None:
    """Refuse to shorten a run below where it stands; a longer budget goes on with it."""
    if same_budget(known, config) or not (folder / LAST).exists():
        return
    progress = read_progress(folder / _reached(folder, known))
    if finished(progress, config) or config.decays(progress.step, progress.target_tokens):
        raise InputError(
            f"--out {folder}: its run has gone beyond that ({standing(progress, config)}); give "
            "more, or choose another folder"
        )


def leave_decay(folder: Path, known: dict[str, Any], identity: str) -> None:
    """Put a run that is to have another budget back to the step at which its decay began."""
    if (folder / LAST).exists() and _reached(folder, known) == STEM:
        copy_checkpoint(folder / STEM, folder / LAST, identity=identity)


def _reached(folder: Path, known: dict[str, Any]) -> str:
    """The last checkpoint of a run that a run of another budget would also reach."""
    progress, old = read_progress(folder / LAST), TrainingConfig(**known["training"])
    return STEM if old.decays(progress.step, progress.target_tokens) else LAST


def _shown(value: Any) -> str:
    return f"{value:,}" if type(value) is int else str(value)


def shape_name(model: ModelConfig) -> str:
    """Width and layers, those of the decoder where they are not the encoder's.

    >>> shape_name(ModelConfig.t5(vocab_size=9, d_model=8, layers=2, heads=2))
    'd8x2'
    """
    layers = f"{model.encoder_layers}"
    if model.decoder_layers != model.encoder_layers:
        layers += f"-{model.decoder_layers}"
    return f"d{model.d_model}x{layers}"


def _model_identity(options: argparse.Namespace) -> list[Any]:
    """What decides model and vocabulary, known before the vocabulary is there.

    Of an upgraded model the upgrade's identity does, which is in `about`.
    """
    if options.continue_from is not None:
        return []
    if options.vocabulary is not None:
        pieces: Any = Vocabulary.load(options.vocabulary).hash
    else:
        pieces = [options.pieces, options.vocabulary_temperature]
    return [dataclasses.asdict(model_config(options, 1)), pieces]


def _text_identity(options: argparse.Namespace, text: TrainingText) -> list[Any]:
    hashes = [[pair, content_hash(bitext)] for pair, bitext in sorted(text.train.items())]
    hashes += [[pair, content_hash(bitext)] for pair, bitext in sorted(text.valid.items())]
    return [code_version(upgraded=options.continue_from is not None), hashes]
