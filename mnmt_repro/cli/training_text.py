"""The text that `train` learns from: your own bitext, a registered corpus, or a conlang."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mnmt_repro.cli.options import by_place, comma_list, named_numbers, number
from mnmt_repro.cli.train_options import FIRST_RUN, TrainOptions
from mnmt_repro.corpora.bitext import load_split, parse_spec, read_bitext
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.registry import get_card
from mnmt_repro.errors import InputError
from mnmt_repro.runs.own import TrainingText, hold_out
from mnmt_repro.runs.spec import OWN

ROUNDED = 1e-3  # how far the sum of `--weights` may be from one


def read_bitexts(specs: Iterable[str], option: str = "--data") -> dict[str, Bitext]:
    """Read what `option` names, once a pair.

    Raises
    ------
    InputError
        When a pair is given twice, and as `bitext.read_bitext`.
    """
    texts: dict[str, Bitext] = {}
    for spec in map(parse_spec, specs):
        if spec.pair in texts:
            raise InputError(f"{option} {spec.pair}: given twice; join its files into one")
        texts[spec.pair] = read_bitext(spec)
        if not len(texts[spec.pair]):
            raise InputError(f"{option} {spec.pair}: {spec.paths[0]} holds no sentence")
    return texts


def read_training_text(options: TrainOptions) -> TrainingText:
    """Read what `--data`, or `--corpus` and `--pairs`, name.

    Raises
    ------
    InputError
        When a corpus, a pair or a file is not there.
    """
    if options.data:
        train = read_bitexts(options.data)
        if options.valid:
            valid = read_bitexts(options.valid, "--valid")
            for pair in valid:
                if pair not in train:
                    raise InputError(f"--valid {pair}: the training pairs are {', '.join(train)}")
        else:
            train, valid = hold_out(train)
        return TrainingText(corpus=OWN, pairs=tuple(train), train=train, valid=valid)
    corpus, pairs = options.corpus or "conlang", comma_list(options.pairs or "")
    if len(set(pairs)) < len(pairs):
        raise InputError(f"--pairs {options.pairs}: a pair is named twice")
    if corpus == "conlang":
        config = ConlangConfig(
            **{**FIRST_RUN, "concepts": options.concepts}, similarity=options.similarity
        )
        pairs = pairs or [f"src-{language}" for language in config.languages[1:]]
        for pair in pairs:
            if pair not in config.pairs:
                known = ", ".join(config.pairs)
                raise InputError(f"--pairs {pair}: no such pair in conlang; there are {known}")
        return TrainingText(corpus=corpus, pairs=tuple(pairs), train={}, valid={}, conlang=config)
    card = get_card(corpus)
    if card.name in ("own", "outofdomain"):
        raise InputError(f"--corpus {corpus}: not to train on; use --data for your own text")
    pairs = pairs or [pair for pair in card.pairs if pair.startswith("eng-")]
    for pair in pairs:
        if pair not in card.pairs:
            known = ", ".join(card.pairs)
            raise InputError(f"--pairs {pair}: no such pair in {corpus}; there are {known}")
    return TrainingText(
        corpus=corpus,
        pairs=tuple(pairs),
        train={pair: load_split(corpus, pair, "train") for pair in pairs},
        valid={pair: load_split(corpus, pair, "valid") for pair in pairs},
    )


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
