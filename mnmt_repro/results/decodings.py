"""Scores of translations in the store of results, apart from the runs that were translated with.

A run is decoded after its training, from its checkpoint, maybe on another machine and with later
code. So its scores lie in a separate file, ``<root>/<corpus>/decoded/<run_id>.json``:
``{"schema": 1, "decoding", "rows"}`` says how translations were searched for, on how many
sentences, by which code, and holds a row for each pair, test set and domain.
Scores of a learned metric, which needs its weights, lie beside it in ``<run_id>.bleurt.json``.
Neither file is ever replaced.

`mnmt_repro.results` is the way in; `runs.decoding` makes what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro.results.files import Kind, Root, results_root, write_once
from mnmt_repro.results.schema import DECODED_FIELDS, DECODING, DECODING_COLUMNS, STORED_METRICS

SCORED = ["run_id", "pair", "test_set", "domain"]
"""What tells scored rows apart."""


def file_name(run_id: str, scorer: str) -> str:
    """Name of the file with the scores of a run's translations.

    >>> file_name("run-a", "sacrebleu"), file_name("run-a", "bleurt")
    ('run-a.json', 'run-a.bleurt.json')
    """
    return f"{run_id}.json" if scorer == "sacrebleu" else f"{run_id}.{scorer}.json"


def write_decoding(content: Mapping[str, Any], *, root: Root = None) -> Path:
    """Store the scores of a run's translations; the file appears whole or not at all.

    Writing the same content again does nothing.

    Parameters
    ----------
    content
        ``{"decoding", "rows"}``, as `runs.decoding.decode` returns it.

    Raises
    ------
    InputError
        When a field is missing, unknown or of the wrong kind, or the run's translations have been
        scored already with another outcome.
    """
    content = _DECODING.whole(content, content["decoding"].get("run_id"))
    return write_once(results_root(root) / _DECODING.name(content), content)


def _name_of(content: Mapping[str, Any]) -> str:
    about = content["decoding"]
    return f"{about['corpus']}/decoded/{file_name(about['run_id'], about['scorer'])}"


_DECODING = Kind(what="decoding of run", folder="decoded/", name=_name_of, file=DECODING)


def load_decodings(root: Root = None) -> list[dict[str, Any]]:
    """All files in order of path, each as it is stored."""
    return [*_DECODING.each(root)]


def scores(root: Root = None) -> pd.DataFrame:
    """All scores of translations: a row for each run, pair, test set and domain, as `SCORED`."""
    records = [
        {
            "run_id": content["decoding"]["run_id"],
            **row,
            **{f"{metric}_signature": signature for metric, signature in signed.items()},
            "decoded_sentences": row["sentences"],
            "decoding": in_words(content["decoding"]["settings"]),
        }
        for content in load_decodings(root)
        for row in content["rows"]
        for signed in [content["decoding"]["signatures"][row["pair"].partition("-")[2]]]
    ]
    columns = [*SCORED, *DECODED_FIELDS, *DECODING_COLUMNS]
    frame = pd.DataFrame(records, columns=columns)
    numbers = dict.fromkeys((*STORED_METRICS, "decoded_sentences"), float)  # also where none is
    # Each scorer has a file, with other metrics of the same translations.
    return frame.astype(numbers).groupby(SCORED, as_index=False).first()


def in_words(settings: Mapping[str, Any]) -> str:
    """How translations were searched for, for captions and messages.

    >>> in_words({"sentences": 500, "beam": 4, "length_penalty": 1.0, "max_ratio": 2.0,
    ...           "max_extra": 10})
    'beam 4, length penalty 1, at most 2 × source + 10 pieces, up to 500 sentences a test set'
    """
    return (
        f"beam {settings['beam']}, length penalty {settings['length_penalty']:g}, at most "
        f"{settings['max_ratio']:g} × source + {settings['max_extra']} pieces, up to "
        f"{settings['sentences']} sentences a test set"
    )
