"""Losses of a mixture of many pairs from laws fitted on two-pair mixtures (Appendix H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mnmt_repro.errors import InputError
from mnmt_repro.laws.checks import columns, vector
from mnmt_repro.laws.fit_result import LawFit
from mnmt_repro.laws.fraction import FractionFit

PairLaws = FractionFit | Sequence[FractionFit]


def predict_mixture(
    laws: Mapping[str, PairLaws], weights: Mapping[str, float], n: ArrayLike
) -> pd.DataFrame:
    """Predict each pair of a mixture from its own share alone, as if two pairs shared the model.

    Parameters
    ----------
    laws : dict of pair to FractionFit, or to several
        Laws of the pair from two-pair cohorts. Where a pair has several (German from
        {De, Zh} and from {De, Fr}) their predictions are averaged.
    weights : dict of pair to share, summing to one
    n : model sizes

    Returns
    -------
    DataFrame
        ``n, pair, p, loss, lowest, highest, laws``: the mean prediction and its range over laws.

    Raises
    ------
    InputError
        A pair without a law, shares that do not sum to one, a law that is not identified.
    """
    if abs(sum(weights.values()) - 1) > 1e-6 or min(weights.values()) <= 0:
        raise InputError(f"weights: {dict(weights)}; give shares above 0 that sum to 1")
    sizes = vector("n", np.atleast_1d(n), positive=True)
    frames = []
    for pair, p in weights.items():
        own = _own(laws, pair)
        many = np.stack([law.predict(p, sizes) for law in own])
        frame = pd.DataFrame({"n": sizes, "pair": pair, "p": p, "loss": many.mean(0)})
        frames.append(frame.assign(lowest=many.min(0), highest=many.max(0), laws=len(own)))
    return pd.concat(frames, ignore_index=True)


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
