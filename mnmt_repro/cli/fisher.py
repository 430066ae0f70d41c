"""`upgrade --fisher-threshold`: slow down old parameters by their Fisher information."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.options import comma_list, number
from mnmt_repro.cli.upgrade_options import UpgradeOptions, parse_gamma
from mnmt_repro.errors import InputError
from mnmt_repro.upgrading.config import Gamma, Ramp

if TYPE_CHECKING:
    from mnmt_repro.corpora.formats import Bitext
    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.upgrading.recipe import Upgraded


@dataclass(frozen=True, kw_only=True)
class FisherScaling:
    """What ``--fisher-threshold`` asks for.

    Attributes
    ----------
    thresholds
        Fisher information, and the factor of the old parameters above it.
    sentences
        Of each old pair's validation text.
    about
        What `run.json` says about the old model.
    text
        Validation text of its pairs; none of a conlang's, which is generated.
    """

    thresholds: tuple[tuple[float, Gamma], ...]
    sentences: int
    about: Mapping[str, Any]
    text: Mapping[str, Bitext]

    def slow(self, made: Upgraded, vocabulary: Vocabulary) -> Upgraded:
        """Give the old parameters of an upgraded model the factors of their information."""
        from mnmt_repro.corpora.encoding import SyllableVocabulary, encode, encode_conlang
        from mnmt_repro.runs.start import fisher_sentences
        from mnmt_repro.upgrading.start import slow_by_fisher

        tags, longest = self.about["tags"], self.about["training"]["max_length"]
        if isinstance(vocabulary, SyllableVocabulary):
            encoded = [
                encode_conlang(vocabulary.conlang, pair, "valid", self.sentences, tags)
                for pair in self.about["pairs"]
            ]
        else:
            encoded = [encode(text, vocabulary, tags) for text in self.text.values()]
        texts = (text.shorter_than(longest) for text in encoded)
        return slow_by_fisher(made, fisher_sentences(texts, self.sentences), self.thresholds)

    def counts(self, made: Upgraded) -> dict[float, int]:
        """Old parameters that have more information than each threshold."""
        return {
            threshold: sum(int((group > place).sum()) for group in made.groups.values())
            for place, (threshold, _) in enumerate(self.thresholds, start=1)
        }

    @property
    def settings(self) -> dict[str, Any]:
        """What `run.json` says of it, which is all that decides the groups."""
        from mnmt_repro.corpora.formats import content_hash

        return {
            "thresholds": [
                [threshold, asdict(gamma) if isinstance(gamma, Ramp) else gamma]
                for threshold, gamma in self.thresholds
            ],
            "sentences": self.sentences,
            "text": {pair: content_hash(bitext) for pair, bitext in self.text.items()},
        }


def read_fisher(options: UpgradeOptions, about: Mapping[str, Any]) -> FisherScaling | None:
    """Read ``--fisher-threshold`` and the text that it needs; None where it is not given.

    Raises
    ------
    InputError
        When the options cannot be read, or the text is not that of the old model's pairs.
    """
    if options.fisher_threshold is None:
        return None
    where, thresholds = f"--fisher-threshold {options.fisher_threshold}", []
    for part in comma_list(options.fisher_threshold):
        threshold, equals, gamma = part.partition("=")
        if not equals:
            raise InputError(f"{where}: write F=FACTOR, such as 1e-6=0.25")
        thresholds.append((number(threshold, where), parse_gamma(gamma, options.steps, where)))
    bounds = [0.0, *(threshold for threshold, _ in thresholds)]
    if not thresholds or not all(low < high for low, high in pairwise(bounds)):
        raise InputError(f"{where}: thresholds must rise from above 0")
    return FisherScaling(
        thresholds=tuple(thresholds),
        sentences=options.fisher_sentences,
        about=about,
        text=_validation_text(about),
    )


def _validation_text(about: Mapping[str, Any]) -> Mapping[str, Bitext]:
    """Validation text of a corpus; of the user's own, what `train` validated on."""
    from mnmt_repro.corpora.bitext import load_split
    from mnmt_repro.runs.training_text import valid_text

    if about["corpus"] != "own":
        real = about["pairs"] if about["conlang"] is None else ()
        return {pair: load_split(about["corpus"], pair, "valid") for pair in real}
    try:
        return valid_text(about)
    except InputError as error:
        raise InputError(
            f"--fisher-threshold: {error}; put the text of {', '.join(about['pairs'])} back where "
            "`train` read it"
        ) from error
