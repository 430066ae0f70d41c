"""Paired bootstrap over sentences, beside the paired t-test over directions of `analysis.variants`.

It resamples test sentences of the same two models. Languages and seeds stay as they are.
"""

from __future__ import annotations

import numpy as np

from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.significance import LossBootstrap, bootstrap_gaps
from mnmt_repro.results.sentences import SentenceLosses


def bootstrap_losses(
    treated: SentenceLosses,
    control: SentenceLosses,
    pairs: tuple[str, ...] = (),
    *,
    draws: int = 1000,
) -> LossBootstrap:
    """Resample the sentences within each direction, the same for both runs (Koehn, 2004).

    The loss of a run is the mean over directions of its cross-entropy of the test set, summed nats
    over summed tokens, as the claims take it; for a single direction, that of the corpus. Interval
    and p-value are those of `evaluation.significance.bootstrap_gaps`.

    Parameters
    ----------
    pairs
        The directions; default all of the treated run's.

    Raises
    ------
    InputError
        When a direction is missing, or the runs were not scored on the same sentences in the same
        pieces.

    Examples
    --------
    >>> def run(*nats):
    ...     return SentenceLosses(
    ...         run_id="a", commit="", test_set="indomain", most=9,
    ...         nats={"eng-xho": np.array(nats, np.float32)},
    ...         tokens={"eng-xho": np.full(len(nats), 2, np.int16)},
    ...     )
    >>> found = bootstrap_losses(run(3.0, 5.0, 7.0), run(4.0, 6.0, 8.0))
    >>> found.difference, found.low, found.high  # a nat less for every two tokens
    (-0.5, -0.5, -0.5)
    """
    chosen = pairs or tuple(treated.nats)
    if treated.test_set != control.test_set:
        raise InputError(f"runs scored on {treated.test_set} and {control.test_set}: one test set")
    gaps, counts = [], []
    for pair in chosen:
        for run in (treated, control):
            if pair not in run.nats:
                raise InputError(f"run {run.run_id}: no losses of {pair}")
        tokens = treated.tokens[pair].astype(np.float64)
        if not np.array_equal(tokens, control.tokens[pair]):
            raise InputError(
                f"runs {treated.run_id} and {control.run_id}, {pair}: other sentences or other "
                "pieces; nats per token compare only runs of one vocabulary"
            )
        gaps.append(treated.nats[pair].astype(np.float64) - control.nats[pair])
        counts.append(tokens)
    return bootstrap_gaps(gaps, counts, draws=draws)
