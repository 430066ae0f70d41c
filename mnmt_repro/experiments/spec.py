"""What a run is: everything that decides its result, as data. No torch is needed here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import Tags
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.registry import data_hash
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.experiments.code_version import code_version
from mnmt_repro.training.config import TrainingConfig


def digest(value: Any, length: int = 16) -> str:
    """Hexadecimal hash of anything JSON can hold, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One training run, declared.

    Two runs with the same `config_hash` and `data_hash` under the same code version are the same
    run: `run_id` names it. Tier and corpus are labels; what they stand for is in the other fields.
    """

    tier: str
    corpus: str  # name of a registered corpus, or of a declared conlang
    mixture: Mixture
    model: ModelConfig
    training: TrainingConfig
    tags: Tags
    seed: int
    vocabulary: VocabularyConfig | None = None  # real text
    conlang: ConlangConfig | None = None  # generated text, whose syllables are its pieces

    @cached_property
    def config(self) -> dict[str, Any]:
        """All that decides the result, as nested dictionaries."""
        fields = asdict(self)
        for label in ("tier", "corpus"):
            del fields[label]
        fields["mixture"] = self.mixture.weights
        if self.conlang is None:
            fields["corpus"] = self.corpus
        return json.loads(json.dumps(fields))

    @cached_property
    def config_hash(self) -> str:
        return digest(self.config)

    @cached_property
    def data_hash(self) -> str:
        """Of the text that vocabulary and model are trained on; known without reading it."""
        if self.conlang is not None:
            return digest(asdict(self.conlang), 12)
        return data_hash(self.corpus)

    @cached_property
    def run_id(self) -> str:
        return digest([self.config_hash, self.data_hash, code_version()], 12)

    @property
    def size(self) -> str:
        """Width and layers of each stack, such as `d16x1`."""
        return f"d{self.model.d_model}x{self.model.encoder_layers}"

    @property
    def label(self) -> str:
        """For people: size, mixture and seed."""
        weights = " ".join(f"{pair} {p:g}" for pair, p in self.mixture.items)
        return f"{self.corpus} {self.size} [{weights}] seed {self.seed}"

    @property
    def cost(self) -> float:
        """Relative work of the run, for ordering and for estimates of time left.

        Every token meets every weight and a score for every piece; the constant stands for what is
        done a token whatever the size.
        """
        counts = parameter_counts(self.model)
        weights = counts["non_embedding"] + self.model.vocab_size * self.model.d_model
        return self.training.planned_tokens * (weights + 150_000.0)
