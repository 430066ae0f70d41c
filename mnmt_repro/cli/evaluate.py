"""`evaluate`: cross-entropy, and with `--decode` BLEU and chrF, of a trained model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mnmt_repro.cli import losses_table
from mnmt_repro.cli.options import MODEL, JsonOption, check_device, check_folder, print_json
from mnmt_repro.cli.test_sets import TestSetOptions, read_test_sets, tell_unknown
from mnmt_repro.cli.translate import SearchOptions
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import note, show
from mnmt_repro.typed_config import required, setting

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(JsonOption, SearchOptions, TestSetOptions):
    """The options of `evaluate`."""

    folder: Path = required(MODEL, flags=("folder",), metavar="FOLDER")
    decode: bool = setting("translate, and score translations", False)
    add_to: Path | None = setting(
        "also add the losses to a table that `fit` and `recommend` read", metavar="LOSSES.csv"
    )


EXAMPLES = (
    "mnmt-repro evaluate runs/dezh",
    "mnmt-repro evaluate runs/dezh --test newstest21 --decode --json",
    "mnmt-repro evaluate runs/talks --data eng-deu=test.tsv --decode",
    "mnmt-repro evaluate runs/talks --data eng-deu=test.tsv --add-to losses.csv",
)


def act(options: EvaluateOptions) -> int:
    """Print a row for each pair, test set and domain."""
    from mnmt_repro.evaluation.metrics import flores_pieces
    from mnmt_repro.runs.trained import load_trained

    check_device(options.device)
    trained = load_trained(options.folder, device=options.device)
    if options.decode and not flores_pieces().is_file():
        note(
            f"no spBLEU, whose pieces are not here: {flores_pieces()} (sacrebleu "
            "fetches them when called with --tokenize flores200)"
        )
    sets = list(read_test_sets(trained, options))
    part = "" if options.limit is None else f", first {options.limit}"  # not the whole test set
    if options.add_to:  # before what takes its time
        check_folder(options.add_to.parent, "--add-to")
        wanted = [(text.pair, name + part) for name, text in sets]
        losses_table.check_new(options.add_to, trained, wanted)
    rows = [row for name, text in sets for row in _scores(trained, name, text, options)]
    if options.json:
        print_json(rows)
    else:
        _show(pd.DataFrame(rows))
    if options.add_to:  # once they are shown: a table that cannot be written loses no scores
        new = [row | {"test_set": row["test_set"] + part} for row in rows]
        losses_table.add_losses(options.add_to, new, trained)
    return 0


def _show(frame: pd.DataFrame) -> None:
    """The scores as a table, and below it how BLEU and chrF were computed."""
    from mnmt_repro.results.schema import STORED_METRICS

    formats = {"cross_entropy": "{:.4f}".format, **dict.fromkeys(STORED_METRICS, "{:.2f}".format)}
    signatures = [column for column in frame.columns if column.endswith("_signature")]
    table = frame.drop(columns=signatures)
    show(table.to_string(index=False, na_rep="", formatters=formats))
    for column in signatures:
        for signature in frame[column].dropna().unique():
            print(f"{column.removesuffix('_signature')}: {signature}")


def _scores(
    trained: Trained, name: str, text: Bitext, options: EvaluateOptions
) -> Iterator[dict[str, Any]]:
    from mnmt_repro.evaluation.metrics import scores
    from mnmt_repro.runs.data import TestSet
    from mnmt_repro.runs.execute import score

    test = TestSet.of(name, text, trained.vocabulary, trained.tags, trained.corpus)
    tell_unknown(trained.folder, test.text, f"{text.pair}, {name}")
    outputs = None
    if options.decode:
        outputs = options.translations(trained, text.source, text.pair)
    for row in score(trained.model, test, f"{trained.folder}, {text.pair}"):
        if outputs is not None:
            chosen = np.flatnonzero(test.selections[row["test_set"], row["domain"]])
            row |= scores(
                [outputs[i] for i in chosen],
                [text.target[i] for i in chosen],
                text.pair.partition("-")[2],
                vocabulary=None if trained.conlang is not None else trained.vocabulary,
            )
        yield {"pair": text.pair, **row}
