"""Write and read the files of the store, each once and whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.repository import ROOT
from mnmt_repro.results import analyses, decodings, sentences
from mnmt_repro.results.files import read_json, write_once
from mnmt_repro.results.schema import SCHEMA, check
from mnmt_repro.results.sentences import SentenceLosses


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
    if (ROOT / "pyproject.toml").is_file() or (ROOT / "data" / "results").is_dir():
        return ROOT / "data" / "results"
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
    return write_once(
        path,
        content,
        refusal=f"run {run['run_id']} is stored already with another content; results are never "
        "replaced (a new run needs a new run_id)",
    )


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
    """Store the scores of a run's translations; see `decodings.write`."""
    return decodings.write(results_root(root), content)


def load_decodings(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """All stored scores of translations; see `decodings.read`."""
    return decodings.load(results_root(root))


def write_analyses(
    content: Mapping[str, Any], *, corpus: str, root: str | os.PathLike[str] | None = None
) -> Path:
    """Store the analyses of a run; see `analyses.write`."""
    return analyses.write(results_root(root), corpus, content)


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
        value``; `commit` is that of the analysis. `analyses` says what each analysis is.

    Raises
    ------
    InputError
        When a file breaks the schema.
    """
    return analyses.load(results_root(root), frame)


def write_sentence_losses(
    losses: SentenceLosses, *, corpus: str, root: str | os.PathLike[str] | None = None
) -> Path:
    """Store what a run loses on single sentences; see `sentences.write`."""
    return sentences.write(results_root(root), corpus, losses)


def load_sentence_losses(
    run_ids: Iterable[str], *, root: str | os.PathLike[str] | None = None
) -> dict[str, SentenceLosses]:
    """What runs lose on single sentences, by run id; those that lack such a file are left out."""
    return sentences.load(results_root(root), run_ids)
