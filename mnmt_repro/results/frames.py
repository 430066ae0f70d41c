"""Stored runs as data frames, with the cohorts that they belong to."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from mnmt_repro.declared import find_cohorts_module
from mnmt_repro.errors import InputError
from mnmt_repro.results import decodings
from mnmt_repro.results.files import Root, results_root
from mnmt_repro.results.schema import (
    CURVE_FIELDS,
    ROW_FIELDS,
    RUN_FIELDS,
)
from mnmt_repro.results.store import each_run

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
    rows, scores = _frame("rows", ROW_FIELDS, _stored(root)), decodings.scores(root)
    metrics = [column for column in scores.columns if column not in rows.columns]
    whole = rows.merge(scores, how="left", on=decodings.SCORED)
    return _where(whole[[*rows.columns.drop(_NAMED), *metrics, *_NAMED]], filters)


def load_curves(*, root: Root = None, **filters: Any) -> pd.DataFrame:
    """All learning curves as one frame: a row for each run, pair, validation step and cohort.

    Columns, filters and errors are those of `load`. The curve's `target_tokens` and `learning_rate`
    (at that step) keep their names; those of the whole run are `run_target_tokens` and
    `run_learning_rate`. `p` is the pair's weight.
    """
    return _where(_frame("curve", [*CURVE_FIELDS, "p"], _stored(root)), filters)


def _stored(root: Root) -> Iterator[dict[str, Any]]:
    """All runs of a store; a folder that is not there is no empty store."""
    folder = results_root(root)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of results; set MNMT_REPRO_RESULTS to one")
    return each_run(root)


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
