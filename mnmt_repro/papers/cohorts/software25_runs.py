"""Runs of Paper B on the corpus software25: settings of a tier, baselines, upgrades.

English beside Paper B's own 25 languages, both directions of each, one model for all. How much of
the text is used is a `TextCondition`; tests are the same in all.

Every share of updates is one of the baselines' updates, as the paper gives its own (30k of 100k).
The learning rate of a step does not depend on the budget, nor does the deep model's ramp, so that a
run of 30 % is the beginning of the same run of 50 %, and is trained once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.registry import get_card
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.papers.cohorts import languages25
from mnmt_repro.papers.cohorts.languages25 import directions
from mnmt_repro.runs.spec import RunSpec, Upgrade
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.training.published import PUBLISHED
from mnmt_repro.upgrading.config import DepthConfig, Kind, UpgradeConfig, WidthConfig, published

CORPUS = "software25"
_ALL = tuple(languages25.LANGUAGES)


@dataclass(frozen=True, kw_only=True)
class Tier:
    """Sizes and settings that all of Paper B's runs share."""

    name: str
    d_model: int
    layers: int  # of each stack
    heads: int
    pieces: int
    training: TrainingConfig  # of the baselines; its steps are the whole of which shares are taken

    wider = 2.0  # factor of d_ff in the wide models
    attention_dropout = 0.1

    @property
    def d_ff(self) -> int:
        """Units of a feed-forward layer."""
        return 4 * self.d_model

    @property
    def deeper(self) -> int:
        """Layers added to each stack in the deep models: half as many again, as published."""
        return self.layers // 2

    def model(self, kind: Kind) -> ModelConfig:
        """The shape of a model; dropout other than in attention is not printed, and zero here."""
        return ModelConfig.fairseq(
            vocab_size=self.pieces,
            d_model=self.d_model,
            layers=self.layers + (self.deeper if kind == "deep" else 0),
            heads=self.heads,
            d_ff=round(self.d_ff * (self.wider if kind == "wide" else 1)),
            attention_dropout=self.attention_dropout,
        )

    def steps(self, share: float) -> int:
        """Updates of a share of the baselines'."""
        assert self.training.steps is not None
        return round(share * self.training.steps)


_PAPER = PUBLISHED["paper-b"]
PAPER = Tier(
    name="paper",
    d_model=_PAPER.model.d_model,
    layers=_PAPER.model.encoder_layers,
    heads=_PAPER.model.heads,
    pieces=_PAPER.model.vocab_size,
    training=_PAPER.training,
)
"""The published settings, of which Figures 1 and 2 are drawn; no run of them is declared.
`mnmt-repro train --preset paper-b` puts them to text of one's own."""

MINI = Tier(
    name="mini",
    # A sixteenth of the width and a sixth of the layers: 0.6M parameters, of which 0.4M embeddings.
    d_model=64,
    layers=2,
    heads=4,
    pieces=6_000,  # two thirds of the work is done at the output already
    training=TrainingConfig(
        # The published peak times sqrt(1024 / 64). After 0.4M tokens of M20's text, warm-up in
        # proportion, the validation loss was 5.63 and 5.57 at peaks of 0.006 and 0.012 (0.024 was
        # behind after 0.2M), and 5.90 at 0.012 with 2,048 tokens a step.
        learning_rate=0.012,
        warmup_steps=1_120,  # 8 % of the updates, as published
        batch_tokens=1_024,
        steps=14_000,  # 14M target tokens, about one pass over the text; half an hour
        optimiser="adamw",
        label_smoothing=0.1,
        curve_points=3,  # of each share, whose runs continue one another
    ),
)
"""Our default: the whole list in some ten hours on two threads."""


@cache
def available() -> dict[str, int]:
    """Training pairs of each language in our corpus."""
    return {
        language: file.sentences["train"]
        for file in get_card(CORPUS).files
        for language in file.languages
        if language in languages25.LANGUAGES
    }


TextCondition = Literal["main", "full", "groupings"]
"""Which languages keep but the share of the text that they have in the paper's Table 9: in the main
condition the five added ones (12k sentences in all); in the full one none; where groupings are
compared, all that some grouping adds or up-samples, so that none adds more than in the paper."""


@cache
def kept_pairs(condition: TextCondition) -> dict[str, int]:
    """Training pairs of each language that a condition cuts."""
    chosen = {
        "main": languages25.GROUPINGS["Mt25"].added,
        "full": (),
        "groupings": languages25.CHANGING,
    }
    return languages25.cut_to_table9(available(), chosen[condition])


def both_ways(
    sizes: Mapping[str, int], upsampling: Mapping[str, float], hub: str = "eng"
) -> Mixture:
    """Both directions of each language beside the hub, at training temperature 1.

    Parameters
    ----------
    sizes
        Training pairs of each language.
    upsampling
        Factor (alpha) of each up-sampled language's size, applied before ratios are taken.
    """

    def by_pair(values: Mapping[str, Any]) -> dict[str, Any]:
        return {pair: values[code] for code in values for pair in directions((code,), hub)}

    return Mixture.from_sizes(by_pair(sizes), upsampling=by_pair(upsampling))


@cache  # hundreds of upgrades share an old model, whose hash is then taken once
def from_scratch(
    kind: Kind,
    *,
    languages: tuple[str, ...] = _ALL,
    share: float = 1.0,
    seed: int = 1,
    condition: TextCondition = "main",
) -> RunSpec:
    """M20, M25, M25-wide, M25-deep and the other old models: no language is up-sampled."""
    kept = {code: count for code, count in kept_pairs(condition).items() if code in languages}
    sizes = available() | kept
    return RunSpec(
        tier=MINI.name,
        corpus=CORPUS,
        mixture=both_ways({code: sizes[code] for code in languages}, {}),
        model=MINI.model(kind),
        training=replace(MINI.training, steps=MINI.steps(share)),
        tags="both",
        seed=seed,
        vocabulary=VocabularyConfig(  # of the languages that the model is trained on alone
            pieces=MINI.pieces,
            languages=("eng", *languages),
            temperature=2.0,
            sentences=300_000,
        ),
        kept=tuple(kept.items()),
    )


DRAWN_APART = 1_000
"""Added to the seed of an upgrade that draws weights beside old ones. With the old model's own, a
drawn row of the embeddings is what the old model's row of that number began as, and a layer drawn
for the bottom of the encoder what its first layer did: in M20 of the mini tier, after training,
these two layers still have a cosine of 0.21."""


PUBLISHED_WIDTH = WidthConfig(normalisation="frobenius")


def recipe(
    tier: Tier,
    kind: Kind,
    seed: int = 1,
    *,
    layers: Mapping[str, Any] | None = None,
    **changes: Any,
) -> UpgradeConfig:
    """Paper B's whole recipe (`published`) at a tier's sizes, but for the `changes`.

    The deep model's factor rises over the half of the baselines' updates that the paper trains it.
    How its new layers are made and where they go, `layers` says by fields of `DepthConfig`.
    """
    if kind == "deep":
        added = DepthConfig(encoder=tier.deeper, decoder=tier.deeper, **(layers or {}))
        changes = {"deeper": added, **changes}
    config = replace(published(kind, tier.steps(0.5)), **{"seed": seed, **changes})
    if config.width.normalisation == "auto":
        config = replace(config, width=replace(config.width, normalisation="frobenius"))
    drawn = (config.embeddings, config.width.init, config.deeper.init)
    if "random" in drawn or config.keep == "body":
        config = replace(config, seed=config.seed + DRAWN_APART)
    return config


def upgraded(
    kind: Kind,
    *,
    grouping: languages25.Grouping = languages25.GROUPINGS["Mt25"],
    share: float = 0.3,
    seed: int = 1,
    condition: TextCondition = "main",
    alpha: float = 5.0,
    related: bool = True,
    fisher_share: float | None = None,
    new_pieces: int | None = None,
    rate_divided_by: float = 1.0,
    **changes: Any,
) -> RunSpec:
    """Mt25, Mt25-wide, Mt25-deep and their like: the old model, upgraded and trained on.

    Parameters
    ----------
    alpha
        Up-sampling factor of the added languages and, where `related`, of those related to them.
    fisher_share, new_pieces
        See `spec.Upgrade`. Without new pieces the vocabulary is one of all languages.
    rate_divided_by
        How many times lower the learning rate is than usual.
    **changes
        Of `recipe`.
    """
    old = grouping.original
    parent = from_scratch("same", languages=old, seed=seed, condition=condition)
    run = from_scratch(kind, share=share, seed=seed, condition=condition)
    chosen = (*grouping.added, *(grouping.related if related else ()))
    upsampling = dict.fromkeys(chosen, alpha) if alpha != 1 else {}
    rate = run.training.learning_rate / rate_divided_by
    if new_pieces is not None:
        rows = parent.model.vocab_size + len(grouping.added) + new_pieces  # a tag a language
        model = replace(run.model, vocab_size=rows)
        run = replace(run, model=model, vocabulary=parent.vocabulary)
    return replace(
        run,
        mixture=both_ways(available() | dict(run.kept), upsampling),
        training=replace(run.training, learning_rate=rate),
        upgrade=Upgrade(
            parent=parent,
            config=recipe(MINI, kind, seed, **changes),
            fisher_share=fisher_share,
            new_pieces=new_pieces,
        ),
    )


def slower(*, share: float, gamma_old: float) -> RunSpec:
    """M25 trained on after all its updates, its schedule's rate multiplied by a factor."""
    config = UpgradeConfig(gamma_old=gamma_old, width=PUBLISHED_WIDTH, seed=1)
    upgrade = Upgrade(parent=from_scratch("same"), config=config)
    return replace(from_scratch("same", share=share), upgrade=upgrade)
