"""The options of `upgrade`, and the upgrade that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from mnmt_repro.cli.options import by_place, number
from mnmt_repro.errors import InputError
from mnmt_repro.runs.trained import is_imported
from mnmt_repro.typed_config import Amount, Count, Natural, Seed, required, setting
from mnmt_repro.upgrading.config import (
    Gamma,
    Kind,
    Place,
    Ramp,
    UpgradeConfig,
    published,
)

PLACES = get_args(Place)


@dataclass(frozen=True, kw_only=True)
class UpgradeOptions:
    """The options of `upgrade`; those of how it is made are fields of `UpgradeConfig`."""

    source: Path = required(
        "the old model, as `train` wrote it, or a Hugging Face model (M2M-100, NLLB-200, T5 v1.1, "
        "mT5, MADLAD-400), whose optimiser and schedule begin anew, with adamw at a rate of 1e-4",
        flags=("--from",),
        required=True,
        metavar="RUN",
    )
    out: Path = required("new folder", flags=("-o", "--out"), required=True, metavar="FOLDER")
    preset: Kind | None = setting(
        "Paper B's settings: same (old parameters at half the rate), wide (also twice the "
        "feed-forward width) or deep (six more layers in each stack; the rate of old parameters "
        "rises from 0.05 to 0.5 over --steps). Options beside it replace its values",
    )
    checkpoint: Literal["last", "best"] = setting(
        "which old weights are upgraded; the best ones have no optimiser state", "last"
    )
    vocabulary: Path | None = setting(
        "vocabulary of old and new languages, by `data extend`, `data vocabulary` or `data adopt` "
        "(default: the old one)",
        flags=("--vocab", "--vocabulary"),
        metavar="FILE.model",
    )
    deeper: str = setting(
        "layers added to each stack, or to encoder and decoder", "0", metavar="N or N,M"
    )
    at: str = setting(
        f"where new layers go, in both stacks or each: {', '.join(PLACES)}",
        "bottom,top",
        metavar="PLACE or PLACE,PLACE",
    )
    config: UpgradeConfig = field(metadata={"group": "how it is made"})
    seed: Seed | None = setting(
        "seed of noise and random weights (default: derived from the old run)"
    )
    gamma: str = setting(
        "learning-rate factors of old and new parameters: numbers, or START:END:STEPS for one that "
        "rises (STEPS left out: --steps). With 0 old parameters stay as they are",
        "1,1",
        group="how training goes on",
        metavar="OLD or OLD,NEW",
    )
    as_new: str | None = setting(
        "parameters of the old model that learn as new ones do, by the beginning of their names, "
        "such as decoder.5",
        metavar="NAME,...",
    )
    steps: Count | None = setting("steps over which a factor without STEPS rises", metavar="N")
    loss_on: tuple[str, ...] = setting(
        "print the loss on this text before and after (default: the old pairs' validation text)",
        (),
        metavar="PAIR=FILE",
    )


def usual(options: argparse.Namespace) -> Mapping[str, Any]:
    """Defaults that follow from other options: a preset's, and what suits the old model."""
    defaults: dict[str, Any] = {}
    if is_imported(getattr(options, "from")):  # it has neither
        defaults = {"optimiser": "reset", "schedule": "reset"}
    if options.preset is not None:
        preset = published(options.preset, 1)
        old = preset.gamma_old  # how long it rises, --steps says
        gamma = f"{old.start}:{old.end}" if isinstance(old, Ramp) else str(old)
        deeper = f"{preset.deeper.encoder},{preset.deeper.decoder}"
        defaults |= {"wider": preset.wider, "deeper": deeper, "gamma": gamma}
    elif options.vocab is not None and options.keep == "all":
        defaults["init"] = "mean"
    return defaults


def upgrade_config(options: UpgradeOptions) -> UpgradeConfig:
    """The upgrade that the options ask for.

    Raises
    ------
    InputError
        When an option cannot be read or is out of its range.
    """
    encoder, decoder = _two(options.deeper, "--deeper", Natural)
    encoder_at, decoder_at = _two(options.at, "--at", Place)
    parts = by_place(options.gamma, "--gamma")
    if len(parts) > 2:
        raise InputError(f"--gamma {options.gamma}: write OLD or OLD,NEW")
    gammas = [parse_gamma(part, options.steps, f"--gamma {part}") for part in parts]
    old, new = (*gammas, options.config.gamma_new)[:2]
    return dataclasses.replace(
        options.config,
        deeper=dataclasses.replace(
            options.config.deeper,
            encoder=encoder,
            decoder=decoder,
            encoder_at=encoder_at,
            decoder_at=decoder_at,
        ),
        seed=options.seed or 0,
        gamma_old=old,
        gamma_new=new,
    )


def _two(text: str, option: str, kind: Any) -> tuple[Any, Any]:
    """One value for both stacks, or one for the encoder and one for the decoder."""
    parts = by_place(text, option)
    if len(parts) > 2:
        raise InputError(f"{option} {text}: give one for both stacks, or ENCODER,DECODER")
    values = [number(part, f"{option} {text}", kind) for part in parts]
    return values[0], values[-1]


def parse_gamma(text: str, steps: int | None, where: str) -> Gamma:
    """Read a learning-rate factor; `where` names the option in an error.

    >>> parse_gamma("0.5", None, ""), parse_gamma("0.05:0.5", 300, "")
    (0.5, Ramp(start=0.05, end=0.5, steps=300))
    """
    start, *rest = text.split(":")
    if len(rest) > 2:
        raise InputError(f"{where}: write a rising factor as START:END:STEPS")
    first = number(start, where, Amount)
    if not rest:
        return float(first)
    if len(rest) == 2:
        steps = number(rest[1], where, Count)
    if steps is None:
        raise InputError(f"{where}: say --steps, over which the factor rises, or START:END:STEPS")
    return Ramp(start=first, end=number(rest[0], where, Amount), steps=steps)
