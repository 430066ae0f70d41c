"""What is worth knowing of your own bitexts before training: repeats, copies, text of the tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.registry import split_pair

FAULTS = {
    "repeated": "repeated",
    "untranslated": "with both sides the same",
    "in_training": "with a side that is in training text",
}
"""What sentences are looked over for, and in words."""


def check_own(train: Mapping[str, Bitext], test: Mapping[str, Bitext]) -> list[dict[str, Any]]:
    """Look for repeats and copies in bitexts, and for sentences of the tests in training text.

    Sentences are compared with case, digits and punctuation folded (`fold`). A test
    sentence of one pair counts as seen where another pair trains on either of its sides: a
    multilingual model has then met the sentence, if not its translation.

    Parameters
    ----------
    train, test : bitexts by pair

    Returns
    -------
    list of dict
        Of each text its `text` (``"eng-deu"``, ``"eng-deu, test"``), how many `sentences` it has,
        and the numbers, from 1, of those with one of the `FAULTS`.
    """
    seen: dict[str, set[str]] = {}
    for text in train.values():
        for language, sentences in folded_sides(text).items():
            seen.setdefault(language, set()).update(sentences)
    trained = [{"text": pair, **_faults(text, {})} for pair, text in train.items()]
    return trained + [
        {"text": f"{pair}, test", **_faults(text, seen)} for pair, text in test.items()
    ]


def _faults(text: Bitext, seen: Mapping[str, set[str]]) -> dict[str, Any]:
    import pandas as pd  # slow, and no other function here needs it

    sides = pd.DataFrame(folded_sides(text), index=range(1, len(text) + 1))
    source, target = (sides[language] for language in sides)
    bad = {
        "repeated": sides.duplicated(),
        "untranslated": source == target,
        "in_training": sides.apply(lambda side: side.isin(seen.get(str(side.name), ()))).any(
            axis=1
        ),
    }
    numbers = {name: sides.index[rows].tolist() for name, rows in bad.items()}
    return {"sentences": len(text), **numbers}


def fold(text: str) -> str:
    """Fold case, digits and punctuation, the rule by which the real corpora were split.

    >>> fold("Since PHP 5.3:  it's GONE!")
    'since php 0 0 it s gone'
    """
    return " ".join(re.sub(r"\W+", " ", re.sub(r"\d+", "0", text.lower())).split())


def folded_sides(text: Bitext) -> dict[str, list[str]]:
    """Both sides by language, folded; what folds to nothing, such as "...", stays as it is."""
    languages = split_pair(text.pair)
    return {
        language: [fold(sentence) or sentence for sentence in side]
        for language, side in zip(languages, (text.source, text.target), strict=True)
    }
