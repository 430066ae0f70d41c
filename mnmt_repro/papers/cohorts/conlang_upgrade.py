"""The central comparison of Paper B on generated languages, where similarity can be dialled.

Four original languages beside a hub and two added ones, both directions of each: one that shares
its lexicon with an original language as far as is asked, and one that is like none. Sizes, shares
and the recipe are those of `software25`, with text that never ends: the added languages have the
share of the sentences that they have in Table 9.
"""

from __future__ import annotations

from dataclasses import replace

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import table_size
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.papers.cohorts.software25_runs import MINI, both_ways, recipe
from mnmt_repro.papers.cohorts.variants import Variant, VariantCohort
from mnmt_repro.runs.spec import RunSpec, Upgrade
from mnmt_repro.training.config import TrainingConfig

HUB, ORIGINAL, SIMILAR, UNRELATED = "src", ("aaa", "bbb", "ccc", "ddd"), "eee", "fff"
ADDED = (SIMILAR, UNRELATED)
SIMILARITIES = (0.0, 0.5, 1.0)
_SHARE = 0.01  # of the original sentences, for each added language: 2 % in all, as in Table 9
_TRAINING = TrainingConfig(
    learning_rate=0.012,
    warmup_steps=480,  # 8 % of the updates, as published
    batch_tokens=1_024,
    steps=6_000,
    optimiser="adamw",
    label_smoothing=0.1,
    curve_points=3,
)
SCRATCH_SHARES, UPGRADE_SHARES = (0.1, 0.3, 1.0), (0.1, 0.3)


def _languages(similarity: float) -> ConlangConfig:
    """The family: `eee` shares this much of its lexicon with `aaa`; the others share nothing."""
    return ConlangConfig(
        languages=(HUB, *ORIGINAL, *ADDED),
        families=((ORIGINAL[0], SIMILAR),),
        similarity=similarity,
        concepts=512,
    )


def _mixture(codes: tuple[str, ...], upsampling: float = 1.0) -> Mixture:
    """Both directions of each language; `upsampling` is the factor of the added ones."""
    sizes = dict.fromkeys(codes, 1_000_000)
    added = [code for code in ADDED if code in codes]
    sizes |= dict.fromkeys(added, round(_SHARE * len(ORIGINAL) * 1_000_000))
    return both_ways(sizes, dict.fromkeys(added, upsampling), HUB)


def _from_scratch(similarity: float, codes: tuple[str, ...], share: float = 1.0) -> RunSpec:
    """A run on these languages that begins at random."""
    conlang = _languages(similarity)
    assert _TRAINING.steps is not None
    return RunSpec(
        tier="mini",
        corpus=f"conlang-upgrade-sim{similarity:g}".replace(".", ""),
        mixture=_mixture(codes),
        model=ModelConfig.fairseq(
            vocab_size=table_size(conlang),
            d_model=32,
            layers=2,
            heads=4,
            attention_dropout=MINI.attention_dropout,
        ),
        training=replace(_TRAINING, steps=round(share * _TRAINING.steps)),
        tags="both",
        seed=1,
        conlang=conlang,
    )


def _upgraded(similarity: float, share: float) -> RunSpec:
    """The old model of four languages, trained on with all six by Paper B's recipe."""
    parent = _from_scratch(similarity, ORIGINAL)
    return replace(
        _from_scratch(similarity, (*ORIGINAL, *ADDED), share),
        mixture=_mixture((*ORIGINAL, *ADDED), upsampling=5.0),
        upgrade=Upgrade(parent=parent, config=recipe(MINI, "same")),
    )


def _cohort(similarity: float) -> VariantCohort:
    every = (*ORIGINAL, *ADDED)
    return VariantCohort(
        name=f"upgrade-sim{similarity:g}".replace(".", ""),
        about=f"from scratch and upgraded; one added language shares {similarity:.0%} of its "
        "lexicon with an old one",
        variants=(
            Variant(name="M4", updates_share=1.0, spec=_from_scratch(similarity, ORIGINAL)),
            *(
                Variant(name="M6", updates_share=s, spec=_from_scratch(similarity, every, s))
                for s in SCRATCH_SHARES
            ),
            *(
                Variant(name="Mt6", updates_share=s, spec=_upgraded(similarity, s))
                for s in UPGRADE_SHARES
            ),
        ),
    )


UPGRADE_COHORTS = tuple(_cohort(similarity) for similarity in SIMILARITIES)
