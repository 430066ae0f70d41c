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


def _file(fields: Mapping[str, Any]) -> TypeAdapter[Any]:
    """What reads and checks a file of these parts."""
    return TypeAdapter(_model({"schema": Literal[SCHEMA], **fields}))


def _rows(row: Any, *keys: str, least: int = 0) -> Any:
    """A list of rows that differ in these keys, at least `least` of them."""
    distinct = AfterValidator(lambda rows: _distinct(rows, keys))
    return Annotated[list[row], distinct, Field(min_length=least)]


_KEYS = ("pair", "test_set", "domain")
_RUN = _file(
    {
        "run": _model(RUN_FIELDS),
        "rows": _rows(_model(ROW_FIELDS, DECODED_FIELDS), *_KEYS, least=1),
        "curve": list[_model(CURVE_FIELDS)],  # type: ignore[misc]
    }
)
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
_DECODINGS = {
    scorer: _file(
        {
            "decoding": _model(_DECODING),
            "rows": _rows(_model(_DECODED_ROW, dict.fromkeys(metrics, Number)), *_KEYS, least=1),
        }
    )
    for scorer, metrics in SCORERS.items()
}
ANALYSIS_KEYS = ("analysis", "layer", "block", "pair")
_ANALYSIS = _model(dict.fromkeys(ANALYSIS_KEYS, str) | {"value": Number})
_ANALYSES = _file({"run_id": FileName, "commit": str, "rows": _rows(_ANALYSIS, *ANALYSIS_KEYS)})


def check_run(content: Any, where: str) -> None:
    """Check the content of one file of a run; `where` names it in the message.

    Raises
    ------
    InputError
        Naming the field that is missing, unknown, of the wrong kind, out of range or repeated.
    """
    _check(content, _RUN, where)
    run = content["run"]
    if (computed := digest(run["config"])) != run["config_hash"]:
        raise InputError(
            f"{where}: run.config_hash is {run['config_hash']!r}, but run.config has {computed!r}; "
            "restore the file"
        )


def parse_run(text: bytes) -> Any:
    """The content of one file of a run, parsed and checked at once; None where a check fails."""
    try:
        content = _RUN.validate_json(text)
    except ValidationError:
        return None
    run = content["run"]
    return content if digest(run["config"]) == run["config_hash"] else None


def check_decoding(content: Any, where: str) -> None:
    """Check the content of one file of scores of translations, as `check_run` does a run's.

    Raises
    ------
    InputError
        As `check_run`, and naming the metric that has no signature.
    """
    _check_version(content, where)
    about = content.get("decoding", {})
    scorer = str(about.get("scorer")) if isinstance(about, dict) else ""
    if scorer not in SCORERS:
        raise InputError(f"{where}: decoding.scorer must be one of {', '.join(SCORERS)}")
    _check(content, _DECODINGS[scorer], where)
    for i, row in enumerate(content["rows"]):
        scored = [metric for metric in SCORERS[scorer] if metric in row]
        if not scored:
            raise InputError(f"{where}: rows[{i}] has no score")
        signed = about["signatures"].get(row["pair"].partition("-")[2], {})
        for metric in scored:
            if metric not in signed:
                raise InputError(f"{where}: rows[{i}].{metric} has no signature")


def check_analyses(content: Any, where: str) -> None:
    """Check the content of one file of analyses; raises as `check_run`."""
    _check(content, _ANALYSES, where)


def _check_version(content: Any, where: str) -> None:
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA:
        raise InputError(f"{where}: schema is {version!r}, this version reads {SCHEMA}")


def _check(content: Any, file: TypeAdapter[Any], where: str) -> None:
    _check_version(content, where)
    try:
        file.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        kind, at = first["type"], place(first["loc"])
        if kind == "missing":
            why = " is missing"
        elif kind == "extra_forbidden":
            why = f" is not a field of schema {SCHEMA}"
        elif kind == "value_error":  # of `_distinct`
            why = str(first["ctx"]["error"])
        else:
            asked = re.sub(r"^\w+ should", "must", first["msg"])
            why = f" {asked}, got {shown(first['input'])}"
        raise InputError(f"{where}: {at}{why}") from error
