"""BLEURT, where its weights are on disk and the extra `bleurt` is installed.

The weights are those that Google published, as converted for PyTorch (`lucadiliello/BLEURT-20` and
its smaller relatives): a folder with `config.json`, the weights and `spm.model`. Nothing here
downloads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from mnmt_repro.errors import InputError, missing_extra
from mnmt_repro.evaluation.metrics import check_lengths

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
MOST_TOKENS = 512  # of reference and hypothesis together; BLEURT reads no more


def bleurt(
    hypotheses: Sequence[str],
    references: Sequence[str],
    checkpoint: Path | str,
    *,
    device: str = "cpu",
    batch_sentences: int = 16,
) -> dict[str, float | str]:
    """Mean BLEURT (Sellam et al., 2020) of a test set against one reference a sentence.

    Parameters
    ----------
    checkpoint
        Folder of the converted weights.

    Returns
    -------
    dict
        `bleurt`, times 100 so that it reads like the other metrics, and `bleurt_signature`, which
        names the folder, its weights' SHA-256 and the package.

    Raises
    ------
    InputError
        When the extra is not installed, or the folder holds no BLEURT; also when hypotheses and
        references have different lengths, or none.
    """
    check_lengths(hypotheses, references)
    tokenizer, model, signature = _load(Path(checkpoint), device)
    order = sorted(range(len(references)), key=lambda i: len(references[i]) + len(hypotheses[i]))
    total = 0.0
    with torch.inference_mode():
        for first in range(0, len(order), batch_sentences):
            rows = order[first : first + batch_sentences]
            inputs = tokenizer(
                [references[i] for i in rows],
                [hypotheses[i] for i in rows],
                padding="longest",
                truncation="longest_first",
                max_length=MOST_TOKENS,
                return_tensors="pt",
            )
            total += float(model(**inputs.to(device)).logits.double().sum())
    return {"bleurt": 100 * total / len(references), "bleurt_signature": signature}


@cache
def _load(checkpoint: Path, device: str) -> tuple[Any, Any, str]:
    """Tokeniser, model and signature, read once a process."""
    weights = bleurt_weights(checkpoint)
    try:
        from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer
    except ImportError as error:
        raise missing_extra(error, "bleurt") from error
    try:
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        tokenizer = BleurtTokenizer.from_pretrained(str(checkpoint))
        model = BleurtForSequenceClassification.from_pretrained(str(checkpoint))
        model = model.to(device).eval()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{checkpoint}: no BLEURT that can be read: {error}") from error
    signature = (
        f"nrefs:1|checkpoint:{checkpoint.resolve().name}|sha256:{digest}"
        f"|package:bleurt-pytorch-{version('bleurt-pytorch')}"
    )
    return tokenizer, model, signature


def bleurt_weights(checkpoint: Path | str) -> Path:
    """The file of weights in a folder.

    Raises
    ------
    InputError
        When there is none; the message says where the weights come from.
    """
    for name in _WEIGHTS:
        if (path := Path(checkpoint) / name).is_file():
            return path
    raise InputError(
        f"{checkpoint}: holds no BLEURT weights ({' or '.join(_WEIGHTS)}); download a folder such "
        "as lucadiliello/BLEURT-20 from the Hugging Face Hub and give its path"
    )
