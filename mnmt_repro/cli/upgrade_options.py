"""The options of `upgrade`, and the upgrade that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from mnmt_repro.cli.options import SEEDS, add_json, by_place, check_seed, comma_list
from mnmt_repro.cli.scaling import parse_factor
from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.config import (
    FISHER_SENTENCES,
    DepthInit,
    Kind,
    NewRows,
    Normalisation,
    Place,
    UpgradeConfig,
    WidthInit,
    published,
)

PLACES = get_args(Place)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="RUN",
        help="folder of the old model, as `train` wrote it, or a Hugging Face model (M2M-100, "
        "NLLB-200, T5 v1.1, mT5, MADLAD-400); it is only read",
    )
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FOLDER", help="new folder for the start"
    )
    parser.add_argument(
        "--preset",
        choices=get_args(Kind),
        help="settings of Paper B: same (old parameters at half the rate), wide (besides, twice "
        "the feed-forward width) or deep (six layers more a stack, their rate rising from 0.05 "
        "to 0.5 over --steps); options given beside it win",
    )

    new = parser.add_argument_group("what is new")
    new.add_argument(
        "--vocab",
        "--vocabulary",
        dest="vocabulary",
        type=Path,
        metavar="FILE.model",
        help="vocabulary of old and new languages, of `data vocabulary` or, for any SentencePiece "
        "model of your own, of `data adopt` (default: the old one)",
    )
    new.add_argument("--wider", type=float, help="factor of the feed-forward width (default: 1)")
    new.add_argument(
        "--deeper",
        metavar="N or N,M",
        help="layers added to each stack, or to encoder and decoder (default: 0)",
    )
    new.add_argument(
        "--at",
        metavar="PLACE or PLACE,PLACE",
        help=f"where they go, of {', '.join(PLACES)}: in both stacks, or in encoder and decoder "
        "(default: bottom,top)",
    )

    made = parser.add_argument_group("how it is made")
    made.add_argument(
        "--init",
        choices=get_args(NewRows),
        help="embeddings of new pieces: a copy of <unk>'s, at random, or the mean of the old "
        "pieces that each splits into (default: unk, as published; where the old vocabulary has "
        "byte fallback, as those made here, <unk> never occurs, so that its embedding is hardly "
        "trained)",
    )
    made.add_argument(
        "--width-init",
        choices=get_args(WidthInit),
        help="new hidden units: noisy copies, between the old ones, or at random "
        "(default: concatenation)",
    )
    made.add_argument(
        "--noise", type=float, help="standard deviation of the copies' noise (default: 0.01)"
    )
    made.add_argument(
        "--normalisation",
        choices=get_args(Normalisation),
        help="how widened matrices are scaled back: to their old norm, as published, or so that "
        "the layer computes what it did before noise (default: frobenius; but for concatenation "
        "function, where the norm does not keep what is computed: in a gated layer, and where "
        "--wider is no whole number)",
    )
    made.add_argument(
        "--depth-init",
        choices=get_args(DepthInit),
        help="new layers: the mean of all old ones, a copy of the nearest, or at random "
        "(default: average)",
    )
    made.add_argument(
        "--keep",
        choices=("all", "body", "nothing"),
        help="old weights that are used: all, all but the embedding tables, which then count as "
        "new, or none, where --lr-scaling's OLD still goes to what would be old, as in Paper B's "
        "Table 3 (default: all)",
    )
    made.add_argument(
        "--seed",
        type=int,
        help="of noise and of what is drawn at random (default: one that goes with the old run, so "
        "that no two upgrades in a row draw alike)",
    )

    training = parser.add_argument_group("how training goes on")
    training.add_argument(
        "--lr-scaling",
        metavar="OLD or OLD,NEW",
        help="factors of the learning rate for old parameters and new ones; a factor is a number, "
        "or START:END:STEPS for one that rises (STEPS left out: --steps) (default: 1,1)",
    )
    training.add_argument(
        "--fisher-threshold",
        metavar="F=FACTOR,...",
        help="factor of old parameters whose Fisher information a target token is above F, as "
        "published; several, rising, make a function of steps. Those below the first have "
        "--lr-scaling's OLD",
    )
    training.add_argument(
        "--fisher-sentences",
        type=int,
        metavar="N",
        help="validation sentences of each old pair that Fisher information is taken on (default: "
        f"{FISHER_SENTENCES})",
    )
    training.add_argument(
        "--data",
        action="append",
        metavar="PAIR=FILE",
        help="with --fisher-threshold: the old model's training text, where it was your own; what "
        "`train` held out of it is used",
    )
    training.add_argument(
        "--valid",
        action="append",
        metavar="PAIR=FILE",
        help="with --fisher-threshold, instead of --data: what the old model's own --valid was",
    )
    training.add_argument(
        "--steps", type=int, metavar="N", help="steps over which a rising factor rises"
    )
    training.add_argument(
        "--optimiser",
        choices=("carried", "reset"),
        help="the optimiser's state of old parameters (default: carried)",
    )
    training.add_argument(
        "--schedule",
        choices=("continued", "reset", "constant"),
        help="learning rate: from where the old model stopped, with a new warm-up, or `train "
        "--learning-rate` at every step, or with adafactor at most 1 / sqrt(step) (default: "
        "continued)",
    )
    training.add_argument(
        "--checkpoint",
        choices=("last", "best"),
        help="the old model's weights; its best ones have no optimiser state to carry (default: "
        "last)",
    )
    parser.add_argument(
        "--loss-on",
        action="append",
        default=[],
        metavar="PAIR=FILE",
        help="print the loss on this text before and after, once for each direction",
    )
    add_json(parser)


def upgrade_config(options: argparse.Namespace) -> UpgradeConfig:
    """The upgrade that the options ask for: the preset's, and over it what is given.

    Raises
    ------
    InputError
        When an option cannot be read or is out of its range.
    """
    if options.seed is not None:
        check_seed(options.seed)
    if options.steps is not None and options.steps < 1:
        raise InputError(f"--steps {options.steps}: give a number of steps, 1 or more")
    if options.preset == "deep" and options.steps is None and options.lr_scaling is None:
        raise InputError("--preset deep: say --steps, over which its learning-rate factor rises")
    base = (
        UpgradeConfig() if options.preset is None else published(options.preset, options.steps or 1)
    )
    given: dict[str, Any] = {
        "wider": options.wider,
        "embeddings": options.init,
        "keep": options.keep,
        "optimiser": options.optimiser,
        "schedule": options.schedule,
        "seed": options.seed,
    }
    width: dict[str, Any] = {
        "init": options.width_init,
        "noise": options.noise,
        "normalisation": options.normalisation,
    }
    depth: dict[str, Any] = {"init": options.depth_init}
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
    if options.lr_scaling is not None:
        parts = by_place(options.lr_scaling, "--lr-scaling")
        if not 1 <= len(parts) <= 2:
            raise InputError(f"--lr-scaling {options.lr_scaling}: write OLD or OLD,NEW")
        factors = [parse_factor(part, options.steps, f"--lr-scaling {part}") for part in parts]
        given["gamma_old"] = factors[0]
        given["gamma_new"] = factors[1] if len(factors) > 1 else None
    return dataclasses.replace(
        base,
        width=dataclasses.replace(base.width, **_only(width)),
        deeper=dataclasses.replace(base.deeper, **_only(depth)),
        **_only(given),
    )


def settle_seed(
    options: argparse.Namespace, config: UpgradeConfig, about: Mapping[str, Any]
) -> UpgradeConfig:
    """The upgrade with a seed, the old run's identity's where none is given.

    Parameters
    ----------
    about
        The old run's `run.json`.

    Raises
    ------
    InputError
        When weights are to be drawn beside old ones that began as just these draws.
    """
    if options.seed is None:
        return dataclasses.replace(config, seed=zlib.crc32(about["identity"].encode()) % SEEDS)
    earlier = (about.get("continued_from") or {}).get("upgrade", {}).get("seed")
    wider, deeper = config.wider != 1, bool(config.deeper.encoder or config.deeper.decoder)
    drawn = (
        config.keep == "body"
        or (bool(options.vocabulary) and config.embeddings == "random")
        or (wider and config.width.init == "random")
        or (deeper and config.deeper.init == "random")
    )
    if options.seed in (about["seed"], earlier) and drawn and config.keep != "nothing":
        raise InputError(
            f"--seed {options.seed}: the old model began as what this seed draws, and what is new "
            "would begin as old weights did; give another, or leave it out"
        )
    return config


def refuse_idle(
    options: argparse.Namespace, config: UpgradeConfig, *, more_pieces: bool = False
) -> None:
    """Refuse options that nothing asked for would use, lest they be thought to act.

    Parameters
    ----------
    more_pieces
        Whether there are new pieces without a new vocabulary, as of a conlang's new languages.
    """
    wider, deeper = config.wider != 1, bool(config.deeper.encoder or config.deeper.decoder)
    pieces = bool(options.vocabulary) or more_pieces
    tables, kept = config.keep == "all", config.keep != "nothing"
    copied = config.width.init == "concatenation"
    spans = [*comma_list(options.lr_scaling or ""), *comma_list(options.fisher_threshold or "")]
    rising = any(span.count(":") == 1 for span in spans)
    rising |= options.preset == "deep" and options.lr_scaling is None
    carried = options.optimiser if options.optimiser == "carried" else None
    two_rates = options.lr_scaling if len(comma_list(options.lr_scaling or "")) > 1 else None
    anew = bool(pieces or wider or deeper or config.keep == "body")
    for option, given, used, needed in (
        ("--init", options.init, pieces, "--vocab"),
        ("--init", options.init, tables, "--keep all"),
        ("--width-init", options.width_init, wider, "--wider"),
        ("--width-init", options.width_init, kept, "old weights (--keep)"),
        ("--normalisation", options.normalisation, wider, "--wider"),
        (
            "--normalisation",
            options.normalisation,
            kept and config.width.init != "random",
            "units that come from old ones",
        ),
        ("--noise", options.noise, wider and copied, "--wider, and units that are copies"),
        ("--noise", options.noise, kept, "old weights (--keep)"),
        ("--depth-init", options.depth_init, deeper, "--deeper"),
        ("--depth-init", options.depth_init, kept, "old weights (--keep)"),
        ("--at", options.at, deeper, "--deeper"),
        ("--lr-scaling OLD,NEW", two_rates, anew, "--vocab, --wider or --deeper: nothing is new"),
        ("--optimiser carried", carried, kept, "old weights (--keep)"),
        ("--checkpoint", options.checkpoint, kept, "old weights (--keep)"),
        ("--fisher-threshold", options.fisher_threshold, kept, "old weights (--keep)"),
        ("--steps", options.steps, rising, "a factor that rises and does not say its own steps"),
        (
            "--fisher-sentences",
            options.fisher_sentences,
            options.fisher_threshold,
            "--fisher-threshold",
        ),
    ):
        if given is not None and not used:
            raise InputError(f"{option}: has no effect without {needed}; add it, or leave this out")


def _only(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
