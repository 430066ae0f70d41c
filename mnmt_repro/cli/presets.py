"""The papers' settings as options of `train`, for text of one's own."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any, Literal

from mnmt_repro.cli.options import refuse_excluded
from mnmt_repro.errors import InputError
from mnmt_repro.runs.trained import read_about
from mnmt_repro.training.published import PUBLISHED

Preset = Literal["paper-a", "paper-b"]

SETTLED = (
    "arch d_model layers heads d_ff dropout attention_dropout pieces vocabulary "
    "vocabulary_temperature"
)
"""Options of `train` that an upgraded model has settled."""


def preset(name: str) -> dict[str, Any]:
    """Options and their published values: Paper A's first size, or Paper B's baseline.

    >>> found = preset("paper-a")
    >>> found["d_model"], found["pieces"], found["batch_tokens"], found["steps"]
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


def with_preset(options: argparse.Namespace) -> argparse.Namespace:
    """Options of `train` with those not given taken from `--preset` or `--config`, if there is one.

    A budget that is given, in steps or in tokens, stands alone.

    Raises
    ------
    InputError
        When an upgraded model has these settings, or `--config` names no run that has them.
    """
    continued = options.continue_from is not None
    both = "{}: the upgraded model has its settings; leave one of the two out"
    settled = "{}: the upgraded model's own stays; leave it out, or make another upgrade"
    refuse_excluded(
        options.given, ("preset config", continued, both), (SETTLED, continued, settled)
    )
    if options.preset is None and options.config is None:
        return options
    found = {} if options.config is None else _of_run(options)
    if options.preset is not None:
        found |= preset(options.preset)
    if options.given & {"steps", "target_tokens"}:
        found |= {"steps": None, "target_tokens": None}
    return fill_in(options, found)


def _of_run(options: argparse.Namespace) -> dict[str, Any]:
    """Options by the `run.json` of a run that began with random weights."""
    where = f"--config {options.config}"
    try:
        about = read_about(options.config)
    except InputError as error:
        cause = str(error).partition("; train again")[0]
        raise InputError(f"{where}: {cause}; name a run.json that `train` wrote") from error
    if "upgrade" in about or "continued_from" in about:
        raise InputError(f"{where}: its model was upgraded; see --continue-from")
    model, own = about["model"], about["corpus"] == "own"
    found = {
        **about["training"],
        **{name: model[name] for name in ("d_model", "d_ff", "heads", "dropout")},
        "attention_dropout": model["attention_dropout"],
        "arch": "t5" if model["feed_forward"] == "gated-gelu" else "fairseq",
        "layers": model["encoder_layers"],
        "tags": about["tags"],
        "seed": about["seed"],
    }
    if about["conlang"] is None:
        found["pieces"] = model["vocab_size"]
    else:
        found |= options_of_conlang(about["conlang"])
    pairs = [spec.partition("=")[0] for spec in options.data or ()] if own else about["pairs"]
    if not own and not options.data:
        found |= {"corpus": about["corpus"], "pairs": ",".join(pairs)}
    if not options.given & {"pairs", "weights", "temperature", "upsample"}:
        if set(pairs) != set(about["mixture"]):
            known = ", ".join(about["mixture"])
            raise InputError(f"{where}: give the text of its pairs ({known}) with --data")
        found["weights"] = ",".join(repr(about["mixture"][pair]) for pair in pairs)
    return found


def options_of_conlang(conlang: dict[str, Any]) -> dict[str, Any]:
    """The options that ask for the generated languages of a `run.json`."""
    found = {name: conlang[name] for name in ("concepts", "similarity")}
    return found | {"languages": ",".join(conlang["languages"])}


def fill_in(options: argparse.Namespace, found: dict[str, Any]) -> argparse.Namespace:
    """Options with those not given taken from `found`, a learning rate only with its optimiser."""
    kept = {name: value for name, value in vars(options).items() if name in options.given}
    if kept.get("optimiser", found["optimiser"]) != found["optimiser"]:
        found = {name: value for name, value in found.items() if name != "learning_rate"}
    return argparse.Namespace(**{**vars(options), **found, **kept})
