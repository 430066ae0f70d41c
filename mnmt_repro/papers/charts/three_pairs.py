"""How pages name mixtures of three pairs and more."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.papers.cohorts.names import beside_hub, cohort_name, language, pair_name

_NAMES = {"pair": pair_name, "law of": cohort_name, "beside": cohort_name}


def mixture_name(mixture: str) -> str:
    """What a page calls a mixture.

    >>> mixture_name("eng-deu:0.5,eng-fra:0.25,eng-zho:0.25")
    'German 0.5, French 0.25, Chinese 0.25'
    >>> mixture_name("deu-eng:0.1,zho-eng:0.9")
    'German 0.1, Chinese 0.9'
    """
    shares = [item.rpartition(":")[::2] for item in mixture.split(",")]
    sources = {pair.partition("-")[0] for pair, _ in shares}
    part = 2 if len(sources) == 1 else 0
    return ", ".join(f"{language(pair.partition('-')[part])} {float(p):.3g}" for pair, p in shares)


def with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of `effects.three_pairs` with pairs, cohorts and mixtures as pages name them."""
    names = {**_NAMES, "mixture": mixture_name}
    known = {column: frame[column].map(name) for column, name in names.items() if column in frame}
    return frame.assign(**known)


def beside(pair: str) -> str:
    """The language of a pair that its companions do not share.

    >>> beside("eng-deu")
    'German'
    """
    return language(beside_hub(pair))
