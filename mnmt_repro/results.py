"""The store of results: one JSON file a run, written once and whole, read as data frames.

A run lies in ``<root>/<corpus>/<run_id>.json`` as ``{"schema": 1, "run", "rows", "curve"}``: what
the run was, its scores for each pair, test set and domain, and its learning curve. Scores of
translations, made later from the run's checkpoint, lie apart in ``<root>/<corpus>/decoded`` (see
`mnmt_repro.result_decodings`), and so do analyses of its weights and losses of single sentences
(`result_analyses`, `result_sentences`). A file is never replaced; many processes may write at once.
The root is ``data/results`` of a checkout, or the folder named by ``MNMT_REPRO_RESULTS``, or the
argument `root`.

>>> from mnmt_repro import results
>>> frame = results.load(tier="mini", test_set="indomain")      # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro import result_analyses, result_decodings, result_sentences
from mnmt_repro.atomic import write_new
from mnmt_repro.errors import InputError
from mnmt_repro.result_schema import (
    CURVE_FIELDS,
    DECODED_FIELDS,
    DECODING_COLUMNS,
    ROW_FIELDS,
    RUN_FIELDS,
    SCHEMA,
    check,
    read_json,
)
from mnmt_repro.result_sentences import SentenceLosses

_CHECKOUT = Path(__file__).resolve().parents[1]


def results_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the store: `root`, else ``MNMT_REPRO_RESULTS``, else the checkout's.

    Raises
    ------
    InputError
        When neither is given and the package does not run from a checkout.
    """
    if root is not None:
        return Path(root)
    if named := os.environ.get("MNMT_REPRO_RESULTS"):
        return Path(named)
    if (_CHECKOUT / "pyproject.toml").is_file() or (_CHECKOUT / "data" / "results").is_dir():
        return _CHECKOUT / "data" / "results"
    raise InputError(
        "no results here: the installed package carries none; run from a checkout, or set "
        "MNMT_REPRO_RESULTS to its data/results folder"
    )


def write_run(
    run: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    *,
    root: str | os.PathLike[str] | None = None,
) -> Path:
    """Store one run; the file appears whole or not at all, and an existing one is never replaced.

    Writing the same content again does nothing. `run`, `rows` and `curve` are the three parts of
    the file, checked as they will be on reading.

    Returns
    -------
    Path
        ``<root>/<corpus>/<run_id>.json``

    Raises
    ------
    InputError
        When a field is missing, unknown or of the wrong kind, or the run is stored already with
        another content.
    """
    content = {
        "schema": SCHEMA,
        "run": dict(run),
        "rows": [dict(row) for row in rows],
        "curve": [dict(point) for point in curve],
    }
    check(content, f"run {run.get('run_id')!r}")
    path = results_root(root) / run["corpus"] / f"{run['run_id']}.json"
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if not write_new(path, text.encode()) and path.read_text(encoding="utf-8") != text:
        raise InputError(
            f"{path}: run {run['run_id']} is stored already with another content; "
            "results are never replaced (a new run needs a new run_id)"
        )
    return path


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check one file of the store.

    Raises
    ------
    InputError
        Naming the file and the field, when the file is torn, of another schema version, or a field
        is missing, unknown or of the wrong kind.
    """
    path = Path(path)
    content = read_json(path)
    check(content, str(path))
    for field, found in (("run_id", path.stem), ("corpus", path.parent.name)):
        if content["run"][field] != found:
            raise InputError(f"{path}: run.{field} is {content['run'][field]!r}, not {found!r}")
    return content


def load_runs(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """All stored runs in order of path, each as its file holds it (`config` included)."""
    folder = results_root(root)
    # A leading dot marks a file that is still being written.
    paths = sorted(path for path in folder.glob("*/*.json") if not path.name.startswith("."))
    return [read_run(path) for path in paths]


def write_decoding(
    content: Mapping[str, Any], *, root: str | os.PathLike[str] | None = None
) -> Path:
    """Store the scores of a run's translations; see `result_decodings.write`."""
    return result_decodings.write(results_root(root), content)


def load_decodings(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """All stored scores of translations; see `result_decodings.read`."""
    return result_decodings.load(results_root(root))


def write_analyses(
    content: Mapping[str, Any], *, corpus: str, root: str | os.PathLike[str] | None = None
) -> Path:
    """Store the analyses of a run; see `result_analyses.write`."""
    return result_analyses.write(results_root(root), corpus, content)


def load_analyses(
    frame: pd.DataFrame, *, root: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """All analyses of the runs in `frame`, a row for each value and cohort of its run.

    Parameters
    ----------
    frame
        From `load`; says what each run is.

    Returns
    -------
    DataFrame
        ``run_id, tier, cohort, variant, updates_share, seed, commit, analysis, layer, block, pair,
        value``; `commit` is that of the analysis. `result_analyses` says what each analysis is.

    Raises
    ------
    InputError
        When a file breaks the schema.
    """
    return result_analyses.load(results_root(root), frame)


def write_sentence_losses(
    losses: SentenceLosses, *, corpus: str, root: str | os.PathLike[str] | None = None
) -> Path:
    """Store what a run loses on single sentences; see `result_sentences.write`."""
    return result_sentences.write(results_root(root), corpus, losses)


def load_sentence_losses(
    run_ids: Iterable[str], *, root: str | os.PathLike[str] | None = None
) -> dict[str, SentenceLosses]:
    """What runs lose on single sentences, by run id; those that lack such a file are left out."""
    return result_sentences.load(results_root(root), run_ids)


def load(
    *,
    root: str | os.PathLike[str] | None = None,
    membership: Mapping[str, Collection[str]] | None = None,
    **filters: Any,
) -> pd.DataFrame:
    """All scores as one frame: a row for each run, pair, test set, domain and cohort.

    A run that several cohorts share is repeated once for each; one that no declared cohort holds
    has the cohort ``""``.

    Parameters
    ----------
    membership : mapping of config_hash to cohorts, optional
        By default `mnmt_repro.experiments.catalogue.membership`.
    **filters
        Column and wanted value, or a list, tuple or set of them: ``cohort="webtech-en-dezh"``,
        ``p=[0.5, 1]``.

    Returns
    -------
    DataFrame
        The columns of ``run`` (without `config`; `mixture` as text), of ``rows``, the metrics and
        their signatures (missing where not decoded), `decoded_sentences` and `decoding` (how, in
        words), `cohort`, `variant` and `updates_share` (what a cohort of named runs calls the run,
        and its updates as a fraction of the baselines'; empty and NaN in a grid) and `direction`
        (``"en-xx"`` for one source and many targets, ``"xx-en"`` for the reverse; each pair's own
        in a cohort of both).

    Raises
    ------
    InputError
        When a file breaks the schema, or a filter names no column.
    """
    runs = load_runs(root)
    result_decodings.join(runs, load_decodings(root))
    columns = {**ROW_FIELDS, **DECODED_FIELDS, **DECODING_COLUMNS}
    return _frame("rows", columns, runs, membership, filters)


def load_curves(
    *,
    root: str | os.PathLike[str] | None = None,
    membership: Mapping[str, Collection[str]] | None = None,
    **filters: Any,
) -> pd.DataFrame:
    """All learning curves as one frame: a row for each run, pair, validation step and cohort.

    Columns, filters and errors are those of `load`. The curve's `target_tokens` and `learning_rate`
    (at that step) keep their names; those of the whole run are `run_target_tokens` and
    `run_learning_rate`. `p` is the pair's weight.
    """
    return _frame("curve", {**CURVE_FIELDS, "p": float}, load_runs(root), membership, filters)


def provenance(frame: pd.DataFrame, *, max_runs: int = 4) -> str:
    """Where the rows of a figure come from, as one line for its caption.

    Run ids, config hash, seeds, tier, commit, data hash and total wall time. Of more than
    `max_runs` runs the first and the last are named; several hashes are counted, and a digest over
    all of them in order identifies the set.
    """
    if frame.empty:
        return "no runs"
    runs = frame.drop_duplicates("run_id").sort_values("run_id")
    ids = list(runs["run_id"])
    shown = ", ".join(ids) if len(ids) <= max_runs else f"{ids[0]} … {ids[-1]}"
    seeds = ", ".join(str(seed) for seed in sorted(runs["seed"].unique()))
    return " · ".join(
        (
            f"{len(ids)} run{'s' if len(ids) > 1 else ''}: {shown}",
            f"config {_digest(runs['config_hash'])}",
            f"seed{'s' if runs['seed'].nunique() > 1 else ''} {seeds}",
            f"tier {', '.join(sorted(runs['tier'].unique()))}",
            f"commit {', '.join(sorted({commit[:10] for commit in runs['commit']}))}",
            f"data {_digest(runs['data_hash'])}",
            f"wall time {_duration(float(runs['wall_seconds'].sum()))}",
        )
    )


def to_csv(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write `frame` as CSV (UTF-8, no index, numbers in full), the download beside a figure."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, lineterminator="\n")
    return path


def _frame(
    part: str,
    columns: Mapping[str, type],
    runs: Iterable[Mapping[str, Any]],
    membership: Mapping[str, Collection[str]] | None,
    filters: Mapping[str, Any],
) -> pd.DataFrame:
    from mnmt_repro.experiments import catalogue
    from mnmt_repro.experiments.variants import Place

    runs, nowhere = list(runs), Place()
    tiers = sorted({content["run"]["tier"] for content in runs})
    if membership is None:
        membership = {k: v for tier in tiers for k, v in catalogue.membership(tier).items()}
    places = {k: v for tier in tiers for k, v in catalogue.places(tier).items()}
    run_columns = {
        (f"run_{name}" if part == "curve" and name in CURVE_FIELDS else name): name
        for name in RUN_FIELDS
        if name != "config"
    }
    known = {*run_columns, *columns, "cohort", "variant", "updates_share", "direction"}
    if unknown := sorted(set(filters) - known):
        raise InputError(
            f"no such column to filter by: {', '.join(unknown)}; "
            f"there are {', '.join(sorted(known))}"
        )
    records = []
    for content in runs:
        run = content["run"]
        shared = {column: run[name] for column, name in run_columns.items()}
        mixture = run["mixture"]
        shared["mixture"] = ",".join(f"{pair}:{p:g}" for pair, p in sorted(mixture.items()))
        for cohort in sorted(membership.get(run["config_hash"], ())) or [""]:
            place = places.get((run["config_hash"], cohort), nowhere)
            for row in content[part]:
                record = {**shared, **row, "cohort": cohort, **vars(place)}
                record.setdefault("p", mixture.get(row["pair"], 0.0))
                records.append(record)
    named = ["cohort", "variant", "updates_share"]
    frame = pd.DataFrame(records, columns=[*run_columns, *columns, *named])
    frame["direction"] = _directions(frame)
    for column, wanted in filters.items():
        several = isinstance(wanted, Collection) and not isinstance(wanted, str)
        values = list(wanted) if several else [wanted]
        frame = frame[frame[column].isin(values)]
    return frame.reset_index(drop=True)


def _directions(frame: pd.DataFrame) -> pd.Series:
    """Direction of each row, read off all pairs of its cohort (of its run, outside any cohort).

    Where all pairs share one language and it is now source, now target, it is each pair's own.
    """
    key = frame["cohort"].where(frame["cohort"] != "", frame["run_id"])

    def pairs_of(mixtures: pd.Series) -> set[str]:
        return {item.partition(":")[0] for text in mixtures.unique() for item in text.split(",")}

    found: dict[tuple[str, str], str] = {}
    for name, group in frame.groupby(key):
        pairs = pairs_of(group["mixture"])
        sources = {pair.partition("-")[0] for pair in pairs}
        targets = {pair.partition("-")[2] for pair in pairs}
        hubs = set.intersection(*(set(pair.split("-")) for pair in pairs))
        hubs = hubs & {"eng"} or hubs
        if len(sources) == len(targets) == 1:
            direction = "xx-en" if targets == {"eng"} else "en-xx"
        else:
            direction = "en-xx" if len(sources) <= len(targets) else "xx-en"
        both = len(hubs) == 1 and hubs <= sources and hubs <= targets
        for pair in pairs | set(group["pair"]):
            own = "en-xx" if pair.partition("-")[0] in hubs else "xx-en"
            found[str(name), pair] = own if both else direction
    directions = [found[each] for each in zip(key, frame["pair"], strict=True)]
    return pd.Series(directions, index=frame.index, dtype=object)


def _digest(values: pd.Series) -> str:
    distinct = sorted(set(values))
    if len(distinct) == 1:
        return str(distinct[0])[:12]
    digest = hashlib.sha256("\n".join(distinct).encode()).hexdigest()[:12]
    return f"{digest} (over {len(distinct)})"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
