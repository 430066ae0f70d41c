"""The options of `upgrade`, and the upgrade that they ask for."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mnmt_repro.cli.gamma import parse_gamma
from mnmt_repro.cli.options import by_place, check_count, check_seed
from mnmt_repro.errors import InputError
from mnmt_repro.option_fields import required, setting
from mnmt_repro.upgrading.config import (
    FISHER_SENTENCES,
    DepthConfig,
    DepthInit,
    Kind,
    NewRows,
    Normalisation,
    Place,
    UpgradeConfig,
    WidthConfig,
    WidthInit,
    published,
)

PLACES = get_args(Place)


def over(kind: type, name: str, **how: Any) -> Any:
    """An option that takes the place of a configuration's field where it is given.

    It has the field's help, with the field's default where the help does not say one.
    """
    (found,) = (each for each in dataclasses.fields(kind) if each.name == name)
    help = found.metadata["help"]
    if "(default: " not in help:
        help += f" (default: {found.default})"
    return setting(help, sets=(kind, name), **how)


@dataclass(frozen=True, kw_only=True)
class UpgradeOptions:
    """The options of `upgrade`; None where one is not given."""

    source: Path = required(
        "folder of the old model, as `train` wrote it, or a Hugging Face model (M2M-100, "
        "NLLB-200, T5 v1.1, mT5, MADLAD-400), whose optimiser state and schedule begin anew, "
        "with adamw at a rate of 1e-4; it is only read",
        flags=("--from",),
        required=True,
        metavar="RUN",
    )
    out: Path = required(
        "new folder for the upgraded model",
        flags=("-o", "--out"),
        required=True,
        metavar="FOLDER",
    )
    preset: Kind | None = setting(
        "settings of Paper B: same (old parameters at half the learning rate), wide (also twice "
        "the feed-forward width) or deep (also six more layers in each stack; the rate of old "
        "parameters rises from 0.05 to 0.5 over --steps). Options beside it replace its values",
    )
    vocabulary: Path | None = setting(
        "vocabulary of old and new languages: the model's own with more pieces (`data extend`), a "
        "new one (`data vocabulary`), or one made elsewhere (`data adopt`) (default: the old one)",
        flags=("--vocab", "--vocabulary"),
        group="what is new",
        metavar="FILE.model",
    )
    wider: float | None = over(UpgradeConfig, "wider")
    deeper: str | None = setting(
        "layers added to each stack, or to encoder and decoder (default: 0)",
        metavar="N or N,M",
    )
    at: str | None = setting(
        f"where the new layers go, one of {', '.join(PLACES)}: one place for both stacks, or one "
        "for the encoder and one for the decoder (default: bottom,top)",
        metavar="PLACE or PLACE,PLACE",
    )
    init: NewRows | None = setting(
        "embeddings of new pieces: the mean of the old pieces that the new piece splits into, a "
        "copy of the embedding of <unk>, or random. With --preset the default is unk, as "
        "published; with byte fallback, <unk> is hardly trained (default: mean)",
        sets=(UpgradeConfig, "embeddings"),
        group="how it is made",
    )
    width_init: WidthInit | None = over(WidthConfig, "init")
    noise: float | None = over(WidthConfig, "noise")
    normalisation: Normalisation | None = over(WidthConfig, "normalisation")
    depth_init: DepthInit | None = over(DepthConfig, "init")
    keep: Literal["all", "body", "nothing"] | None = over(UpgradeConfig, "keep")
    seed: int | None = over(UpgradeConfig, "seed")
    gamma: str | None = setting(
        "factors of the learning rate for old parameters and new ones; a factor is a number, or "
        "START:END:STEPS for one that rises (STEPS left out: --steps) (default: 1,1)",
        group="how training goes on",
        metavar="OLD or OLD,NEW",
    )
    fisher_threshold: str | None = setting(
        "factor of the learning rate for old parameters whose Fisher information per target "
        "token is above F, as published. Several rising thresholds make a step function. "
        "Parameters below the first one have the factor OLD of --gamma",
        metavar="F=FACTOR,...",
    )
    fisher_sentences: int | None = setting(
        "validation sentences of each old pair from which Fisher information is computed (default: "
        f"{FISHER_SENTENCES})",
        metavar="N",
    )
    data: tuple[str, ...] | None = setting(
        "with --fisher-threshold: the old model's training text, if it was your own and its files "
        "have moved. Only what `train` held out of it is read",
        metavar="PAIR=FILE",
    )
    valid: tuple[str, ...] | None = setting(
        "with --fisher-threshold, instead of --data: the text that the old model had as --valid",
        metavar="PAIR=FILE",
    )
    steps: int | None = setting("steps over which a factor without STEPS rises", metavar="N")
    optimiser: Literal["carried", "reset"] | None = over(UpgradeConfig, "optimiser")
    schedule: Literal["continued", "reset", "constant"] | None = over(UpgradeConfig, "schedule")
    checkpoint: Literal["last", "best"] | None = setting(
        "which weights of the old model are upgraded; the best ones have no optimiser state "
        "(default: last)",
    )
    loss_on: tuple[str, ...] | None = setting(
        "print the loss on this text before and after, once for each direction (default: the "
        "validation text of the old pairs, where it is still there; a Hugging Face model has none)",
        metavar="PAIR=FILE",
    )
    json: bool = setting("print JSON in place of a table", False)

    def given(self, kind: type) -> dict[str, Any]:
        """Fields of a configuration that options take the place of, by name."""
        return {
            each.metadata["sets"][1]: value
            for each in dataclasses.fields(self)
            if each.metadata.get("sets", (None,))[0] is kind
            and (value := getattr(self, each.name)) is not None
        }


def upgrade_config(options: UpgradeOptions) -> UpgradeConfig:
    """The upgrade that the options ask for: the preset's, and over it what is given.

    Raises
    ------
    InputError
        When an option cannot be read or is out of its range.
    """
    if options.seed is not None:
        check_seed(options.seed)
    check_count(options.steps, "--steps", "steps")
    if options.preset == "deep" and options.steps is None and options.gamma is None:
        raise InputError("--preset deep: say --steps, over which its learning-rate factor rises")
    base = (
        UpgradeConfig() if options.preset is None else published(options.preset, options.steps or 1)
    )
    given, depth = options.given(UpgradeConfig), options.given(DepthConfig)
    if options.preset is None and options.vocabulary is not None and options.keep is None:
        given.setdefault("embeddings", "mean")
    if options.wider is not None and not 1 <= options.wider < math.inf:
        raise InputError(
            f"--wider {options.wider:g}: give 1 or more; a model cannot be made narrower"
        )
    if options.noise is not None and not 0 <= options.noise < math.inf:
        raise InputError(f"--noise {options.noise:g}: give a standard deviation, 0 or more")
    if options.deeper is not None:
        depth["encoder"], depth["decoder"] = _two(options.deeper, "--deeper", _layers)
    if options.at is not None:
        depth["encoder_at"], depth["decoder_at"] = _two(options.at, "--at", _place)
    if options.gamma is not None:
        parts = by_place(options.gamma, "--gamma")
        if not 1 <= len(parts) <= 2:
            raise InputError(f"--gamma {options.gamma}: write OLD or OLD,NEW")
        gammas = [parse_gamma(part, options.steps, f"--gamma {part}") for part in parts]
        given |= dict(zip(("gamma_old", "gamma_new"), gammas, strict=False))
    return dataclasses.replace(
        base,
        width=dataclasses.replace(base.width, **options.given(WidthConfig)),
        deeper=dataclasses.replace(base.deeper, **depth),
        **given,
    )


def _two(text: str, option: str, read: Any) -> tuple[Any, Any]:
    """One value for both stacks, or one for the encoder and one for the decoder."""
    parts = by_place(text, option)
    if not 1 <= len(parts) <= 2:
        raise InputError(f"{option} {text}: give one for both stacks, or ENCODER,DECODER")
    values = [read(part, f"{option} {text}") for part in parts]
    return values[0], values[-1]


def _layers(text: str, where: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no number of layers") from None
    if count < 0:
        raise InputError(f"{where}: give 0 or more; a model cannot be made shallower")
    return count


def _place(text: str, where: str) -> str:
    if text not in PLACES:
        raise InputError(f"{where}: must be one of {', '.join(PLACES)}")
    return text
