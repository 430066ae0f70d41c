"""What `train --continue-from` takes over from a model that `upgrade` wrote, and what it checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.runs.trained import START, is_imported, read_about, read_checkpoint, read_vocabulary
from mnmt_repro.training.config import TrainingConfig
from mnmt_repro.typed_config import build
from mnmt_repro.upgrading.config import UpgradeConfig, steps_to_rise

if TYPE_CHECKING:
    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.runs.training_text import TrainingText
    from mnmt_repro.upgrading.start import Start


@dataclass(frozen=True, kw_only=True)
class UpgradedFolder:
    """An upgraded model's folder, read."""

    folder: Path
    about: dict[str, Any]  # its `run.json`
    vocabulary: Vocabulary

    @classmethod
    def read(cls, folder: Path) -> UpgradedFolder:
        """Read `run.json` and the vocabulary.

        Raises
        ------
        InputError
            When the folder holds no upgraded model, or a damaged one.
        """
        about = read_upgraded(folder)
        return cls(folder=folder, about=about, vocabulary=read_vocabulary(folder, about))

    def start(self, config: TrainingConfig) -> Start:
        """The model itself, built anew at each call, since training changes it.

        Raises
        ------
        InputError
            When its file is absent, damaged or of another upgrade, or has the state of another
            optimiser than `config`.
        """
        from mnmt_repro.upgrading.start import load_upgraded

        start = load_upgraded(read_checkpoint(self.folder / START, self.about))
        old = self.about["training"]["optimiser"]
        if start.optimiser and config.optimiser != old:
            raise InputError(
                f"--optimiser {config.optimiser}: the old model's state is that of {old}; leave "
                "the option out, or upgrade with --optimiser reset"
            )
        return start

    @property
    def origin(self) -> dict[str, Any]:
        """What the `run.json` of a run that goes on from here says about it."""
        return {"identity": self.about["identity"], "upgrade": self.about["upgrade"]["config"]}

    def check_text(self, text: TrainingText, mixture: Mixture, tags: Any) -> None:
        """Refuse text that the upgraded model's vocabulary cannot write.

        Raises
        ------
        InputError
            When it lacks a language's tag, or either is a conlang's and the other is not.
        """
        from mnmt_repro.corpora.encoding import tag_ids

        pieces = self.vocabulary
        known = pieces.conlang.config if isinstance(pieces, SyllableVocabulary) else None
        if text.conlang != known:
            raise InputError(
                "the upgraded model was trained on other text: give --data or --corpus for a model "
                "of real text, and the same --concepts, --languages and --similarity for a conlang"
            )
        for pair in mixture.pairs:
            try:
                tag_ids(pieces, pair, tags)
            except InputError as error:
                raise InputError(
                    f"{pair}: {error}; upgrade with a vocabulary of all languages (--vocab)"
                ) from error

    def notes(self, text: TrainingText, config: TrainingConfig, tags: str) -> Iterator[str]:
        """What of the training to come does not fit the old one."""
        from mnmt_repro.corpora.formats import content_hash

        about = self.about
        if tags != about["tags"]:
            yield f"language tags: {about['tags']} in the old model's text, {tags} from here on"
        old = about.get("validation", {})
        new = {pair: content_hash(bitext) for pair, bitext in text.valid.items() if pair in old}
        if changed := [pair for pair in new if new[pair] != old[pair]]:
            yield (
                f"validation text of {', '.join(changed)} is not the old model's, which may have "
                "been trained on it; give the same --data or --valid as then to compare losses, or "
                "to --keep best"
            )
        steps = config.steps or (config.target_tokens or 0) // config.batch_tokens
        rising = steps_to_rise(build(UpgradeConfig, about["upgrade"]["config"]))
        if steps < rising:
            yield (
                f"a learning-rate factor rises over {rising:,} steps, and this run takes about "
                f"{steps:,}; see --steps"
            )


def read_upgraded(folder: Path) -> dict[str, Any]:
    """The `run.json` of an upgraded model.

    Raises
    ------
    InputError
        When the folder holds none.
    """
    about = {} if is_imported(folder) else read_about(folder)
    if "upgrade" not in about:
        raise InputError(
            f"--continue-from {folder}: is a trained model, not an upgraded one; "
            f"`mnmt-repro upgrade --from {folder} --out NEW` makes one of it, the same if nothing "
            "else is asked for"
        )
    return about
