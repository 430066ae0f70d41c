"""What charts call the variants of an ablation."""

from __future__ import annotations

import re

from mnmt_repro.papers.effects.upgrades import MODEL_CHANGES


def variant_in_words(variant: str) -> str:
    """What a chart calls a variant of an ablation.

    >>> for each in ("Mt25-wide, random init new", "alpha 5, related"):
    ...     variant_in_words(each)
    'wider: new weights random'
    'up-sampling × 5, related too'
    >>> variant_in_words("f 1e-6, gamma 0.25"), variant_in_words("old 0.5, new 5")
    ('Fisher above 1e-6: factor 0.25', 'factor of old weights 0.5, of new 5')
    """
    model, comma, technique = variant.partition(", ")
    name = f"{MODEL_CHANGES[model]}: {technique}" if comma and model in MODEL_CHANGES else variant
    for pattern, words in _WORDS.items():
        name = re.sub(pattern, words, name)
    return name


def against(variant: str) -> str:
    """What a chart calls the recipe's choice where it is compared with a variant.

    >>> against("Mt25-wide, random init new"), against("reset")
    ('wider: against new weights random', 'against a new warm-up')
    """
    model, colon, other = variant_in_words(variant).rpartition(": ")
    return f"{model}{colon}against {other}"


_WORDS = {
    "random init new": "new weights random",
    "random init all": "all weights random",
    "unk$": "the unknown piece",
    "new embeddings mean": "embeddings as means",
    r"alpha (\d+)": r"up-sampling × \1",
    r"(× \d+), related": r"\1, related too",
    r"^f (\S+), gamma (\S+)": r"Fisher above \1: factor \2",
    r"\bold (\d\S*), new (\d\S*)": r"factor of old weights \1, of new \2",
    r": new (\d\S*)": r": factor of new weights \1",
    ", one rate": ", full rate",
    "^reset$": "a new warm-up",
    "^small constant$": "a small constant rate",
    r"noise (\S+)": r"noise of \1",
}
