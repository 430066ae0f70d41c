"""Analyses of stored runs: what is measured on a model beside its scores.

One file a run, ``data/results/<corpus>/analyses/<run_id>.json``::

    {"schema": 1, "run_id": "0123abcd", "commit": "...", "rows": [
        {"analysis": "moved", "layer": "decoder.1", "block": "old", "pair": "", "value": 1.9}]}

Analyses that claims read, each of an upgraded run:

``substituted``
    For each `pair` of the old model: by how many nats per target token its loss rises when its
    embeddings of the pieces that both vocabularies hold are replaced by the run's (Figures 3 and
    6, left). `layer` and `block` are empty.
``moved``
    For each feed-forward `layer` of a widened model (``encoder.0``, ``decoder.2``; from the bottom)
    the Frobenius norm over its projections together, with M the old matrix as the upgrade placed it
    (after any normalisation), M1 the old block and M2 the new one after training (Figure 5):
    `block` is ``old`` for M1 - M, ``new`` for M2 - M, ``between`` for M1 - M2. `pair` is empty.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro.errors import InputError

SCHEMA = 1
_TEXTS = ("analysis", "layer", "block", "pair")
_RUN = ["run_id", "tier", "cohort", "variant", "updates_share", "seed"]
COLUMNS = [*_RUN, "commit", *_TEXTS, "value"]


def load_analyses(root: str | os.PathLike[str], frame: pd.DataFrame) -> pd.DataFrame:
    """All analyses of the runs in `frame`, a row for each value and cohort of its run.

    Parameters
    ----------
    root : path
        The store of results.
    frame : DataFrame
        From `mnmt_repro.results.load`; says what each run is.

    Returns
    -------
    DataFrame
        ``run_id, tier, cohort, variant, updates_share, seed, commit, analysis, layer, block, pair,
        value``; `commit` is that of the analysis.

    Raises
    ------
    InputError
        When a file breaks the schema.
    """
    paths = sorted(Path(root).glob("*/analyses/*.json"))
    records = [
        {"run_id": path.stem, "commit": content["commit"], **row}
        for path in paths
        if not path.name.startswith(".")  # still being written
        for content in [_read(path)]
        for row in content["rows"]
    ]
    if not records or not set(_RUN) <= set(frame.columns):
        return pd.DataFrame(columns=COLUMNS)
    runs = frame[_RUN].drop_duplicates()
    return pd.DataFrame(records).merge(runs, on="run_id")[COLUMNS]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not whole JSON ({error}); restore the file") from error
    fields = {"schema", "run_id", "commit", "rows"}
    if not isinstance(content, dict) or set(content) != fields or content["schema"] != SCHEMA:
        raise InputError(f"{path}: needs schema: {SCHEMA}, run_id, commit and rows")
    if content["run_id"] != path.stem:
        raise InputError(f"{path}: run_id is {content['run_id']!r}, not {path.stem!r}")
    for i, row in enumerate(content["rows"]):
        at = f"{path}: rows[{i}]"
        if not isinstance(row, dict) or set(row) != {*_TEXTS, "value"}:
            raise InputError(f"{at} needs {', '.join(_TEXTS)} and value")
        if not all(isinstance(row[name], str) for name in _TEXTS):
            raise InputError(f"{at}: {', '.join(_TEXTS)} must be text")
        value = row["value"]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise InputError(f"{at}.value must be a finite number, got {value!r}")
    return content
