"""BLEU, chrF, chrF++ and spBLEU by sacrebleu, each with its signature."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers import tokenizer_spm

from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.errors import InputError

CHINESE = ("zho", "cmn", "yue", "zh")
UNSPACED = ("jpn", "ja", "tha", "th", "lao", "lo", "khm", "km", "mya", "my")
"""Languages, besides Chinese, that put no space between words."""
FLORES = "flores200"  # pieces of spBLEU, in sacrebleu's words


def flores_pieces() -> Path:
    """Where sacrebleu keeps the pieces of spBLEU, there or not.

    sacrebleu downloads the file when it is first called with `--tokenize flores200`; nothing in
    this package does so on its own.
    """
    name = os.path.basename(tokenizer_spm.SPM_MODELS[FLORES]["url"])
    return Path(tokenizer_spm.SACREBLEU_DIR) / "models" / name


def _tokeniser(language: str) -> str:
    """Of BLEU: sacrebleu's rules for Chinese, characters without spaces, or mteval's rules."""
    code = re.split("[-_]", language.lower())[0]
    if code in CHINESE:
        return "zh"
    return "char" if code in UNSPACED else "13a"


def scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    *,
    vocabulary: Vocabulary | None = None,
) -> dict[str, float | str]:
    """Score a whole test set against one reference a sentence.

    Parameters
    ----------
    target_language
        ISO 639, of two letters or three; a script or country behind it (``zho_Hans``, ``zh-CN``)
        does not matter. It decides how BLEU cuts text: Chinese by sacrebleu's rules for it, other
        languages without spaces into characters, and everything else by mteval's rules.
    vocabulary
        The run's own pieces; gives `piece_bleu`, which only compares runs that share them.

    Returns
    -------
    dict
        `bleu`, `chrf`, `chrfpp`; `spbleu` where its pieces are on this machine (see
        `flores_pieces`); `piece_bleu` with a vocabulary; and `..._signature` for each.

    Raises
    ------
    InputError
        When the two have different lengths, or none.

    Examples
    --------
    >>> round(scores(["the cat sat down"], ["the cat sat down"], "eng")["bleu"], 6)
    100.0
    """
    check_lengths(hypotheses, references)
    metrics: dict[str, BLEU | CHRF] = {
        "bleu": BLEU(tokenize=_tokeniser(target_language)),
        "chrf": CHRF(),
        "chrfpp": CHRF(word_order=2),
    }
    if flores_pieces().is_file():  # else sacrebleu would download them
        metrics["spbleu"] = BLEU(tokenize=FLORES)
    result: dict[str, float | str] = {}
    for name, metric in metrics.items():
        result[name] = float(metric.corpus_score(hypotheses, [references]).score)
        result[f"{name}_signature"] = str(metric.get_signature())
    if vocabulary is not None:
        own = BLEU(tokenize="none", force=True)
        pieces = [_pieces(vocabulary, side) for side in (hypotheses, references)]
        result["piece_bleu"] = float(own.corpus_score(pieces[0], [pieces[1]]).score)
        signature = str(own.get_signature())
        result["piece_bleu_signature"] = signature.replace(
            "tok:none", f"tok:pieces-{vocabulary.hash}"
        )
    return result


def check_lengths(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise `InputError` unless there is one reference for each of one or more hypotheses."""
    if len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses)} hypotheses, but {len(references)} references")
    if not len(hypotheses):
        raise InputError("there are no hypotheses to score")


def _pieces(vocabulary: Vocabulary, sentences: Sequence[str]) -> list[str]:
    encoded = vocabulary.processor.encode(list(sentences), out_type=str)
    return [" ".join(pieces) for pieces in encoded]
