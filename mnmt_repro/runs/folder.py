"""Which run a folder holds: the same one goes on there, another is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.runs.lock import run_lock
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.trained import RUN, VOCABULARY, check_free, read_about, write_about
from mnmt_repro.training.checkpoint import copy_checkpoint, read_progress
from mnmt_repro.training.config import BUDGET, LAST, STEM, TrainingConfig
from mnmt_repro.training.loop import finished, how_far


def describe(folder: Path, spec: RunSpec, vocabulary: Vocabulary, more: Mapping[str, Any]) -> None:
    """Write what every command that opens the model needs beside its checkpoints.

    Parameters
    ----------
    more
        Further entries of `run.json`.

    Raises
    ------
    InputError
        When the folder holds another vocabulary.
    """
    if not isinstance(vocabulary, SyllableVocabulary):
        vocabulary.save(folder / VOCABULARY)
    about = {
        "identity": spec.identity,
        **spec.about,
        "vocabulary": vocabulary.hash,
        "model": dataclasses.asdict(spec.model),
    }
    write_about(folder, {**about, **more})


def find_run(folder: Path, spec: RunSpec) -> dict[str, Any] | None:
    """What `run.json` of a user's run says where its folder has been begun; None where it is free.

    Raises
    ------
    InputError
        When the folder holds something else, or the run has gone beyond its new budget.
    """
    if not (folder / RUN).exists():
        check_free(folder, ours=("lock", VOCABULARY))
        return None
    known = read_about(folder)
    if known["identity"] != spec.identity:
        why = f"holds another run ({_differences(spec, known)}); choose another folder"
        raise InputError(f"--out {folder}: {why}")
    _check_budget(folder, known, spec.training)
    return known


def take_run(folder: Path, spec: RunSpec, held: ExitStack) -> None:
    """Lock the folder of a user's run; put a run that is to be longer back to before its decay.

    Parameters
    ----------
    held
        Keeps the lock until it is closed.

    Raises
    ------
    InputError
        When the folder cannot be written, or another process works or has begun there.
    """
    try:
        held.enter_context(run_lock(folder))
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be written: {error.strerror}") from error
    known = find_run(folder, spec)  # another process may have begun meanwhile
    if known is None or same_budget(known, spec.training) or not (folder / LAST).exists():
        return
    if _reached(folder, known) == STEM:
        copy_checkpoint(folder / STEM, folder / LAST, identity=spec.identity)


def _differences(spec: RunSpec, known: dict[str, Any]) -> str:
    """What sets the run in a folder, `known`, apart from the one asked for."""
    names = ("corpus", "pairs", "mixture", "tags", "seed")
    about = json.loads(json.dumps(spec.about))
    there, here = (
        (run["conlang"] or {}) | {name: run.get(name) for name in names} | run["training"]
        for run in (known, about)
    )
    start = about.get("continued_from") or {}
    if (known.get("continued_from") or {}).get("identity") != start.get("identity"):
        return "it goes on from another upgraded model"
    if not start:
        there |= known["model"]
        size = known["model"]["vocab_size"]
        here |= dataclasses.asdict(dataclasses.replace(spec.model, vocab_size=size))
    unlike = [
        f"{name}: {_shown(there.get(name))} there, {_shown(here.get(name))} here"
        for name in sorted((here.keys() | there.keys()) - set(BUDGET))
        if there.get(name) != here.get(name)
    ]
    return "; ".join(unlike) or "its text, vocabulary or program version differ"


def same_budget(known: dict[str, Any], config: TrainingConfig) -> bool:
    """Whether a run in a folder was asked for with this budget."""
    return all(known["training"][name] == getattr(config, name) for name in BUDGET)


def _check_budget(folder: Path, known: dict[str, Any], config: TrainingConfig) -> None:
    """Refuse to shorten a run below where it stands; a longer budget goes on with it."""
    if same_budget(known, config) or not (folder / LAST).exists():
        return
    if config.first_weights is not None:
        why = "the weights of its run change at a share of the budget; choose another folder"
        raise InputError(f"--out {folder}: {why}")
    progress = read_progress(folder / _reached(folder, known))
    if finished(progress, config) or config.decays(progress.step, progress.target_tokens):
        why = f"its run has gone beyond that ({how_far(progress, config)}); give more"
        raise InputError(f"--out {folder}: {why}")


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
