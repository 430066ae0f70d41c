"""The *settled* tier: as much text per parameter as Paper A has, and three ways to a small weight.

At p = 0.05 the largest generated model reads 65 tokens of its small pair per parameter, and those
on real text 56 (width 30) and 26 (width 44). Paper A's poorest cell has 25, and its Appendix G
extrapolates to 62. The ways tell the weight of a pair from the amount of its text: see
`grids.drawn`. Every run decays over its last 30 %, and all sizes have one learning rate.

No torch is needed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mnmt_repro.corpora.encoding import Tags
from mnmt_repro.papers.cohorts.grids import Cohort, Corpus, two_pair_mixtures, two_pairs
from mnmt_repro.papers.cohorts.steady import REAL, STEADY, size, with_half

TIER = "settled"
RATE = 0.1
SMALL, MIDDLE = 0.05, 0.3
"""Mixture weights of the smaller pair."""
TOKENS = 48_000_000
REAL_TOKENS = 42_000_000
"""With 40M, German at width 44 would read 24.9 tokens per parameter, and so miss the regime."""
WIDTHS = (10, 16, 26, 32)
ALONE_WIDTHS = (4, 6, 8, 10, 16, 26, 32)
"""Single pairs, from the smallest size on whose loss a mixture may have."""
REAL_WIDTHS = (30, 44)
REAL_ALONE_WIDTHS = (6, 8, 12, 20)


def _grid(
    name: str,
    about: str,
    corpus: Corpus,
    pairs: tuple[str, str],
    weights: Sequence[float],
    widths: Sequence[int],
    seeds: tuple[int, ...],
    **more: Any,
) -> Cohort:
    """Mixtures by the weight of the first pair, at the corpus's budget and this tier's rate.

    `more` are further fields of a cohort.
    """
    tags: Tags = "none" if pairs[0].partition("-")[2] == pairs[1].partition("-")[2] else "source"
    tokens = corpus.training.target_tokens
    assert tokens is not None
    sizes = tuple(size(width, RATE, tokens=tokens) for width in widths)
    more |= {"sizes": sizes, "seeds": seeds, "tier": TIER}
    return two_pairs(name, about, corpus, pairs, tags, weights, **more)


def _with_half(cohort: Cohort) -> tuple[Cohort, Cohort]:
    """The cohort at half the budget, all seeds of it, and the cohort."""
    half, whole = with_half(cohort, cohort.sizes)
    return replace(half, seeds=cohort.seeds), whole


def _alternate(
    name: str,
    about: str,
    pairs: tuple[str, str],
    widths: Sequence[int],
    seeds: tuple[int, ...],
    weight: float = SMALL,
    **more: Any,
) -> tuple[Cohort, Cohort]:
    """The first pair small in every other seed, the second pair small in the others."""
    first = _grid(name, about, _CONLANG, pairs, (weight,), widths, seeds[::2], **more)
    other = replace(
        first,
        name=f"{name}-swapped",
        about=f"{about}; the other pair is small",
        mixtures=two_pair_mixtures(*pairs, (1 - weight,)),
        seeds=seeds[1::2],
        repeats=first.repeats or name,
    )
    return first, other


_LANGUAGES = replace(STEADY, name="conlang-settled")
_CONLANG = replace(_LANGUAGES, training=replace(STEADY.training, target_tokens=TOKENS))
_REAL = replace(REAL, training=replace(REAL.training, target_tokens=REAL_TOKENS))
_OUT, _INTO = ("src-aaa", "src-bbb"), ("aaa-src", "bbb-src")


def _generated(name: str, about: str, pairs: tuple[str, str]) -> tuple[Cohort, ...]:
    """Sampled runs and single pairs, at half the budget and all of it, and text-matched runs."""
    seeds = (1, 2, 3, 4)
    sampled = _alternate(name, f"{about}, p = {SMALL}", pairs, WIDTHS, seeds)
    every = f"{about}: each pair alone"
    alone = _grid(
        f"{name}-alone", every, _CONLANG, pairs, (0.0, 1.0), ALONE_WIDTHS, (1, 2), repeats=name
    )
    weighted = f"{about}, p = {SMALL}, text-matched"
    matched = _alternate(f"{name}-matched", weighted, pairs, WIDTHS, seeds, way="text-matched")
    return (*(half for each in (*sampled, alone) for half in _with_half(each)), *matched)


def _equal_first(
    name: str, about: str, pairs: tuple[str, str], widths: Sequence[int], seeds: tuple[int, ...]
) -> tuple[Cohort, Cohort]:
    name, about = f"{name}-equal-first", f"{about}, p = {SMALL}, equal-first"
    return _alternate(name, about, pairs, widths, seeds, way="equal-first")


_OUT_OF, _INTO_ONE = "one language to two unrelated ones", "two unrelated languages to one"
_AT_MIDDLE = _alternate(
    "conlang-settled-middle",
    f"{_OUT_OF}, p = {MIDDLE}",
    _OUT,
    WIDTHS,
    seeds=(1, 2),
    weight=MIDDLE,
    repeats="conlang-settled",
)
"""Each pair at the middle weight in one seed."""


def _real(
    name: str,
    about: str,
    weights: Sequence[float],
    widths: Sequence[int],
    seeds: tuple[int, ...],
    **more: Any,
) -> Cohort:
    name, about = f"webtech-settled{name}", f"En→{{De, Fr}} on real text, {about}"
    return _grid(name, about, _REAL, ("eng-deu", "eng-fra"), weights, widths, seeds, **more)


_BOTH_SMALL = (SMALL, 1 - SMALL)
_SEEDS = (1, 2, 3)
_WITH = {"repeats": "webtech-settled"}
SETTLED_GRIDS: tuple[Cohort, ...] = (
    *_generated("conlang-settled", _OUT_OF, _OUT),
    *_equal_first("conlang-settled", _OUT_OF, _OUT, WIDTHS, (1, 2, 3, 4)),
    *(part for each in _AT_MIDDLE for part in _with_half(each)),
    *_with_half(_real("", f"p = {SMALL}", _BOTH_SMALL, REAL_WIDTHS, _SEEDS)),
    *_with_half(_real("-alone", "each pair alone", (0.0, 1.0), REAL_ALONE_WIDTHS, (1, 2), **_WITH)),
    _real("-matched", "text-matched", _BOTH_SMALL, REAL_WIDTHS, _SEEDS, way="text-matched"),
    _real("-equal-first", "equal-first", (SMALL,), REAL_WIDTHS[1:], _SEEDS, way="equal-first"),
    *_generated("conlang-settled-many2one", _INTO_ONE, _INTO),
    *_equal_first("conlang-settled-many2one", _INTO_ONE, _INTO, (16, 32), (1, 2)),
)
"""Cohorts of this tier, in the order in which they are worth running."""
