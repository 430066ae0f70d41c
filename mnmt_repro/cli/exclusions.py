"""The table of options that exclude each other, or that nothing asked for would use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mnmt_repro.cli.options import comma_list
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.cli.fit import FitOptions
    from mnmt_repro.cli.sweep import SweepOptions
    from mnmt_repro.cli.train_options import TrainOptions
    from mnmt_repro.cli.upgrade_options import UpgradeOptions
    from mnmt_repro.upgrading.config import UpgradeConfig

Refusal = tuple[str, object, str]
"""Names of options, whether they are excluded, and why: `{}` stands for the one that is given."""

ENDINGS = (".yml", ".yaml")
"""Of the file of a user's grid."""

SETTLED = (
    "arch d_model layers heads d_ff dropout attention_dropout pieces vocabulary "
    "vocabulary_temperature"
)
"""Options of `train` that an upgraded model has settled."""


def of_sources(continued: bool) -> tuple[Refusal, ...]:
    """Of `train`, before presets and upgraded models fill in what is not given."""
    settled = "{}: the upgraded model's own stays; leave it out, or make another upgrade"
    both = "{}: the upgraded model has its settings; leave one of the two out"
    return (("preset config", continued, both), (SETTLED, continued, settled))


def of_train(options: TrainOptions) -> tuple[Refusal, ...]:
    """Of `train`, by its text, its mixture and its optimiser."""
    own, given, weighted = bool(options.data), options.vocabulary, options.weights is not None
    conlang = not own and (options.corpus or "conlang") == "conlang"
    alike = conlang and not (options.upsample or weighted)
    adafactor = options.training.optimiser == "adafactor"
    trained = "pieces vocabulary_temperature"
    endless = "all pairs of a conlang are endless, and so alike"
    instead = "leave out --temperature and --upsample"
    return (
        (f"{trained} max_length", conlang, "{}: is of real text; leave it out"),
        ("temperature", alike, f"{{}}: {endless}; leave it out"),
        ("concepts similarity languages", not conlang, "{}: is of a conlang; leave it out"),
        (trained, given, "{}: --vocabulary is there already; leave it out"),
        ("beta1 beta2", adafactor, "{}: is of adamw; leave it out"),
        ("shard", adafactor, "{}: adafactor cannot be split; add --optimiser adamw"),
        ("corpus pairs", own, "--data: your own text; leave out --corpus and --pairs"),
        ("valid", not own, "--valid goes with --data; registered corpora have their own"),
        ("temperature upsample", weighted, f"--weights: {instead}, or it"),
    )  # fmt: skip


def of_upgrade(
    options: UpgradeOptions, config: UpgradeConfig, pieces: bool, imported: bool
) -> tuple[Refusal, ...]:
    """Of `upgrade`.

    Parameters
    ----------
    pieces
        A conlang's new languages have some without a new vocabulary.
    imported
        The old model is a Hugging Face model.
    """
    wider, deeper = config.wider != 1, bool(config.deeper.encoder or config.deeper.decoder)
    pieces = pieces or bool(options.vocabulary)
    kept, fisher = config.keep != "nothing", options.fisher_threshold or ""
    new = pieces or wider or deeper or config.keep == "body"
    spans = comma_list(f"{options.gamma or ''},{fisher}")
    rising = any(span.count(":") == 1 for span in spans)
    rising |= options.preset == "deep" and options.gamma is None
    two_rates, carried = "," in (options.gamma or ""), options.optimiser == "carried"
    copied, drawn = config.width.init == "concatenation", config.width.init == "random"

    def idle(needed: str, option: str = "{}") -> str:
        return f"{option}: has no effect without {needed}; add it, or leave this out"

    return (
        ("checkpoint fisher_threshold", imported,
         "{}: --from is a Hugging Face model; leave this out"),
        ("init", not pieces, idle("--vocab")),
        ("init", config.keep != "all", idle("--keep all")),
        ("width_init normalisation", not wider, idle("--wider")),
        ("noise", not (wider and copied), idle("--wider, and units that are copies")),
        ("normalisation", not kept or drawn, idle("units that come from old ones")),
        ("depth_init at", not deeper, idle("--deeper")),
        ("gamma", two_rates and not new,
         idle("--vocab, --wider or --deeper: nothing is new", "--gamma OLD,NEW")),
        ("optimiser", carried and not kept, idle("old weights (--keep)", "--optimiser carried")),
        ("width_init noise depth_init checkpoint fisher_threshold", not kept,
         idle("old weights (--keep)")),
        ("steps", not rising, idle("a factor that rises and does not say its own steps")),
        ("fisher_sentences", not fisher, idle("--fisher-threshold")),
        ("data valid", not fisher, "{} goes with --fisher-threshold"),
    )  # fmt: skip


def of_fit(options: FitOptions) -> tuple[Refusal, ...]:
    """Of `fit`, by its law."""
    additive = options.law == "additive"
    why = "{} belongs to --law additive; add it, or leave this out"
    return (
        ("data_column loss log", not additive, why),
        ("errors", additive, "{}: --law additive has --log for errors that are shares of the loss"),
        ("by", options.law not in ("auto", "joint"), "{} belongs to --law joint; leave it out"),
        ("p_column", options.by is not None, "{}: --by takes the place of the weights"),
    )


def of_sweep(options: SweepOptions) -> tuple[Refusal, ...]:
    """Of `sweep`, by what is made of the runs."""
    own = any(name.endswith(ENDINGS) for name in options.names)
    return (
        ("tier only_seed decode analyse sentences", own, "{}: is of cohorts; leave it out"),
        ("bleurt", not options.decode, "{}: only with --decode"),
        ("executor recompute", options.decode or options.analyse,
         "{}: is of training; leave it out"),
        ("analyse", options.decode, "{}: not with --decode; leave one of the two out"),
    )  # fmt: skip


def refuse_excluded(rows: Iterable[Refusal], given: Iterable[str]) -> None:
    """Refuse the first option on the command line that a row excludes.

    Parameters
    ----------
    given
        Names of the options that are there.

    Raises
    ------
    InputError
        With the row's reason.
    """
    given = set(given)
    for names, excluded, why in rows:
        for name in names.split():
            if excluded and name in given:
                raise InputError(why.format(f"--{name.replace('_', '-')}"))
