"""A model's folder: what `train` and `upgrade` write beside checkpoints, and how it is read.

`run.json` tells what was trained (pairs, tags, mixture, model, training, seed), `vocabulary.model`
holds the pieces. A conlang's pieces are its syllables, so `run.json` holds its declaration instead.
Of a model that `upgrade` wrote, `run.json` also has `upgrade`, and the weights that training goes
on from are in `start.safetensors`; of one trained on from there, it has `continued_from`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.atomic import write_bytes
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.encoding import SyllableVocabulary, Tags
from mnmt_repro.corpora.registry import split_pair
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError, note, tell
from mnmt_repro.training.config import LAST, TrainingConfig
from mnmt_repro.typed_config import FieldError, build, convert

if TYPE_CHECKING:
    from mnmt_repro.model import Transformer
    from mnmt_repro.training.checkpoint import Checkpoint

ANY = "source"
"""Stands for the source language of a pair where it does not matter."""
RUN, VOCABULARY, START = "run.json", "vocabulary.model", "start.safetensors"
FORMAT = 1
_KINDS: dict[str, Any] = {
    "identity": str,
    "corpus": str,
    "pairs": tuple[str, ...],
    "mixture": dict[str, float],
    "tags": Tags,
    "languages": tuple[str, ...],
    "conlang": ConlangConfig | None,
    "vocabulary": str,
    "model": ModelConfig,
    "training": TrainingConfig,
    "seed": int,
}
"""What every `run.json` holds."""
MORE: dict[str, Any] = {
    "files": dict[str, tuple[str, ...]],
    "validation": dict[str, str],
    "continued_from": dict[str, Any],
    "upgrade": dict[str, Any],
    "imported": str,
}
"""What some hold."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model with all that translating and scoring need."""

    folder: Path
    model: Transformer
    vocabulary: Vocabulary
    corpus: str
    weights: Mapping[str, float]  # of the mixture, by pair
    tags: Tags
    any_pair: bool = False  # a model of another program, which does not say what it was trained on
    continued: bool = False  # trained before, perhaps on other pairs

    @property
    def pairs(self) -> tuple[str, ...]:
        """What it was trained on."""
        return tuple(self.weights)

    @property
    def conlang(self) -> Conlang | None:
        """The conlang that it was trained on, if it was one."""
        pieces = self.vocabulary
        return pieces.conlang if isinstance(pieces, SyllableVocabulary) else None

    def check_direction(self, pair: str, option: str) -> None:
        """Refuse a direction that the model cannot go; say so where it was not trained on.

        It is zero-shot where its source was trained on, and its target, in other pairs. A model
        that was continued on other pairs can still go the old ones: its vocabulary has their tags.

        Raises
        ------
        InputError
            Naming the option, and listing the pairs that there are.
        """
        if pair in self.pairs:
            return
        ends = split_pair(pair)
        known = [{split_pair(each)[side] for each in self.pairs} for side in (0, 1)]
        shot = all(end in there for end, there in zip(ends, known, strict=True))
        if self.tags != "none" and shot and not self.any_pair:
            note(f"{pair}: not trained on, so zero-shot")
            return
        if not self.any_pair and (self.tags == "none" or not self.continued):
            raise InputError(f"{option}: the model was trained on {', '.join(self.pairs)}")
        check_codes_of(self.vocabulary, pair, option)
        if not self.any_pair:
            note(f"{pair}: not among the pairs of its last training")

    def direction(self, target: str, source: str | None) -> str:
        """The pair with that target, and source where it is given; see `check_direction`.

        Raises
        ------
        InputError
            When there is none, or several; the message lists them.
        """
        option = f"--to {target}" if source is None else f"--from {source} --to {target}"
        needed = source is None and self.tags not in ("none", "source")
        if self.any_pair or source is not None:
            if needed:
                raise InputError(f"{option}: say --from which language")
            pair = f"{source or ANY}-{target}"
            self.check_direction(pair, option)
            return pair
        there = [pair for pair in self.pairs if pair.partition("-")[2] == target]
        if not there or (len(there) > 1 and needed):
            more = "say --from which language; " * bool(there or self.continued)
            raise InputError(f"{option}: {more}the model was trained on {', '.join(self.pairs)}")
        return there[0]


def check_codes_of(vocabulary: Vocabulary, pair: str, option: str) -> None:
    """Refuse a code that a model lacks; without any tag, what is no language's code.

    Raises
    ------
    InputError
        Naming the option and the nearest codes.
    """
    codes = [code for code in split_pair(pair) if code != ANY]
    try:
        for code in codes if vocabulary.languages else ():
            vocabulary.tag(code)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error
    if vocabulary.languages:
        return
    if wrong := [code for code in codes if not re.fullmatch("[a-z]{2,3}(_[A-Za-z]+)?", code)]:
        raise InputError(f"{option}: {wrong[0]} is no code, such as de, deu or deu_Latn")
    note(f"{pair}: the model has no language tags, so it may translate otherwise than asked")


def check_free(out: Path, ours: Collection[str] = ()) -> None:
    """Refuse to write into a folder that holds something else than files named in `ours`.

    Raises
    ------
    InputError
        When it does, or is a file.
    """
    if not out.name:
        raise InputError(f"--out {out}: name a new folder")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; choose a folder")
    torn = tuple(f".{name}." for name in (RUN, *ours)) if ours else ()  # of a killed process
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    if any(name not in ours and not name.startswith(torn) for name in names):
        raise InputError(f"--out {out}: is not empty; choose another folder, or remove this one")


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write `run.json`, whole or not at all."""
    text = json.dumps({"format": FORMAT, **about}, indent=1, ensure_ascii=False) + "\n"
    # What is no character in the name of a file has an escape in JSON, and is read again as it was.
    write_bytes(folder / RUN, text.encode(errors="backslashreplace"))


def read_about(folder: Path) -> dict[str, Any]:
    """Read `run.json`, of a folder or by its own path.

    Raises
    ------
    InputError
        When it is absent, torn, or of another format.
    """
    if folder.is_file() and folder.suffix != ".json":
        raise InputError(f"{folder}: is a file; give the model's folder, {folder.parent}")
    path = folder if folder.is_file() else folder / RUN
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise FieldError(("format",), f"this version reads {FORMAT}, not {about['format']!r}")
        for name, kind in (_KINDS | MORE).items():
            if name in about:
                convert(about[name], kind, (name,))
            elif name in _KINDS:
                raise FieldError((name,), "is missing")
        about["training"] = build(TrainingConfig, about["training"]).settings()
    except FieldError as error:
        raise InputError(f"{path}: {error}; train again into another folder") from error
    except OSError as error:
        raise InputError(
            f"{folder}: no model of `mnmt-repro train` here ({RUN}: {error.strerror})"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: torn; train again into another folder") from error
    return about


def read_vocabulary(folder: Path, about: dict[str, Any]) -> Vocabulary:
    """The pieces of a trained model.

    Raises
    ------
    InputError
        When the pieces are not those that the model was trained with.
    """
    if about["conlang"] is None:
        path = folder / VOCABULARY
        vocabulary = Vocabulary.load(path)
    else:
        path = folder / RUN
        vocabulary = SyllableVocabulary(build(ConlangConfig, about["conlang"]))
    if vocabulary.hash != about["vocabulary"]:
        both = f"pieces of hash {vocabulary.hash}, the model was trained with {about['vocabulary']}"
        raise InputError(f"{path}: {both}; restore the file")
    return vocabulary


def read_checkpoint(path: Path, about: dict[str, Any]) -> Checkpoint:
    """Read a checkpoint of the run that `run.json` is about.

    Raises
    ------
    InputError
        When it is absent, damaged, or of another run.
    """
    from mnmt_repro.training.checkpoint import load_checkpoint

    if path.name != START and not path.exists():
        raise InputError(f"{path.parent}: no checkpoint yet; run the same `train` again")
    checkpoint = load_checkpoint(path)
    if checkpoint.identity != about["identity"]:
        raise InputError(f"{path}: belongs to another run than {path.parent / RUN}")
    return checkpoint


def tell_unfinished(folder: Path, about: dict[str, Any]) -> None:
    """Say on stderr where a run stopped that has not spent its budget."""
    from mnmt_repro.training.checkpoint import read_progress
    from mnmt_repro.training.loop import finished, how_far

    if "upgrade" in about:
        tell(f"{folder}: upgraded, and not trained on since")
        return
    if not (folder / LAST).exists():
        tell(f"{folder}: unfinished, no checkpoint yet; the same `train` begins again")
        return
    progress, config = read_progress(folder / LAST), TrainingConfig(**about["training"])
    if not finished(progress, config):
        at = how_far(progress, config)
        tell(f"{folder}: unfinished, stopped at {at}; the same `train` goes on")


def is_imported(folder: Path) -> bool:
    """Whether a model's folder is one of Hugging Face, and not of `train` or `upgrade`."""
    from mnmt_repro.interchange import is_hf

    return not (folder / RUN).is_file() and is_hf(folder)


def load_trained(folder: Path, *, device: str = "cpu") -> Trained:
    """Read a trained model: its best weights where it kept them, else its last.

    Of an upgraded model that was not trained on yet, its start. A folder of a Hugging Face model
    is read, too (see `interchange`).

    Raises
    ------
    InputError
        When the folder holds no model, or a damaged one.
    """
    if folder.is_file():
        raise InputError(f"{folder}: is a file; give the model's folder, {folder.parent}")
    if is_imported(folder):
        from mnmt_repro.interchange import read_folder
        from mnmt_repro.training.checkpoint import check_numbers

        imported = read_folder(folder)
        check_numbers(imported.weights, str(folder))
        return Trained(
            folder=folder,
            model=imported.model().to(device).eval(),
            vocabulary=imported.pieces.vocabulary,
            corpus="own",
            weights={},
            tags=imported.pieces.tags,
            any_pair=True,
        )
    from mnmt_repro.training.checkpoint import weights_file

    about = read_about(folder)
    kept = weights_file(folder, about["training"]["keep"])
    model = read_checkpoint(folder / START if "upgrade" in about else kept, about).model()
    model = model.to(device)
    tell_unfinished(folder, about)
    model.eval()
    return Trained(
        folder=folder,
        model=model,
        vocabulary=read_vocabulary(folder, about),
        corpus=about["corpus"],
        weights={pair: about["mixture"].get(pair, 0.0) for pair in about["pairs"]},
        tags=about["tags"],
        # Without tags, nothing asks for a pair that it was not trained on.
        any_pair=bool(about.get("imported")) and not (about["tags"] == "none" and about["pairs"]),
        continued=bool(about.get("continued_from")),
    )
