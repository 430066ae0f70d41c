"""`upgrade`: give a trained model a new vocabulary, more width and depth, to be trained on."""

from __future__ import annotations

import dataclasses
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pandas as pd

from mnmt_repro.cli.options import comma_list
from mnmt_repro.cli.test_sets import split_text
from mnmt_repro.cli.upgrade_options import (
    UpgradeOptions,
    upgrade_config,
    usual,
)
from mnmt_repro.errors import InputError, note, remedy
from mnmt_repro.runs.trained import check_free, is_imported
from mnmt_repro.typed_config import SEEDS

if TYPE_CHECKING:
    from torch import Tensor

    from mnmt_repro.corpora.formats import Bitext
    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.interchange import Imported
    from mnmt_repro.model import Transformer
    from mnmt_repro.training.checkpoint import Checkpoint
    from mnmt_repro.upgrading.recipe import Upgraded
    from mnmt_repro.upgrading.vocabulary import PieceMap


UNITS = "token", "character"
"""What losses are printed for."""
AT_HAND = 200
"""Sentences of each direction on which the loss is printed where none are named."""


EXAMPLES = (
    "mnmt-repro data vocabulary --data eng-deu=talks.tsv --data eng-xho=new.tsv \\"
    "\n      --out both.model",
    "mnmt-repro upgrade --from runs/talks --vocab both.model --wider 2 --deeper 1 \\"
    "\n      --gamma 0.5 --out runs/talks-start",
    "mnmt-repro train --continue-from runs/talks-start --data eng-deu=talks.tsv \\"
    "\n      --data eng-xho=new.tsv --upsample eng-xho=5 --out runs/both",
    "mnmt-repro upgrade --from nllb-200 --vocab plus.model --gamma 0.5 --out runs/nllb-start",
    "mnmt-repro upgrade --from runs/talks --preset deep --steps 3000 -o runs/deep-start",
)
USUAL = usual


@dataclass(frozen=True, kw_only=True)
class _Old:
    """The model to upgrade: its description, its checkpoint and its pieces."""

    about: dict[str, Any]
    checkpoint: Checkpoint
    vocabulary: Vocabulary
    imported: Imported | None = None  # of another program

    def losses(self, texts: Mapping[str, Bitext]) -> dict[str, dict[str, float]]:
        """Its loss on each text; built for this alone, so that two models are never held."""
        if not texts:
            return {}
        model = (self.imported or self.checkpoint).model()
        return _losses(model, self.vocabulary, self.about["tags"], texts)

    def text(self) -> Mapping[str, Bitext]:
        """Validation text of its pairs: what `train` held out, a corpus's, or a generated one's.

        Raises
        ------
        InputError
            When the files are not there, or no longer what they were.
        """
        from mnmt_repro.corpora.encoding import SyllableVocabulary
        from mnmt_repro.runs.training_text import valid_text

        corpus, pieces = self.about["corpus"], self.vocabulary
        if corpus == "own":
            texts = valid_text(self.about)
        else:
            conlang = pieces.conlang if isinstance(pieces, SyllableVocabulary) else None
            pairs = self.about["pairs"]
            texts = {pair: split_text(corpus, conlang, pair, "valid", AT_HAND) for pair in pairs}
        return {pair: text.select(range(min(AT_HAND, len(text)))) for pair, text in texts.items()}


def act(options: UpgradeOptions) -> int:
    """Upgrade, write a folder, print what has changed."""
    config = upgrade_config(options)
    check_free(options.out)

    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.model import TABLES
    from mnmt_repro.upgrading.recipe import upgrade
    from mnmt_repro.upgrading.vocabulary import check_new_rows, match_pieces

    old = _import(options) if is_imported(options.source) else _read_old(options)
    about, checkpoint = old.about, old.checkpoint
    if options.seed is None:  # another than the old run's, whose weights began as its draws
        seed = zlib.crc32(about["identity"].encode()) % SEEDS
        config = dataclasses.replace(config, seed=seed)
    vocabulary, pieces = old.vocabulary, _unmet_pieces(old)
    if options.vocabulary is not None:
        vocabulary = Vocabulary.load(options.vocabulary)
        _check_vocabulary(options, about, vocabulary)
        pieces = match_pieces(old.vocabulary, vocabulary)
    if old.imported is not None:
        same = pieces or match_pieces(old.vocabulary, old.vocabulary)
        pieces = same.at_rows(old.imported.pieces.order)
    texts, no_text = _texts(options, old)
    before = old.losses(texts)
    made = upgrade(checkpoint, config, pieces=pieces)
    description = {
        "from": about["identity"],
        "checkpoint": options.checkpoint,
        "steps": made.steps,
        "config": dataclasses.asdict(made.config),
    }
    if options.as_new is not None:
        description["as_new"] = comma_list(options.as_new)
        made = dataclasses.replace(made, groups=_as_new(made.groups, description["as_new"]))
    after = _losses(made.model, vocabulary, about["tags"], texts)
    _write(options, about, made, vocabulary, description)

    rows = {}
    if pieces is not None and made.config.keep == "all":  # so that the others are old rows
        tables = made.model.state_dict().items()
        rows = {name: check_new_rows(table, pieces) for name, table in tables if name in TABLES}
    note(*no_text, *_notes(about, made, rows))
    print(f"{options.out}: {options.source}, upgraded")
    _print_facts(made, rows)
    _print_losses(before, after)
    own = " --data PAIR=FILE" * (about["corpus"] == "own")
    print(f"next: mnmt-repro train --continue-from {shlex.quote(str(options.out))}{own}")
    return 0


def _texts(options: UpgradeOptions, old: _Old) -> tuple[Mapping[str, Bitext], list[str]]:
    """Text to print losses on, by default of the old pairs, and a note where there is none."""
    from mnmt_repro.corpora.bitext import read_bitexts

    if named := read_bitexts(options.loss_on, "--loss-on"):
        return named, []
    try:
        return old.text(), []
    except InputError as error:
        return {}, [f"no loss is shown: {error}; name text with --loss-on PAIR=FILE"]


def _as_new(groups: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """Groups in which all parameters below these names, such as ``decoder.1``, are new."""
    from mnmt_repro.upgrading.learning_rate import NEW

    parts = {each: set(accumulate(each.split("."), "{}.{}".format)) for each in groups}
    known = sorted(set().union(*parts.values()))
    if wrong := [name for name in names if name not in known]:
        why = f"no parameter begins so; {remedy(wrong[0], known, 3)}"
        raise InputError(f"--as-new {wrong[0]}: {why}")
    return {
        each: group.new_full(group.shape, NEW) if parts[each] & {*names} else group
        for each, group in groups.items()
    }


def _losses(
    model: Transformer, vocabulary: Vocabulary, tags: Any, texts: Mapping[str, Bitext]
) -> dict[str, dict[str, float]]:
    """Nats a target token and a character of each text; none where a tag is needed and lacking."""
    from mnmt_repro.corpora.encoding import encode, tag_ids
    from mnmt_repro.scoring import check_finite, sentence_losses

    losses: dict[str, dict[str, float]] = {pair: {} for pair in texts}
    for pair, text in texts.items():
        try:
            tag_ids(vocabulary, pair, tags)
        except InputError:
            continue
        nats, tokens = sentence_losses(model, encode(text, vocabulary, tags))
        check_finite(nats, pair)
        for unit, counts in zip(UNITS, (tokens, text.characters), strict=True):
            losses[pair][unit] = float(nats.sum() / counts.sum())
    return losses


def _notes(
    about: Mapping[str, Any], made: Upgraded, rows: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """What of the new embeddings would not be expected, and should not pass unsaid."""
    overlap = made.report.overlap
    if overlap is None or made.config.keep != "all":
        return
    if overlap.dropped and about.get("imported"):
        yield (
            f"{len(overlap.dropped)} of the model's pieces and tags are dropped; a vocabulary of "
            "`mnmt-repro data extend` keeps them all"
        )
    kept, added = (
        any(piece.kind == "tag" for piece in pieces) for pieces in (overlap.kept, overlap.added)
    )
    if about["tags"] == "none" and kept and added:
        yield (
            "the old model was trained without language tags: those it has were never trained, "
            "and learn as old parameters do; train it with --tags both to avoid that"
        )
    for name, check in rows.items():
        alike = check["equal"] + check["unknown"] * (made.config.embeddings == "mean")
        if 10 * alike > check["new"] or check["far"]:  # a few are in the table only
            yield (
                f"{name}: {alike:,} of {check['new']:,} new rows equal <unk> or another row, "
                "because old pieces spell them alike (--init random starts them apart), and the "
                f"length of {check['far']:,} new or spare rows is far from that of old ones"
            )


def _print_facts(made: Upgraded, rows: Mapping[str, Mapping[str, int]]) -> None:
    """Sizes before and after, entries of each group, pieces, and new rows of the tables."""
    facts, report = made.report.facts(), made.report
    old, new = facts["old"], facts["new"]
    lines = {name.replace("_", " "): f"{old[name]:,} -> {new[name]:,}" for name in old}
    lines |= {f"{name} parameters": f"{count:,}" for name, count in facts["entries"].items()}
    pieces = facts.get("pieces", {})
    lines |= {f"pieces {name}": f"{pieces[name]:,}" for name in pieces if name != "share_kept"}
    if report.normalisation:
        lines["normalisation"] = f"{made.config.width.normalisation}: {report.normalisation}"
    for name, check in rows.items():
        if check["new"]:
            lines[f"rows of {name.partition('.')[0]}"] = (
                f"{check['new']:,} new; copies of <unk>: {check['unknown']:,}, equal to another: "
                f"{check['equal']:,}, out of scale: {check['far']:,}"
            )
    for name, text in lines.items():
        print(f"  {name + ':':<19}{text}")
    if report.overlap is not None:
        shares = {"share": "{:.1%}".format}
        table = pd.DataFrame(report.overlap.rows())
        print(table.to_string(index=False, na_rep="", formatters=shares))


def _print_losses(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> None:
    """Nats a token, and a character: with other pieces only these can be compared."""
    for pair in after:
        for unit, start in zip(UNITS, (f"{pair}:", " "), strict=True):
            both = (losses[pair].get(unit) for losses in (before, after))
            was, now = ("no tag" if loss is None else f"{loss:.4f}" for loss in both)
            print(f"{start} {was} -> {now} nats a {unit}")


def _read_old(options: UpgradeOptions) -> _Old:
    """What `train` wrote."""
    from mnmt_repro.runs.trained import (
        read_about,
        read_checkpoint,
        read_vocabulary,
        tell_unfinished,
    )
    from mnmt_repro.training.config import BEST, LAST

    about = read_about(options.source)
    if "upgrade" in about:
        raise InputError(
            f"--from {options.source}: upgraded, and not trained on since; upgrade the model that "
            "it came from, with all options at once"
        )
    path = options.source / (BEST if options.checkpoint == "best" else LAST)
    if options.checkpoint == "best" and not path.exists():
        raise InputError(f"--checkpoint best: {options.source} was not trained with --keep best")
    checkpoint = read_checkpoint(path, about)
    tell_unfinished(options.source, about)
    return _Old(
        about=about, checkpoint=checkpoint, vocabulary=read_vocabulary(options.source, about)
    )


def _import(options: UpgradeOptions) -> _Old:
    """A Hugging Face model, which does not say what it was trained on, or how."""
    from mnmt_repro.interchange import read_folder
    from mnmt_repro.training.checkpoint import Checkpoint, check_numbers
    from mnmt_repro.training.config import TrainingConfig

    imported = read_folder(options.source)
    check_numbers(imported.weights, str(options.source))
    training = TrainingConfig(
        learning_rate=1e-4,
        warmup_steps=400,
        batch_tokens=4096,
        steps=10_000,
        max_length=128,
        optimiser="adamw",
        clip_norm=1.0,
        label_smoothing=0.1,
    )
    vocabulary = imported.pieces.vocabulary
    about = {
        "identity": imported.identity,
        "imported": str(options.source.resolve().name),
        "corpus": "own",
        "pairs": [],
        "mixture": {},
        "tags": imported.pieces.tags,
        "languages": list(vocabulary.languages),
        "conlang": None,
        "vocabulary": vocabulary.hash,
        "training": training.settings(),
        "seed": 0,
    }
    checkpoint = Checkpoint(
        config=imported.shape, weights=imported.weights, identity=imported.identity
    )
    return _Old(about=about, checkpoint=checkpoint, vocabulary=vocabulary, imported=imported)


def _check_vocabulary(options: UpgradeOptions, about: dict[str, Any], new: Vocabulary) -> None:
    """Refuse a vocabulary that cannot serve the pairs of the model."""
    from mnmt_repro.corpora.encoding import tag_ids

    if about["conlang"] is not None:
        raise InputError(
            f"--vocab {options.vocabulary}: the model's tables have a row for each syllable of its "
            "conlang from the start; leave it out, and train on with more --pairs"
        )
    for pair in about["pairs"]:
        try:
            tag_ids(new, pair, about["tags"])
        except InputError as error:
            raise InputError(
                f"--vocab {options.vocabulary}: {error}, but the model was trained on {pair}; "
                "train one on old and new languages with `mnmt-repro data vocabulary`, or give "
                "one of your own their tags with `mnmt-repro data adopt`"
            ) from error


def _unmet_pieces(old: _Old) -> PieceMap | None:
    """Pieces of a conlang's languages that the old model has not met, as if they were new."""
    from mnmt_repro.corpora.encoding import SyllableVocabulary
    from mnmt_repro.runs.start import untrained_pieces

    if not isinstance(old.vocabulary, SyllableVocabulary):
        return None
    conlang, rows = old.vocabulary.conlang.config, old.checkpoint.config.vocab_size
    return untrained_pieces(conlang, old.about["pairs"], rows)


def _write(
    options: UpgradeOptions,
    about: dict[str, Any],
    made: Upgraded,
    vocabulary: Vocabulary,
    description: dict[str, Any],
) -> None:
    """Fill a folder beside the one wanted, then give it its name: whole or not at all."""
    from mnmt_repro.corpora.encoding import SyllableVocabulary
    from mnmt_repro.interchange.writing import new_folder
    from mnmt_repro.runs.spec import digest
    from mnmt_repro.runs.trained import START, VOCABULARY, write_about
    from mnmt_repro.upgrading.start import save_upgraded

    identity = digest([description, vocabulary.hash], 12)
    new = {
        **{k: v for k, v in about.items() if k not in ("format", "continued_from")},
        "identity": identity,
        "vocabulary": vocabulary.hash,
        "model": dataclasses.asdict(made.model.config),
        "upgrade": description,
    }
    with new_folder(options.out) as stage:
        save_upgraded(stage / START, made, identity=identity)
        if not isinstance(vocabulary, SyllableVocabulary):
            vocabulary.save(stage / VOCABULARY)
        write_about(stage, new)
