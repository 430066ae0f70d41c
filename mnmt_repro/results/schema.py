"""What a file of the results store may hold: its fields, their kinds, and the check of both.

`mnmt_repro.results` writes and reads the files; this module decides whether they are right.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from mnmt_repro.errors import InputError
from mnmt_repro.reading import LARGEST, shown
from mnmt_repro.runs.spec import digest

SCHEMA = 1
"""Version of the file format; a file of another version is refused."""

TIERS = ("own", "smoke", "mini", "steady", "gpu", "paper")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

RUN_FIELDS: dict[str, type] = {
    "run_id": str,
    "config_hash": str,
    "data_hash": str,
    "commit": str,
    "code_version": str,
    "tier": str,
    "corpus": str,
    "mixture": dict,
    "size": str,
    "n_non_embedding": int,
    "n_total": int,
    "steps": int,
    "target_tokens": int,
    "batch_tokens": int,
    "seed": int,
    "learning_rate": float,
    "wall_seconds": float,
    "hardware": str,
    "flops": float,
    "torch": str,
    "vocabulary_hash": str,
    "started": str,
    "config": dict,
}
ROW_FIELDS: dict[str, type] = {
    "pair": str,
    "p": float,
    "token_share": float,
    "pair_target_tokens": int,
    "passes": float,
    "test_set": str,
    "domain": str,
    "cross_entropy": float,
    "test_tokens": int,
    "sentences": int,
}
METRICS = ("bleu", "chrf", "chrfpp", "spbleu", "piece_bleu", "bleurt")
"""Scores of decoded output; a row holds those that were computed, each with its signature."""
CEILINGS = {metric: 100.0 for metric in METRICS if metric != "bleurt"}
"""The most that a score can be, where there is an end: no law of it may have a higher limit."""
DECODED_FIELDS: dict[str, type] = {
    **dict.fromkeys(METRICS, float),
    **{f"{metric}_signature": str for metric in METRICS},
}
SCORERS = {"sacrebleu": METRICS[:-1], "bleurt": METRICS[-1:]}
"""What scored the translations of a run, and the metrics it gives; each has a file of its own."""
DECODING_FIELDS: dict[str, type] = {
    "run_id": str,
    "corpus": str,
    "scorer": str,
    "settings": dict,
    "signatures": dict,  # target language -> metric -> signature
    "checkpoint": str,  # of the file, 16 digits of its SHA-256
    "steps": int,  # at which it stood
    "commit": str,
    "evaluation_version": int,
    "torch": str,
    "hardware": str,
    "seconds": float,
    "started": str,
}
SETTINGS_FIELDS: dict[str, type] = {
    "sentences": int,  # of a test set, at most
    "beam": int,
    "length_penalty": float,
    "max_ratio": float,
    "max_extra": int,
}
DECODED_ROW_FIELDS: dict[str, type] = {
    "pair": str,
    "test_set": str,
    "domain": str,
    "sentences": int,
}
DECODING_COLUMNS: dict[str, type] = {"decoded_sentences": int, "decoding": str}
"""What `results.load` says of how a row was decoded, beside the metrics."""
CURVE_FIELDS: dict[str, type] = {
    "step": int,
    "target_tokens": int,
    "pair": str,
    "cross_entropy": float,
    "train_loss": float,
    "seconds": float,
    "learning_rate": float,
}
_FRACTIONS = ("p", "token_share")
_POSITIVE = ("n_non_embedding", "n_total", "learning_rate")
_IDENTITY = ("pair", "test_set", "domain")


def check(content: Any, where: str) -> None:
    """Check the content of one file; `where` names it in the message.

    Raises
    ------
    InputError
        Naming the field that is missing, unknown, of the wrong kind, out of range or repeated.
    """
    if not isinstance(content, dict):
        raise InputError(f"{where}: not an object with schema, run, rows and curve")
    if content.get("schema") != SCHEMA:
        raise InputError(
            f"{where}: schema is {content.get('schema')!r}, this version reads {SCHEMA}"
        )
    if set(content) != {"schema", "run", "rows", "curve"}:
        parts = ", ".join(sorted(map(str, content)))
        raise InputError(f"{where}: the parts must be schema, run, rows and curve, not {parts}")
    run = content["run"]
    _check_fields(run, RUN_FIELDS, {}, f"{where}: run")
    for field in ("run_id", "corpus"):
        if not _NAME.fullmatch(run[field]):
            raise InputError(f"{where}: run.{field} is no file name: {run[field]!r}")
    if run["tier"] not in TIERS:
        raise InputError(
            f"{where}: run.tier must be one of {', '.join(TIERS)}, got {run['tier']!r}"
        )
    for pair, p in run["mixture"].items():
        if not _is(p, float) or not 0 <= p <= 1 or pair.count("-") != 1:
            raise InputError(
                f"{where}: run.mixture needs pair: weight in [0, 1], got {pair}: {p!r}"
            )
    for part, required, optional in (
        ("rows", ROW_FIELDS, DECODED_FIELDS),
        ("curve", CURVE_FIELDS, {}),
    ):
        if not isinstance(content[part], list):
            raise InputError(f"{where}: {part} must be a list")
        for i, row in enumerate(content[part]):
            _check_fields(row, required, optional, f"{where}: {part}[{i}]")
    if (found := digest(run["config"])) != run["config_hash"]:
        raise InputError(
            f"{where}: run.config_hash is {run['config_hash']!r}, but run.config has {found!r}; "
            "restore the file"
        )
    if not content["rows"]:
        raise InputError(f"{where}: rows is empty; a run has at least one score")
    _check_distinct(content["rows"], where)


def check_decoding(content: Any, where: str) -> None:
    """Check the content of one file of scores of translations, as `check` does a run's.

    Raises
    ------
    InputError
        Naming the field that is missing, unknown, of the wrong kind, out of range or repeated, or
        the metric that has no signature.
    """
    if not isinstance(content, dict) or set(content) != {"schema", "decoding", "rows"}:
        raise InputError(f"{where}: not an object with schema, decoding and rows")
    if content["schema"] != SCHEMA:
        raise InputError(f"{where}: schema is {content['schema']!r}, this version reads {SCHEMA}")
    decoding = content["decoding"]
    _check_fields(decoding, DECODING_FIELDS, {}, f"{where}: decoding")
    _check_fields(decoding["settings"], SETTINGS_FIELDS, {}, f"{where}: decoding.settings")
    for field in ("run_id", "corpus"):
        if not _NAME.fullmatch(decoding[field]):
            raise InputError(f"{where}: decoding.{field} is no file name: {decoding[field]!r}")
    if decoding["scorer"] not in SCORERS:
        raise InputError(
            f"{where}: decoding.scorer must be one of {', '.join(SCORERS)}, "
            f"got {decoding['scorer']!r}"
        )
    metrics = SCORERS[decoding["scorer"]]
    if not isinstance(content["rows"], list) or not content["rows"]:
        raise InputError(f"{where}: rows must be a list of one or more")
    for i, row in enumerate(content["rows"]):
        _check_fields(row, DECODED_ROW_FIELDS, dict.fromkeys(metrics, float), f"{where}: rows[{i}]")
        scored = [metric for metric in metrics if metric in row]
        if not scored:
            raise InputError(f"{where}: rows[{i}] has no score")
        signed = decoding["signatures"].get(row["pair"].partition("-")[2], {})
        for metric in scored:
            if not isinstance(signed.get(metric), str):
                raise InputError(f"{where}: rows[{i}].{metric} has no signature")
    _check_distinct(content["rows"], where)


def _check_distinct(rows: list[dict[str, Any]], where: str) -> None:
    seen = set()
    for i, row in enumerate(rows):
        identity = tuple(row[field] for field in _IDENTITY)
        if identity in seen:
            raise InputError(f"{where}: rows[{i}] repeats {', '.join(identity)}")
        seen.add(identity)


def _check_fields(
    value: Any, required: Mapping[str, type], optional: Mapping[str, type], where: str
) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object")
    if missing := [name for name in required if name not in value]:
        raise InputError(f"{where}.{missing[0]} is missing")
    for name, found in value.items():
        kind = required.get(name) or optional.get(name)
        if kind is None:
            raise InputError(f"{where}.{name} is not a field of schema {SCHEMA}")
        if not _is(found, kind):
            article = {
                str: "text",
                int: "a whole number",
                float: "a finite number",
                dict: "an object",
            }
            raise InputError(f"{where}.{name} must be {article[kind]}, got {shown(found)}")
        if name in _FRACTIONS and not 0 <= found <= 1:
            raise InputError(f"{where}.{name} must lie in [0, 1], got {found!r}")
        if name in _POSITIVE and required is RUN_FIELDS and found <= 0:
            raise InputError(f"{where}.{name} must be above 0, got {found!r}")
        if kind in (int, float) and name not in METRICS and found < 0:
            raise InputError(f"{where}.{name} must not be negative, got {found!r}")


def _is(value: Any, kind: type) -> bool:
    if kind in (int, float):
        numeric = isinstance(value, int if kind is int else (int, float))
        most = LARGEST if kind is int else sys.float_info.max
        return numeric and not isinstance(value, bool) and abs(value) <= most
    return isinstance(value, kind)
