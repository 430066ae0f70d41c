"""Stored runs as data frames, with the cohorts that they belong to."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.declared import find_cohorts_module
from mnmt_repro.disk_cache import Form, code_digest, files_digest, kept_values, text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.results import decodings
from mnmt_repro.results.files import Root, results_root
from mnmt_repro.results.schema import (
    CURVE_FIELDS,
    ROW_FIELDS,
    RUN_FIELDS,
)
from mnmt_repro.results.store import each_run

_SMALL = 100
"""Files of a store that is read as fast as a frame of it would be found in the cache."""
_NAMED = ["cohort", "variant", "updates_share"]


def load(*, root: Root = None, **filters: Any) -> pd.DataFrame:
    """All scores as one frame: a row for each run, pair, test set, domain and cohort.

    A run that several cohorts share is repeated once for each; one that no declared cohort holds
    has the cohort ``""``.

    Parameters
    ----------
    **filters
        Column and wanted value, or a list, tuple or set of them: ``cohort="webtech-en-dezh"``,
        ``p=[0.5, 1]``.

    Returns
    -------
    DataFrame
        The columns of ``run`` (without `config`; `mixture` as text), `way` (how a mixture weight is
        given to the model: ``"sampled"``, ``"text-matched"`` or ``"equal-first"``, see
        `cohorts.grids.drawn`), the columns of ``rows``, the metrics and
        their signatures (missing where not decoded), `decoded_sentences` and `decoding` (how, in
        words), `cohort`, `variant` and `updates_share` (what a cohort of named runs calls the run,
        and its updates as a fraction of the baselines'; empty and NaN in a grid).

    Raises
    ------
    InputError
        When there is no such folder, a file breaks the schema, or a filter names no column.
    """

    def read() -> pd.DataFrame:
        rows, scores = _frame("rows", ROW_FIELDS, each_run(root)), decodings.scores(root)
        metrics = [column for column in scores.columns if column not in rows.columns]
        lost = pd.MultiIndex.from_frame(scores[decodings.SCORED]).difference(
            pd.MultiIndex.from_frame(rows[decodings.SCORED])
        )
        if len(lost := lost[lost.isin(set(rows["run_id"]), level="run_id")]):
            raise InputError(f"translations are scored that no run has a row of: {lost[0]}")
        whole = rows.merge(scores, how="left", on=decodings.SCORED)
        return whole[[*rows.columns.drop(_NAMED), *metrics, *_NAMED]]

    return _where(_kept("rows", root, read), filters)


def load_curves(*, root: Root = None, **filters: Any) -> pd.DataFrame:
    """All learning curves as one frame: a row for each run, pair, validation step and cohort.

    Columns, filters and errors are those of `load`. The curve's `target_tokens` and `learning_rate`
    (at that step) keep their names; those of the whole run are `run_target_tokens` and
    `run_learning_rate`. `p` is the pair's weight.
    """

    def read() -> pd.DataFrame:
        return _frame("curve", [*CURVE_FIELDS, "p"], each_run(root))

    return _where(_kept("curve", root, read), filters)


def _kept(part: str, root: Root, read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Take a frame from the cache while no file of the store, and no code, has changed."""
    folder = results_root(root)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of results; set MNMT_REPRO_RESULTS to one")
    files = [path for pattern in ("*/*.json", "*/decoded/*.json") for path in folder.glob(pattern)]
    if len(files) < _SMALL or find_cohorts_module("catalogue") is None:
        return read()
    name = f"{part}-{text_digest(str(folder.resolve()))[:12]}"
    with kept_values(name, Form(_write, _read), most=1) as recall:
        return recall(text_digest(files_digest(folder, files), code_digest()), read)


def _write(frame: pd.DataFrame) -> bytes:
    """A frame as arrays: numbers as they are, texts as the numbers of the different ones."""
    arrays: dict[str, Any] = {}
    for column in frame:
        values = frame[column].to_numpy()
        if values.dtype == object:
            values, texts = pd.factorize(values)
            arrays[f"text {column}"] = np.array(json.dumps(list(texts)))
        arrays[str(column)] = values
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _read(content: bytes) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for name in arrays.files:
            if name.startswith("text "):
                different = [*json.loads(arrays[name].item()), math.nan]  # -1 is missing
                columns[name.removeprefix("text ")] = pd.Series(different).array
            else:
                values = arrays[name]
                columns[name] = columns[name].take(values) if name in columns else values
    return pd.DataFrame(columns)


def _where(frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    if unknown := sorted(set(filters) - set(frame.columns)):
        there = ", ".join(sorted(frame.columns))
        raise InputError(f"no such column to filter by: {', '.join(unknown)}; there are {there}")
    for column, wanted in filters.items():
        several = isinstance(wanted, Collection) and not isinstance(wanted, str)
        values = list(wanted) if several else [wanted]
        frame = frame[frame[column].isin(values)]
    return frame.reset_index(drop=True)


def _frame(part: str, columns: Iterable[str], runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    catalogue = find_cohorts_module("catalogue")
    run_columns = {
        (f"run_{name}" if part == "curve" and name in CURVE_FIELDS else name): name
        for name in RUN_FIELDS
        if name != "config"
    }
    shared: list[list[Any]] = []  # of each run and cohort, what all of its rows have
    records, at = [], []  # each row's own fields, and its place in `shared`
    for content in runs:
        run = content["run"]
        mixture = run["mixture"]
        weights = mixture | {row["pair"]: row["p"] for row in content["rows"]}
        rows = [{"p": weights.get(row["pair"], 0.0), **row} for row in content[part]]
        text = ",".join(f"{pair}:{p:g}" for pair, p in sorted(mixture.items()))
        about = [text if n == "mixture" else run[n] for n in run_columns.values()]
        membership = catalogue.membership(run["tier"]) if catalogue else {}
        places = catalogue.places(run["tier"]) if catalogue else {}
        for cohort in sorted(membership.get(run["config_hash"], ())) or [""]:
            place = places.get((run["config_hash"], cohort), ("", math.nan))
            at += [len(shared)] * len(rows)
            shared.append([*about, _way(run["config"]), cohort, *place])
            records += rows
    whole = pd.DataFrame(shared, columns=[*run_columns, "way", *_NAMED])
    own = pd.DataFrame(records, columns=list(columns))
    frame = pd.concat([whole.take(at).reset_index(drop=True), own], axis=1)
    return frame[[*run_columns, "way", *columns, *_NAMED]]


def _way(config: Mapping[str, Any]) -> str:
    """How a run's mixture weights are given to its model, by the settings of its training."""
    training = config.get("training")
    if isinstance(training, Mapping) and training.get("loss_weights"):
        return "text-matched"
    if isinstance(training, Mapping) and training.get("first_weights"):
        return "equal-first"
    return "sampled"
