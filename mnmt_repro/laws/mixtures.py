"""Losses of a mixture of many pairs from laws fitted on two-pair mixtures (Appendix H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import columns, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionFit

PairLaws = FractionFit | Sequence[FractionFit]


def mixture_errors(
    laws: Mapping[str, PairLaws],
    frame: pd.DataFrame,
    *,
    n: str = "n_non_embedding",
    loss: str = "cross_entropy",
) -> pd.DataFrame:
    """Compare observed losses of many-pair mixtures with predictions from two-pair laws.

    Parameters
    ----------
    frame : DataFrame
        Rows of any mixtures: ``pair, p`` and the columns named by `n` and `loss`. Each row is
        predicted from its own share.

    Returns
    -------
    DataFrame
        The rows' ``pair, p, n, loss`` with ``predicted, error, relative_error`` (predicted less
        observed; as a fraction of observed).

    Raises
    ------
    InputError
        A pair without a law, a law that is not identified, a share or size not above zero.
    """
    columns(frame, ["pair", "p", n, loss])
    share, sizes = (vector(name, frame[name], positive=True) for name in ("p", n))
    predicted = [
        float(np.mean([law.predict(p, size)[0] for law in _own(laws, pair)]))
        for pair, p, size in zip(frame["pair"], share, sizes, strict=True)
    ]
    observed = vector(loss, frame[loss])
    error = np.array(predicted) - observed
    rows = frame[["pair", "p", n]].set_axis(["pair", "p", "n"], axis=1).reset_index(drop=True)
    return rows.assign(
        loss=observed, predicted=predicted, error=error, relative_error=error / observed
    )


def _own(laws: Mapping[str, PairLaws], pair: str) -> list[FractionFit]:
    """The laws of a pair, all of them identified."""
    if pair not in laws:
        raise InputError(f"{pair}: no law; fitted are {sorted(laws)}")
    own = laws[pair]
    own = [own] if isinstance(own, LawFit) else list(own)
    for law in own:
        if not law.identified:
            raise InputError(f"{pair}: a law is not identified: {law.reason}")
    return own
