"""Analyses of stored runs: what is measured on a model beside its scores.

They are made after training, from checkpoints (`runs.analysing`), and `mnmt_repro.results`
is the way in. One file a run, ``<root>/<corpus>/analyses/<run_id>.json``, never replaced::

    {"schema": 1, "run_id": "0123abcd", "commit": "...", "rows": [
        {"analysis": "moved", "layer": "decoder.1", "block": "old", "pair": "", "value": 1.9}]}

`commit` is that of the code which analysed. Of an upgraded run:

``overlap``
    How many pieces of the new vocabulary the old one has too: `block` is ``text, kept``, or another
    kind of piece (``special``, ``tag``, ``byte``, ``all``) and ``added`` or ``dropped``. None where
    the vocabulary stays. `layer` and `pair` are empty.
``substituted``
    For each `pair` of the old model: by how many nats per target token its loss rises when its
    embeddings of the pieces that both vocabularies hold are replaced by the run's (Figures 3 and
    6, left). `layer` and `block` are empty.
``moved``
    For each feed-forward `layer` of a widened model (``encoder.0``, ``decoder.2``; from the bottom)
    the Frobenius norm over its projections together, with M the old matrix as the upgrade placed it
    (after any normalisation), M1 the old block and M2 the new one after training (Figure 5):
    `block` is ``old`` for M1 - M, ``new`` for M2 - M, ``between`` for M1 - M2. `pair` is empty.
``fisher``
    Of the old entries, the share whose Fisher information per target token lies in a bin, before
    the run trained them (Figure 6, right): `block` is the bin's lower edge, ``0`` or ``1e-08``,
    and it reaches to the next one. Where the run slows down only some of them; `layer` and `pair`
    are empty.
``threshold``
    The information above which it slows them down; `block` is the share of them that is above.

Of a run that others upgrade:

``widened``
    For some `pair`: by how many nats per target token its loss rises when the model is made twice
    as wide and not trained. `block` is how: ``frobenius, noise 0.01``. `layer` is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro.results.files import Kind, Root, results_root, write_once
from mnmt_repro.results.schema import ANALYSES, ANALYSIS_KEYS

_NAME = "analyses/{run_id}.json"
_ANALYSES = Kind(what="analyses of run", folder="analyses/", name=_NAME.format_map, file=ANALYSES)
_RUN = ["run_id", "tier", "cohort", "variant", "updates_share", "seed"]
ANALYSIS_COLUMNS = [*_RUN, "commit", *ANALYSIS_KEYS, "value"]


def path_of(root: Path, corpus: str, run_id: str) -> Path:
    """Where the analyses of a run lie."""
    return root / corpus / _NAME.format(run_id=run_id)


def write_analyses(content: Mapping[str, Any], *, corpus: str, root: Root = None) -> Path:
    """Store the analyses of a run; the file appears whole or not at all.

    Writing the same content again does nothing.

    Parameters
    ----------
    content
        ``{"run_id", "commit", "rows"}``, as `runs.analysing.analyse` returns it.

    Raises
    ------
    InputError
        When it breaks the schema, or the run has been analysed already with another outcome.
    """
    content = _ANALYSES.whole(content, content.get("run_id"))
    return write_once(path_of(results_root(root), corpus, content["run_id"]), content)


def load_analyses(frame: pd.DataFrame, *, root: Root = None) -> pd.DataFrame:
    """All analyses of the runs in `frame`, a row for each value and cohort of its run.

    Parameters
    ----------
    frame
        From `results.load`; says what each run is.

    Returns
    -------
    DataFrame
        The columns `ANALYSIS_COLUMNS`; `commit` is that of the analysis.

    Raises
    ------
    InputError
        When a file breaks the schema.
    """
    records = [
        {"run_id": content["run_id"], "commit": content["commit"], **row}
        for content in _ANALYSES.each(root)
        for row in content["rows"]
    ]
    if not records or not set(_RUN) <= set(frame.columns):
        return pd.DataFrame(columns=ANALYSIS_COLUMNS)
    runs = frame[_RUN].drop_duplicates()
    return pd.DataFrame(records).merge(runs, on="run_id")[ANALYSIS_COLUMNS]
