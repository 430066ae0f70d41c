"""Which runs make which figure, declared as data. No torch is needed here.

A cohort is a grid of mixtures and sizes (and seeds) that one set of figures reads. Runs with all
their weight on one pair are the same run in every cohort that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import Tags, table_size
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.runs.grid import Size
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.training.config import TrainingConfig

WEIGHTS = (0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
"""Weight of a cohort's first pair: Paper A, Eq. 5."""


MINI_SIZES = (
    Size(d_model=8, layers=1, heads=2),  # N = 2.5k
    Size(d_model=12, layers=1, heads=2),  # 5.4k
    Size(d_model=16, layers=1, heads=2),  # 9.5k
    Size(d_model=20, layers=1, heads=2),  # 15k
    Size(d_model=24, layers=1, heads=4),  # 21k
    Size(d_model=24, layers=2, heads=4),  # 42k
    Size(d_model=32, layers=2, heads=4),  # 74k
    Size(d_model=40, layers=2, heads=4),  # 116k
)
"""The mini tier's sizes: width and depth grow together, N spans a factor of 47."""

WEBTECH_VOCABULARY = VocabularyConfig(
    pieces=4000,
    languages=("eng", "deu", "fra", "zho"),
    character_coverage=0.999,
    sentences=600_000,
)
"""One vocabulary for all of webtech's cohorts."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Text as the cohorts use it: its pieces, tags and tuned training settings."""

    name: str
    vocabulary: VocabularyConfig | None = None
    conlang: ConlangConfig | None = None
    training: TrainingConfig

    @property
    def pieces(self) -> int:
        """Vocabulary size, specials and tags included."""
        if self.vocabulary is not None:
            return self.vocabulary.pieces
        assert self.conlang is not None
        return table_size(self.conlang)


Way = Literal["sampled", "text-matched", "equal-first"]
"""How a mixture weight is given to a model; see `drawn`."""


def drawn(mixture: Mixture, training: TrainingConfig, way: Way) -> tuple[Mixture, TrainingConfig]:
    """What is drawn, and how it is trained, for a mixture to be reached in one way.

    - *sampled*: sentences are drawn by the mixture, as the paper does.
    - *text-matched*: all pairs are drawn evenly in batches of twice the tokens, and the loss is
      weighted by the mixture. Updates and schedule stay, and of two pairs each has as many tokens
      as a single pair has at the same number of updates.
    - *equal-first*: drawn evenly for the first half of the budget, and then by the mixture.
    """
    even = even_mixture(mixture.pairs)
    if way == "text-matched":
        assert training.target_tokens is not None
        doubled = {name: 2 * getattr(training, name) for name in ("batch_tokens", "target_tokens")}
        return even, replace(training, loss_weights=mixture.weights, **doubled)
    if way == "equal-first":
        return mixture, replace(training, first_weights=even.weights)
    return mixture, training


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """A declared grid of runs.

    `about` says in one line what the cohort is for; `repeats` names the cohort whose cells these
    runs repeat with other seeds: their rows are read with its own. `way` is how the weights of
    `mixtures` are reached.
    """

    name: str
    about: str
    corpus: Corpus
    pairs: tuple[str, ...]
    mixtures: tuple[Mixture, ...]
    tags: Tags
    sizes: tuple[Size, ...] = MINI_SIZES
    seeds: tuple[int, ...] = (1,)
    tier: str = "mini"
    repeats: str = ""
    way: Way = "sampled"

    def runs(self) -> Iterator[RunSpec]:
        """All runs of the grid, small models first."""
        for seed in self.seeds:
            for size in self.sizes:
                training = size.training(self.corpus.training)
                model = size.model(self.corpus.pieces)
                for wanted in self.mixtures:
                    mixture, how = drawn(wanted, training, self.way)
                    yield RunSpec(
                        tier=self.tier,
                        corpus=self.corpus.name,
                        mixture=mixture,
                        model=model,
                        training=how,
                        tags=self.tags,
                        seed=seed,
                        vocabulary=self.corpus.vocabulary,
                        conlang=self.corpus.conlang,
                    )

    def decoded(self) -> Iterator[RunSpec]:
        """Runs whose translations are wanted: all."""
        return self.runs()


def two_pair_mixtures(
    first: str, second: str, weights: Sequence[float] = WEIGHTS
) -> tuple[Mixture, ...]:
    """Mixtures of two pairs by the weight of the first: those of Eq. 5, unless told others."""
    return tuple(Mixture.two(first, second, p) for p in weights)


def even_mixture(pairs: Sequence[str]) -> Mixture:
    """The same weight for every pair."""
    return Mixture.of(dict.fromkeys(pairs, 1 / len(pairs)))


def mixture_with_ahead(pairs: Sequence[str], ahead: str, p: float) -> Mixture:
    """Weight p for one pair; the others share the rest evenly.

    >>> mixture_with_ahead(["a-b", "a-c", "a-d"], "a-c", 0.8).weights
    {'a-b': 0.1, 'a-c': 0.8, 'a-d': 0.1}
    """
    rest = round((1 - p) / (len(pairs) - 1), 12)
    return Mixture.of({pair: p if pair == ahead else rest for pair in pairs})


def _training(target_tokens: int) -> TrainingConfig:
    return TrainingConfig(
        learning_rate=0.1, warmup_steps=100, batch_tokens=1024, target_tokens=target_tokens
    )


def _webtech(target_tokens: int) -> Corpus:
    training = _training(target_tokens)
    return Corpus(name="webtech", vocabulary=WEBTECH_VOCABULARY, training=training)


WEBTECH = _webtech(4_000_000)

SHARED_ENGLISH = Corpus(
    name="webtech-shared",
    vocabulary=WEBTECH_VOCABULARY,
    training=_training(3_500_000),  # 4M would pass over this text more than four times
)

FEW_WEIGHTS = (0.0, 0.1, 0.5, 0.9, 1.0)
"""Where a whole grid is too much: four weights above zero for each pair."""
FIVE_SIZES = tuple(MINI_SIZES[i] for i in (0, 1, 2, 4, 6))
"""Five sizes of the mini tier over a factor of 30, four of them one layer deep."""
FOUR_SIZES = tuple(MINI_SIZES[i] for i in (0, 2, 4, 6))
SEED_WEIGHTS = (0.1, 0.5, 0.9)
MORE_SEEDS = (2, 3)


def _conlang(
    name: str, similarity: float = 0.0, languages: tuple[str, ...] = ("src", "aaa", "bbb")
) -> Corpus:
    return Corpus(
        name=name,
        conlang=ConlangConfig(languages=languages, concepts=512, similarity=similarity),
        training=_training(6_000_000),
    )


CONLANG_UNRELATED, CONLANG_RELATED = _conlang("conlang-sim0", 0.0), _conlang("conlang-sim1", 1.0)
CONLANG_THREE = _conlang("conlang-three", languages=("src", "aaa", "bbb", "ccc"))
CONLANG_FIVE = _conlang("conlang-five", languages=("src", "aaa", "bbb", "ccc", "ddd", "eee"))
WEBTECH_PAIRS = ("eng-deu", "eng-fra", "eng-zho")
THREE_PAIRS = ("src-aaa", "src-bbb", "src-ccc")
FIVE_PAIRS = (*THREE_PAIRS, "src-ddd", "src-eee")


# Of Paper A: what a cohort is called, its languages and figures, its pairs, and its tags.
_REAL: tuple[tuple[str, str, str, tuple[str, str], Tags], ...] = (
    ("en-dezh", "En→{De, Zh}", "2 to 7 and 15", ("eng-deu", "eng-zho"), "source"),
    ("en-defr", "En→{De, Fr}", "6, 8, 9, 11, 12 and 16", ("eng-deu", "eng-fra"), "source"),
    ("dezh-en", "{De, Zh}→En", "6, 13, 14 and 17", ("deu-eng", "zho-eng"), "none"),
)


def two_pairs(
    name: str,
    about: str,
    corpus: Corpus,
    pairs: tuple[str, str],
    tags: Tags = "source",
    weights: Sequence[float] = WEIGHTS,
    **more: Any,
) -> Cohort:
    """Declare a grid of two pairs' mixtures; `more` are further fields of a cohort."""
    mixtures = two_pair_mixtures(*pairs, weights)
    return Cohort(
        name=name, about=about, corpus=corpus, pairs=pairs, mixtures=mixtures, tags=tags, **more
    )


def one_to_many(
    name: str, corpus: Corpus, pairs: tuple[str, ...], ahead: Sequence[float], **more: Any
) -> Cohort:
    """Declare one language to several unrelated ones, and to the first alone; `more` as above.

    `ahead` are weights of the first pair in further mixtures, in which the others are even.
    """
    return Cohort(
        name=name,
        about=f"one language to {len(pairs)} unrelated ones, and to the first of them alone",
        corpus=corpus,
        pairs=pairs,
        mixtures=(
            Mixture.of({pairs[0]: 1.0}),
            even_mixture(pairs),
            *(mixture_with_ahead(pairs, pairs[0], p) for p in ahead),
        ),
        tags="source",
        **more,
    )


_S_AB, _AB_S = ("src-aaa", "src-bbb"), ("aaa-src", "bbb-src")
GRIDS: tuple[Cohort, ...] = (
    *(
        two_pairs(f"webtech-{name}", f"{about} on real text: Figures {made}", WEBTECH, pairs, tags)
        for name, about, made, pairs, tags in _REAL
    ),
    *(
        two_pairs(
            f"webtech-en-dezh-{millions}m",
            f"En→{{De, Zh}} on {millions}M target tokens: what is due to under-training?",
            _webtech(millions * 1_000_000),
            ("eng-deu", "eng-zho"),
            weights=FEW_WEIGHTS,
            sizes=FIVE_SIZES,
        )
        for millions in (8, 16)
    ),
    two_pairs(
        "conlang-sim0",
        "one language to two unrelated ones, where the irreducible loss is known",
        CONLANG_UNRELATED,
        _S_AB,
    ),
    two_pairs(
        "conlang-sim1",
        "one language to two of the same lexicon: Figure 6 centre, with the truth known",
        CONLANG_RELATED,
        _S_AB,
    ),
    two_pairs(
        "conlang-many2one",
        "two unrelated languages to one: Figure 6 right, with the truth known",
        CONLANG_UNRELATED,
        _AB_S,
        "none",
    ),
    Cohort(
        name="webtech-en-defrzh",
        about="En→{De, Fr, Zh} on real text: Figure 20",
        corpus=WEBTECH,
        pairs=WEBTECH_PAIRS,
        mixtures=(
            even_mixture(WEBTECH_PAIRS),
            *(
                mixture_with_ahead(WEBTECH_PAIRS, pair, p)
                for p in (0.5, 0.8)
                for pair in WEBTECH_PAIRS
            ),
        ),
        tags="source",
        sizes=FIVE_SIZES,
    ),
    one_to_many("conlang-three", CONLANG_THREE, THREE_PAIRS, (0.5, 0.8, 0.9), sizes=FIVE_SIZES),
    *(
        two_pairs(
            f"webtech-{name}-seeds",
            f"{about} again with other seeds, at some weights and sizes",
            *(WEBTECH, pairs, tags, SEED_WEIGHTS),
            sizes=FOUR_SIZES,
            seeds=MORE_SEEDS,
            repeats=f"webtech-{name}",
        )
        for name, about, _, pairs, tags in _REAL
    ),
    *(
        two_pairs(
            f"shared-{name}",
            f"{about} with the same English sentences in all languages: the controlled contrast",
            *(SHARED_ENGLISH, pairs, tags, FEW_WEIGHTS),
            sizes=FOUR_SIZES,
        )
        for name, about, _, pairs, tags in _REAL
    ),
    *(
        two_pairs(
            name := f"conlang-sim{similarity:g}".replace(".", ""),
            f"one language to two that share {similarity:.0%} of their lexicon",
            _conlang(name, similarity),
            _S_AB,
            weights=FEW_WEIGHTS,
            sizes=FIVE_SIZES,
        )
        for similarity in (0.25, 0.5, 0.75)
    ),
    one_to_many("conlang-five", CONLANG_FIVE, FIVE_PAIRS, (0.6, 0.8), sizes=FOUR_SIZES),
)
