"""What a run is: everything that decides its result, as data. No torch is needed here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mnmt_repro.architecture import ModelConfig, parameter_counts, training_memory
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import Tags
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.registry import data_hash
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.errors import InputError
from mnmt_repro.runs.code_version import code_version
from mnmt_repro.training.config import BUDGET, TrainingConfig
from mnmt_repro.typed_config import defaults
from mnmt_repro.upgrading.config import UpgradeConfig

OWN = "own"
"""Tier of a user's runs, and the corpus of her own text."""
VALIDATION_SENTENCES, MOST_VALIDATION_SENTENCES = 400, 4000
"""Of each pair, and of all pairs together, for a point of the learning curve."""
_SENTENCE_TOKENS = 16  # of a sentence, about


def digest(value: Any, length: int = 16) -> str:
    """Hexadecimal hash of anything JSON can hold, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _as_dict(config: ModelConfig | VocabularyConfig | ConlangConfig) -> dict[str, Any]:
    """As `asdict`, whose copies take most of the time that thousands of hashes take."""
    return {name: getattr(config, name) for name in defaults(type(config))}


@dataclass(frozen=True, kw_only=True)
class Upgrade:
    """What a run begins with in place of random weights: an upgrade of another run's last ones.

    The old vocabulary is the parent's, the new one the run's own; where they are the same, it
    stays. With `new_pieces`, the run's is the parent's with at most so many pieces more, learnt
    from the languages that the parent lacks, and rows of the tables that no piece takes are spare.

    Raises
    ------
    InputError
        When a field is out of its range.
    """

    parent: RunSpec
    config: UpgradeConfig
    fisher_share: float | None = None  # Appendix D: gamma_old slows down only this share of the old
    # entries, those with the most Fisher information; None: all of them
    new_pieces: int | None = None

    def __post_init__(self) -> None:
        if self.fisher_share is not None and not 0 < self.fisher_share < 1:
            raise InputError(
                f"upgrade fisher_share must lie between 0 and 1, got {self.fisher_share}"
            )


@dataclass(frozen=True, kw_only=True)
class Own:
    """What decides a user's own run beside its settings: her files, named by their hashes."""

    text: tuple[tuple[str, str], ...] = ()  # pair and content hash: of the training text of every
    # pair, then of the validation text; none of generated text
    pieces: str | tuple[int, float] | None = None  # hash of the vocabulary that she gave, or size
    # and temperature of one to train; None: that of the upgraded model
    continued_from: dict[str, Any] | None = None  # the upgraded model that it begins with, as
    # `run.json` describes it
    left_out: tuple[str, ...] = ()  # pairs of that model that the mixture lacks


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One training run: of a declared cohort, or of a user's own.

    Two runs with the same `config_hash` and `data_hash` under the same code version are the same
    run: `run_id` names it. Tier and corpus are labels; what they stand for is in the other fields.
    """

    tier: str
    corpus: str  # name of a registered corpus, or of a declared conlang; `own`: a user's files
    mixture: Mixture
    model: ModelConfig
    training: TrainingConfig
    tags: Tags
    seed: int
    vocabulary: VocabularyConfig | None = None  # real text
    conlang: ConlangConfig | None = None  # generated text, whose syllables are its pieces
    kept: tuple[tuple[str, int], ...] = ()  # languages of whose training pairs only so many, chosen
    # by their hash, are used, by model and vocabulary
    upgrade: Upgrade | None = None  # what the run begins with, if not random weights
    own: Own | None = None  # of a run that no cohort declares

    def __post_init__(self) -> None:
        object.__setattr__(self, "kept", tuple(sorted(self.kept)))
        for name in ("loss_weights", "first_weights"):
            if (weights := getattr(self.training, name)) is not None:
                self.mixture.like(weights, f"training {name}")

    @cached_property
    def config(self) -> dict[str, Any]:
        """All that decides the result, as nested dictionaries.

        Fields that came later than the first stored runs are left out where they say nothing, so
        that those runs keep their hash.
        """
        config: dict[str, Any] = json.loads(json.dumps(self._fields))
        return config

    @cached_property
    def _fields(self) -> dict[str, Any]:
        """As `config`, with tuples in place of lists, which have the same hash."""
        fields: dict[str, Any] = {
            name: getattr(self, name)
            for name in defaults(type(self))
            if name not in ("tier", "corpus", "kept", "upgrade", "own")
        }
        for name in ("model", "vocabulary", "conlang"):
            fields[name] = None if fields[name] is None else _as_dict(fields[name])
        fields["training"] = self.training.settings()
        fields["mixture"] = self.mixture.weights
        if self.conlang is None:
            fields["corpus"] = self.corpus
        if self.own is not None:
            fields["own"] = asdict(self.own)
        if self.kept:
            fields["kept"] = dict(self.kept)
        if self.upgrade is not None:
            fields["upgrade"] = {
                "parent": self.upgrade.parent._fields,
                "config": asdict(self.upgrade.config),
                "fisher_share": self.upgrade.fisher_share,
            }
            if self.upgrade.new_pieces is not None:
                fields["upgrade"]["new_pieces"] = self.upgrade.new_pieces
            if self.conlang is not None:
                fields["upgrade"]["first_sentence"] = self.first_sentence
        return fields

    @property
    def weights(self) -> dict[str, float]:
        """Mixture weight p of each pair in the objective: its loss weight where it has one."""
        return self.training.loss_weights or self.mixture.weights

    @property
    def generation(self) -> int:
        """How many upgrades lie behind the run."""
        return 0 if self.upgrade is None else self.upgrade.parent.generation + 1

    @property
    def first_sentence(self) -> int:
        """Of generated text, the number of the first sentence that is trained on.

        Another seed reads other text. An upgraded run does not read again what those behind it
        have read: each has room for 268 million sentences.
        """
        return (self.seed << 32) + (self.generation << 28)

    @cached_property
    def config_hash(self) -> str:
        return digest(self._fields)

    @cached_property
    def data_hash(self) -> str:
        """Of the text that vocabulary and model are trained on; known without reading it."""
        if self.conlang is not None:
            return digest(_as_dict(self.conlang), 12)
        if self.own is not None and self.corpus == OWN:
            return digest(self.own.text, 12)
        return data_hash(self.corpus)

    @property
    def code_version(self) -> str:
        continued = self.own is not None and self.own.continued_from is not None
        return code_version(upgraded=self.upgrade is not None or continued)

    @cached_property
    def run_id(self) -> str:
        return digest([self.config_hash, self.data_hash, self.code_version], 12)

    @property
    def about(self) -> dict[str, Any]:
        """What `run.json` says of the run, apart from its model and pieces."""
        pairs = [*self.mixture.pairs, *(self.own.left_out if self.own else ())]
        generated = self.conlang is not None and self.own is None
        about = {
            "corpus": "conlang" if generated else self.corpus,
            "pairs": pairs,
            "mixture": self.mixture.weights,
            "tags": self.tags,
            "languages": sorted({name for pair in pairs for name in pair.split("-")}),
            "conlang": None if self.conlang is None else asdict(self.conlang),
            "training": self.training.settings(),
            "seed": self.seed,
        }
        if self.upgrade is not None:
            about["continued_from"] = {
                "identity": self.upgrade.parent.run_id,
                "upgrade": asdict(self.upgrade.config),
            }
        elif self.own is not None and self.own.continued_from is not None:
            about["continued_from"] = self.own.continued_from
        return about

    @cached_property
    def identity(self) -> str:
        """What the run's folder and its checkpoints are marked with.

        A declared run's is its `run_id`. A user's own run goes on in its folder with a larger
        budget, so its identity is a hash of all else, known before there is a vocabulary.
        """
        if self.own is None:
            return self.run_id
        about = self.about
        about["training"] = {k: v for k, v in about["training"].items() if k not in BUDGET}
        model: list[Any] = []  # an upgraded model's is in `about`
        if self.own.continued_from is None:
            model = [asdict(dataclasses.replace(self.model, vocab_size=1)), self.own.pieces]
        return digest([about, [self.code_version, self.own.text], model], 12)

    @cached_property
    def trajectory(self) -> str:
        """Hash of all that decides the weights after a given step before the decay."""
        budget = (*BUDGET, "decay_share")
        training = {k: v for k, v in self.config["training"].items() if k not in budget}
        return digest([self.config | {"training": training}, self.data_hash, self.code_version])

    @property
    def size(self) -> str:
        """Width and layers of each stack, such as `d16x1`; feed-forward width if not four times."""
        d, ff = self.model.d_model, self.model.d_ff
        wide = "" if ff == 4 * d else f"ff{ff}"
        return f"d{d}x{self.model.encoder_layers}{wide}"

    @property
    def label(self) -> str:
        """For people: size, mixture and seed."""
        weights = " ".join(f"{pair} {p:g}" for pair, p in self.mixture.items[:6])
        if len(self.mixture.items) > 6:
            weights = f"{len(self.mixture.items)} pairs"
        budget = "" if self.training.steps is None else f" {self.training.steps} steps"
        for what in ("loss_weights", "first_weights"):
            if changed := getattr(self.training, what):
                weights += f"; {what} " + " ".join(f"{pair} {p:g}" for pair, p in changed.items())
        begun = f" from {self.upgrade.parent.run_id}" if self.upgrade else ""
        return f"{self.corpus} {self.size} [{weights}]{budget} seed {self.seed}{begun}"

    def memory(self, device: str = "cpu", *, recompute: bool = False, shards: int = 1) -> int:
        """Bytes that training takes, about; see `architecture.training_memory`."""
        return training_memory(
            self.model,
            batch_tokens=-(-self.training.batch_tokens // self.training.accumulate),
            sentence_tokens=self.training.max_length,
            optimiser=self.training.optimiser,
            sliced=not device.startswith("cuda"),
            recompute=recompute,
            shards=shards,
        )

    @property
    def cost(self) -> float:
        """Relative work of the run, for ordering and for estimates of time left.

        A target token meets each weight, and for each piece the width of the output and about 30
        operations of the softmax. Each layer costs a step as much again as 10^8 of these, whatever
        its size. A token that is validated has no backward pass, and costs a third. The constants
        are fitted to the seconds of 2,000 stored runs.
        """
        training, pieces = self.training, self.model.vocab_size
        sentences = VALIDATION_SENTENCES * len(self.mixture.pairs)
        validated = training.curve_points * min(sentences, MOST_VALIDATION_SENTENCES)
        tokens = training.planned_tokens + validated * _SENTENCE_TOKENS / 3
        weights = 4 * parameter_counts(self.model)["non_embedding"]
        steps = training.steps or training.planned_tokens / training.batch_tokens
        layers = self.model.encoder_layers + self.model.decoder_layers
        return tokens * (weights + pieces * (self.model.d_model + 30)) + 1e8 * layers * steps
