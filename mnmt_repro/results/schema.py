"""What a file of the results store may hold: its fields, their kinds, and the check of both.

`mnmt_repro.results` writes and reads the files; this module decides whether they are right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict

from mnmt_repro.errors import InputError
from mnmt_repro.runs.spec import digest
from mnmt_repro.typed_config import LARGEST, place, shown

SCHEMA = 1
"""Version of the file format; a file of another version is refused."""

TIERS = ("own", "smoke", "mini", "steady", "settled")

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[Number, Field(ge=0)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Pair = Annotated[str, StringConstraints(pattern="^[^-]*-[^-]*$")]

RUN_FIELDS: dict[str, Any] = {
    "run_id": FileName,
    "config_hash": str,
    "data_hash": str,
    "commit": str,
    "code_version": str,
    "tier": Literal[TIERS],
    "corpus": FileName,
    "mixture": dict[Pair, Fraction],
    "size": str,
    "n_non_embedding": Annotated[Count, Field(gt=0)],
    "n_total": Annotated[Count, Field(gt=0)],
    "steps": Count,
    "target_tokens": Count,
    "batch_tokens": Count,
    "seed": Count,
    "learning_rate": Annotated[Number, Field(gt=0)],
    "wall_seconds": Amount,
    "hardware": str,
    "flops": Amount,
    "torch": str,
    "vocabulary_hash": str,
    "started": str,
    "config": dict[str, Any],
}
ROW_FIELDS: dict[str, Any] = {
    "pair": str,
    "p": Fraction,
    "token_share": Fraction,
    "pair_target_tokens": Count,
    "passes": Amount,
    "test_set": str,
    "domain": str,
    "cross_entropy": Amount,
    "test_tokens": Count,
    "sentences": Count,
}
STORED_METRICS = ("bleu", "chrf", "chrfpp", "spbleu", "piece_bleu", "bleurt")
"""Scores of decoded output; a row holds those that were computed, each with its signature."""
CEILINGS = {metric: 100.0 for metric in STORED_METRICS if metric != "bleurt"}
"""The most that a score can be, where there is an end: no law of it may have a higher limit."""
DECODED_FIELDS: dict[str, Any] = {
    **dict.fromkeys(STORED_METRICS, Number),
    **{f"{metric}_signature": str for metric in STORED_METRICS},
}
SCORERS = {"sacrebleu": STORED_METRICS[:-1], "bleurt": STORED_METRICS[-1:]}
"""What scored the translations of a run, and the metrics it gives; each has a separate file."""
DECODING_COLUMNS = ("decoded_sentences", "decoding")
"""What `results.load` says of how a row was decoded, beside the metrics."""
CURVE_FIELDS: dict[str, Any] = {
    "step": Count,
    "target_tokens": Count,
    "pair": str,
    "cross_entropy": Amount,
    "train_loss": Amount,
    "seconds": Amount,
    "learning_rate": Amount,
}


def _distinct(rows: list[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Refuse a row that has the keys of an earlier one."""
    identities = list(map(itemgetter(*keys), rows))
    if len(set(identities)) < len(rows):
        i, row = next((i, x) for i, x in enumerate(identities) if x in identities[:i])
        raise ValueError(f"[{i}] repeats {', '.join(filter(None, row))}")
    return rows


def _model(fields: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    """A dictionary that takes these fields and no other, without converting types."""
    kinds = {**fields, **{name: NotRequired[kind] for name, kind in (optional or {}).items()}}
    make: Any = TypedDict  # whose fields mypy wants to see
    part = make("part", kinds)
    part.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return part


def _file(fields: Mapping[str, Any]) -> Any:
    """A file of these parts."""
    return _model({"schema": Literal[SCHEMA], **fields})


def _rows(row: Any, *keys: str, least: int = 0) -> Any:
    """A list of rows that differ in these keys, at least `least` of them."""
    distinct = AfterValidator(lambda rows: _distinct(rows, keys))
    return Annotated[list[row], distinct, Field(min_length=least)]


def _same_config(run: dict[str, Any]) -> dict[str, Any]:
    """Refuse a run whose configuration is no longer the one that it was stored with."""
    if (computed := digest(run["config"])) != run["config_hash"]:
        raise ValueError(
            f".config_hash is {run['config_hash']!r}, but run.config has {computed!r}; restore the "
            "file"
        )
    return run


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    """Refuse a row without a score, and a score of another scorer or without a signature."""
    about = content["decoding"]
    for i, row in enumerate(content["rows"]):
        scored = {metric for metric in STORED_METRICS if metric in row}
        signed = about["signatures"].get(row["pair"].partition("-")[2], {})
        if not scored or not scored <= {*SCORERS[about["scorer"]]} & signed.keys():
            raise ValueError(f"rows[{i}] must have scores of {about['scorer']}, with signatures")
    return content


_KEYS = ("pair", "test_set", "domain")
_RUN = {
    "run": Annotated[_model(RUN_FIELDS), AfterValidator(_same_config)],
    "rows": _rows(_model(ROW_FIELDS), *_KEYS, least=1),
    "curve": list[_model(CURVE_FIELDS)],  # type: ignore[misc]
}
RUN = TypeAdapter(_file(_RUN))
_SETTINGS = {
    "sentences": Count,  # of a test set, at most
    "beam": Count,
    "length_penalty": Amount,
    "max_ratio": Amount,
    "max_extra": Count,
}
_DECODING = {
    "run_id": FileName,
    "corpus": FileName,
    "scorer": Literal[tuple(SCORERS)],
    "settings": _model(_SETTINGS),
    "signatures": dict[str, dict[str, str]],  # target language -> metric -> signature
    "checkpoint": str,  # of the file, 16 digits of its SHA-256
    "steps": Count,  # at which it stood
    "commit": str,
    "evaluation_version": Count,
    "torch": str,
    "hardware": str,
    "seconds": Amount,
    "started": str,
}
_DECODED_ROW = {"pair": str, "test_set": str, "domain": str, "sentences": Count}
_SCORED_ROW = _model(_DECODED_ROW, dict.fromkeys(STORED_METRICS, Number))
_DECODINGS = {"decoding": _model(_DECODING), "rows": _rows(_SCORED_ROW, *_KEYS, least=1)}
_DECODED: Any = Annotated[_file(_DECODINGS), AfterValidator(_signed)]
DECODING: TypeAdapter[Any] = TypeAdapter(_DECODED)
ANALYSIS_KEYS = ("analysis", "layer", "block", "pair")
_ANALYSIS = _model(dict.fromkeys(ANALYSIS_KEYS, str) | {"value": Number})
_ANALYSES = {"run_id": FileName, "commit": str, "rows": _rows(_ANALYSIS, *ANALYSIS_KEYS)}
ANALYSES = TypeAdapter(_file(_ANALYSES))


def checked(file: TypeAdapter[Any], content: Any, where: str) -> Any:
    """The content of a file of the store, parsed where it is bytes; `where` names it in a message.

    Raises
    ------
    InputError
        When it is torn, of another schema version, or naming the field that is missing, unknown, of
        the wrong kind, out of range or repeated.
    """
    try:
        if isinstance(content, bytes):
            return file.validate_json(content)
        return file.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        kind, at = first["type"], place(first["loc"])
        if kind == "json_invalid":
            why = f" not whole JSON ({first['ctx']['error']}); restore the file"
        elif kind == "missing":
            why = f" {at} is missing"
        elif kind == "extra_forbidden":
            why = f" {at} is not a field of schema {SCHEMA}"
        elif kind == "value_error":  # of a check above
            why = f" {at}{first['ctx']['error']}"
        else:
            asked = re.sub(r"^\w+ should", "must", first["msg"])
            why = f" {at} {asked}, got {shown(first['input'])}"
        raise InputError(f"{where}:{why}") from error
