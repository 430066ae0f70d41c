"""What `train --continue-from` takes over from a model that `upgrade` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.presets import of_text
from mnmt_repro.corpora.encoding import SyllableVocabulary
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.runs.trained import START, read_about, read_checkpoint, read_vocabulary
from mnmt_repro.training.config import BUDGET, TrainingConfig
from mnmt_repro.upgrading.config import steps_to_rise

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


def read_upgraded(folder: Path) -> UpgradedFolder:
    """Read the folder of an upgraded model.

    Raises
    ------
    InputError
        When it holds none, or a damaged one.
    """
    from mnmt_repro.interchange import is_hf

    about = {} if is_hf(folder) else read_about(folder)
    if "upgrade" not in about:
        raise InputError(
            f"--continue-from {folder}: is a trained model, not an upgraded one; "
            f"`mnmt-repro upgrade --from {folder} --out NEW` makes one of it, the same if nothing "
            "else is asked for"
        )
    return UpgradedFolder(folder=folder, about=about, vocabulary=read_vocabulary(folder, about))


def of_upgraded(upgraded: UpgradedFolder, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `train` as the upgraded model and its old run have them.

    Those are text and pairs (where no other is given), tags, and all training settings but the
    budget. The seed is one more than the old one, for other dropout and another order of data.

    Parameters
    ----------
    asked
        Options of the command line.

    Raises
    ------
    InputError
        When its rate or its text has to be given.
    """
    about = upgraded.about
    constant = about["upgrade"]["config"]["schedule"] == "constant"
    if constant and "learning_rate" not in asked:
        peak = about["training"]["learning_rate"]
        raise InputError(
            f"--continue-from {upgraded.folder}: its rate is constant; give --learning-rate (the "
            f"old model's peak was {peak:g}; a tenth of it is small)"
        )
    values = {name: value for name, value in about["training"].items() if name not in BUDGET}
    values["seed"] = about["seed"] + 1
    if about["tags"] != "none":
        values["tags"] = about["tags"]
    if "data" in asked or asked.get("corpus", about["corpus"]) != about["corpus"]:
        return values
    if about["corpus"] == "own":
        pairs = ", ".join(about["pairs"])
        raise InputError(
            f"--continue-from {upgraded.folder}: the model was trained on your own text "
            f"({pairs}); give it again with --data, and that of new pairs"
        )
    return values | of_text(about)


def check_text(upgraded: UpgradedFolder, text: TrainingText, mixture: Mixture, tags: Any) -> None:
    """Refuse text that the upgraded model's vocabulary cannot write.

    Raises
    ------
    InputError
        When it lacks a language's tag, or either is a conlang's and the other is not.
    """
    from mnmt_repro.corpora.encoding import tag_ids

    pieces = upgraded.vocabulary
    known = pieces.conlang.config if isinstance(pieces, SyllableVocabulary) else None
    if text.conlang != known:
        if known is None:
            wrong = "--corpus conlang: the upgraded model's vocabulary is one of real text"
        elif text.conlang is None:
            wrong = "the upgraded model's pieces are a conlang's syllables; train it on that"
        else:
            wrong = "--concepts, --languages, --similarity: trained on another conlang"
        raise InputError(wrong)
    for pair in mixture.pairs:
        try:
            tag_ids(pieces, pair, tags)
        except InputError as error:
            raise InputError(
                f"{pair}: {error}; upgrade with a vocabulary of all languages (--vocab)"
            ) from error


def notes(
    upgraded: UpgradedFolder, text: TrainingText, config: TrainingConfig, tags: str
) -> Iterator[str]:
    """What of the training to come does not fit the old one, and should not pass unsaid."""
    about = upgraded.about
    if tags != about["tags"]:
        yield f"language tags: {about['tags']} in the old model's text, {tags} from here on"
    yield from _other_validation(about, text)
    steps = config.steps or (config.target_tokens or 0) // config.batch_tokens
    rising = steps_to_rise(upgraded.about["upgrade"])
    if steps < rising:
        yield (
            f"a learning-rate factor rises over {rising:,} steps, and this run takes about "
            f"{steps:,}; see --steps"
        )


def _other_validation(about: Mapping[str, Any], text: TrainingText) -> Iterator[str]:
    """Validation text of old pairs that the old model may have learnt from."""
    from mnmt_repro.corpora.formats import content_hash

    known = about.get("validation", {})
    changed = [
        pair
        for pair, bitext in text.valid.items()
        if pair in known and content_hash(bitext) != known[pair]
    ]
    if changed:
        yield (
            f"validation text of {', '.join(changed)} is not the old model's, which may have been "
            "trained on it; give the same --data or --valid as then to compare losses, or to "
            "--keep best"
        )
