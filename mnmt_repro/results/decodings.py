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

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mnmt_repro.errors import InputError
from mnmt_repro.results.files import Kind, Root, results_root, write_once
from mnmt_repro.results.schema import DECODING, SCORERS, STORED_METRICS


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
        When a field is missing, unknown or of the wrong kind, the run's translations have been
        scored already with another outcome, or another scorer read translations that were made
        otherwise.
    """
    content = _DECODING.whole(content, content["decoding"].get("run_id"))
    about, path = content["decoding"], results_root(root) / _DECODING.name(content)
    for scorer in set(SCORERS) - {about["scorer"]}:
        other = path.with_name(file_name(about["run_id"], scorer))
        if not other.exists():
            continue
        if (made := _DECODING.read(other)["decoding"]["settings"]) != about["settings"]:
            raise InputError(
                f"{other}: made of translations with {in_words(made)}, not with "
                f"{in_words(about['settings'])}; decode with the same settings"
            )
    return write_once(path, content)


def _name_of(content: Mapping[str, Any]) -> str:
    about = content["decoding"]
    return f"{about['corpus']}/decoded/{file_name(about['run_id'], about['scorer'])}"


_DECODING = Kind(what="decoding of run", folder="decoded/", name=_name_of, file=DECODING)


def load_decodings(root: Root = None) -> list[dict[str, Any]]:
    """All files in order of path, each as it is stored."""
    return [*_DECODING.each(root)]


def joined(
    runs: Iterable[dict[str, Any]], decodings: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Runs whose rows have the scores of the translations that were made with them.

    Parameters
    ----------
    runs
        From `results.each_run`; their rows gain metrics, signatures, `decoded_sentences` and
        `decoding`, where there are any. Decodings of runs that are not among them are left out.

    Raises
    ------
    InputError
        When a decoded row is none of its run's, or holds a metric that the run's row has too.
    """
    scores: dict[str, list[Mapping[str, Any]]] = {}
    for content in decodings:
        scores.setdefault(content["decoding"]["run_id"], []).append(content)
    for run in runs:
        for content in scores.get(run["run"]["run_id"], ()):
            _join(run, content)
        yield run


def _join(run: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    about = content["decoding"]
    rows = {(r["pair"], r["test_set"], r["domain"]): r for r in run["rows"]}
    for scored in content["rows"]:
        key = (scored["pair"], scored["test_set"], scored["domain"])
        if key not in rows:
            raise InputError(
                f"run {about['run_id']}: its translations are scored on {', '.join(key)}, "
                "which the run has no row of"
            )
        signatures = about["signatures"][key[0].partition("-")[2]]
        for metric in (name for name in STORED_METRICS if name in scored):
            if metric in rows[key]:
                raise InputError(f"run {about['run_id']}: {metric} of {', '.join(key)} twice")
            rows[key][metric] = scored[metric]
            rows[key][f"{metric}_signature"] = signatures[metric]
        rows[key]["decoded_sentences"] = scored["sentences"]
        rows[key]["decoding"] = in_words(about["settings"])


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
