"""Which runs make which figure, declared as data. No torch is needed here.

A cohort is a grid of mixtures and sizes (and seeds) that one set of figures reads. Runs with all
their weight on one pair are the same run in every cohort that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import Tags, first_syllable
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.errors import InputError
from mnmt_repro.experiments.spec import RunSpec
from mnmt_repro.training.config import TrainingConfig

WEIGHTS = (0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)
"""Weight of a cohort's first pair: Paper A, Eq. 5."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """One model size of a tier; `layers` in the encoder and as many in the decoder."""

    d_model: int
    layers: int
    heads: int


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
        """Vocabulary size, specials and tags included.

        A conlang's is that of unrelated languages at every similarity, so that the tables keep
        their size when languages share syllables.
        """
        if self.vocabulary is not None:
            return self.vocabulary.pieces
        assert self.conlang is not None
        inventory = len(self.conlang.languages) * self.conlang.syllables
        return first_syllable(self.conlang) + inventory


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """A declared grid of runs.

    `about` says in one line what the cohort is for.
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

    def runs(self) -> Iterator[RunSpec]:
        """All runs of the grid, small models first."""
        for seed in self.seeds:
            for size in self.sizes:
                for mixture in self.mixtures:
                    yield RunSpec(
                        tier=self.tier,
                        corpus=self.corpus.name,
                        mixture=mixture,
                        model=ModelConfig.t5(
                            vocab_size=self.corpus.pieces,
                            d_model=size.d_model,
                            layers=size.layers,
                            heads=size.heads,
                        ),
                        training=self.corpus.training,
                        tags=self.tags,
                        seed=seed,
                        vocabulary=self.corpus.vocabulary,
                        conlang=self.corpus.conlang,
                    )


def two_pair_mixtures(
    first: str, second: str, weights: Sequence[float] = WEIGHTS
) -> tuple[Mixture, ...]:
    """Mixtures of two pairs by the weight of the first: those of Eq. 5, unless told others."""
    return tuple(Mixture.two(first, second, p) for p in weights)


def _webtech(target_tokens: int) -> Corpus:
    return Corpus(
        name="webtech",
        vocabulary=WEBTECH_VOCABULARY,
        training=TrainingConfig(
            learning_rate=0.1, warmup_steps=100, batch_tokens=1024, target_tokens=target_tokens
        ),
    )


WEBTECH = _webtech(4_000_000)

LONGER_WEIGHTS = (0.0, 0.1, 0.5, 0.9, 1.0)
LONGER_SIZES = tuple(MINI_SIZES[i] for i in (0, 1, 2, 4, 6))
"""Five sizes of the mini tier over a factor of 30, four of them one layer deep."""


def _conlang(name: str, similarity: float) -> Corpus:
    return Corpus(
        name=name,
        conlang=ConlangConfig(concepts=512, similarity=similarity),
        training=TrainingConfig(
            learning_rate=0.1, warmup_steps=100, batch_tokens=1024, target_tokens=6_000_000
        ),
    )


CONLANG_UNRELATED, CONLANG_RELATED = _conlang("conlang-sim0", 0.0), _conlang("conlang-sim1", 1.0)

COHORTS: tuple[Cohort, ...] = (
    Cohort(
        name="webtech-en-dezh",
        about="En→{De, Zh} on real text: Figures 2 to 7 and 15",
        corpus=WEBTECH,
        pairs=("eng-deu", "eng-zho"),
        mixtures=two_pair_mixtures("eng-deu", "eng-zho"),
        tags="source",
    ),
    Cohort(
        name="conlang-sim0",
        about="one language to two unrelated ones, where the irreducible loss is known",
        corpus=CONLANG_UNRELATED,
        pairs=("src-aaa", "src-bbb"),
        mixtures=two_pair_mixtures("src-aaa", "src-bbb"),
        tags="source",
    ),
    *(
        Cohort(
            name=f"webtech-en-dezh-{millions}m",
            about=f"En→{{De, Zh}} on {millions}M target tokens: what is due to under-training?",
            corpus=_webtech(millions * 1_000_000),
            pairs=("eng-deu", "eng-zho"),
            mixtures=two_pair_mixtures("eng-deu", "eng-zho", LONGER_WEIGHTS),
            tags="source",
            sizes=LONGER_SIZES,
        )
        for millions in (8, 16)
    ),
    Cohort(
        name="webtech-en-defr",
        about="En→{De, Fr} on real text: Figures 6, 8, 9, 11, 12 and 16",
        corpus=WEBTECH,
        pairs=("eng-deu", "eng-fra"),
        mixtures=two_pair_mixtures("eng-deu", "eng-fra"),
        tags="source",
    ),
    Cohort(
        name="webtech-dezh-en",
        about="{De, Zh}→En on real text: Figures 6, 13, 14 and 17",
        corpus=WEBTECH,
        pairs=("deu-eng", "zho-eng"),
        mixtures=two_pair_mixtures("deu-eng", "zho-eng"),
        tags="none",
    ),
    Cohort(
        name="conlang-sim1",
        about="one language to two of the same lexicon: Figure 6 centre, with the truth known",
        corpus=CONLANG_RELATED,
        pairs=("src-aaa", "src-bbb"),
        mixtures=two_pair_mixtures("src-aaa", "src-bbb"),
        tags="source",
    ),
    Cohort(
        name="conlang-many2one",
        about="two unrelated languages to one: Figure 6 right, with the truth known",
        corpus=CONLANG_UNRELATED,
        pairs=("aaa-src", "bbb-src"),
        mixtures=two_pair_mixtures("aaa-src", "bbb-src"),
        tags="none",
    ),
)


def get_cohort(name: str) -> Cohort:
    """The cohort of that name.

    Raises
    ------
    InputError
        When there is none; the message lists those there are.
    """
    for cohort in COHORTS:
        if cohort.name == name:
            return cohort
    raise InputError(f"no cohort named {name!r}; there are {', '.join(c.name for c in COHORTS)}")


@cache
def membership() -> dict[str, tuple[str, ...]]:
    """Configuration hash to the names of the cohorts that hold the run."""
    found: dict[str, tuple[str, ...]] = {}
    for cohort in COHORTS:
        for run in cohort.runs():
            found[run.config_hash] = (*found.get(run.config_hash, ()), cohort.name)
    return found
