"""The text that `train` learns from: your own bitext, a registered corpus, or a conlang."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mnmt_repro.cli.options import by_place, comma_list, named_numbers, number
from mnmt_repro.cli.train_options import FIRST_CONLANG, TrainOptions
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.runs.training_text import TextSource, TrainingText

ROUNDED = 1e-3  # how far the sum of `--weights` may be from one


def text_source(options: TrainOptions) -> TextSource:
    """What `--data`, or `--corpus` and `--pairs`, name, and the pieces to write it in."""
    return TextSource(
        data=tuple(options.data or ()),
        valid=tuple(options.valid or ()),
        corpus=options.corpus or "conlang",
        pairs=tuple(comma_list(options.pairs or "")),
        conlang=_conlang(options),
        pieces=options.pieces,
        vocabulary_temperature=options.vocabulary_temperature,
        vocabulary=options.vocabulary,
    )


def _conlang(options: TrainOptions) -> ConlangConfig | None:
    """The generated languages that the options ask for; None where they ask for other text."""
    if options.data or (options.corpus or "conlang") != "conlang":
        return None
    changes: dict[str, Any] = {
        name: value
        for name in ("concepts", "similarity")
        if (value := getattr(options, name)) is not None
    }
    if options.languages is not None:
        languages = tuple(by_place(options.languages, "--languages"))
        changes |= {"languages": languages, "families": None, "orders": None}  # one for each
    return replace(options.conlang or FIRST_CONLANG, **changes)


def read_mixture(options: TrainOptions, text: TrainingText) -> Mixture:
    """The mixture that `--weights`, or `--temperature` and `--upsample`, ask for.

    Without any of them pairs weigh as much as they have sentences; a conlang's, which never end,
    weigh the same.

    Raises
    ------
    InputError
        When there is not a weight for each pair, or `Mixture` refuses them.
    """
    if options.weights is not None:
        weights = [number(part, "--weights") for part in by_place(options.weights, "--weights")]
        if len(weights) != len(text.pairs):
            raise InputError(
                f"--weights {options.weights}: {len(weights)} for {len(text.pairs)} pairs "
                f"({', '.join(text.pairs)})"
            )
        total = math.fsum(weights)
        if 1e-9 < abs(total - 1.0) <= ROUNDED:
            weights = [weight / total for weight in weights]
        return Mixture.of(dict(zip(text.pairs, weights, strict=True)))
    sizes = {pair: len(text.train[pair]) if text.train else 1 for pair in text.pairs}
    return Mixture.from_sizes(
        sizes,
        temperature=1.0 if options.temperature is None else options.temperature,
        upsampling=named_numbers(options.upsample or [], "--upsample"),
    )
