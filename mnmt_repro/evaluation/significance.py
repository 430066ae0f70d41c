"""Is a difference chance? Over sentences: paired bootstrap. Over directions: paired t-test.

The bootstrap shows how the difference would vary over other test sentences, the t-test how it would
vary over other directions. Neither includes the variation between training seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_LEVEL = 0.95  # of the intervals of `bootstrap_gaps` and `paired_t_test`


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Of two systems, with its 95 % interval and two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, kw_only=True)
class PairedBootstrap:
    """Two systems on one test set."""

    signature: str  # sacrebleu's, number of samples and seed included
    score: float
    baseline: float
    p_value: float  # two-sided

    @property
    def difference(self) -> float:
        """Score minus baseline."""
        return self.score - self.baseline


def bootstrap_gaps(
    gaps: NDArray[np.float64], units: NDArray[np.float64], *, draws: int = 1000
) -> Difference:
    """Resample the sentences of a direction, the same for both models (Koehn, 2004).

    The difference is that of summed gaps over summed units. Its interval is that of the drawn
    differences (percentiles); the p-value is the share of draws that stray from the difference by
    as much as it is from zero, counting it itself as one of them.

    Parameters
    ----------
    gaps
        (sentences,): nats that a model spends on a sentence beyond the other's.
    units
        (sentences,): what losses are counted by, such as target tokens.

    Examples
    --------
    >>> result = bootstrap_gaps(np.array([-1.0, -1.0, -1.0]), np.array([2.0, 2.0, 2.0]))
    >>> result.difference, result.low, result.high  # a nat less for every two tokens
    (-0.5, -0.5, -0.5)
    """
    picks = np.random.default_rng(0).integers(len(gaps), size=(draws, len(gaps)))
    drawn = gaps[picks].sum(1) / units[picks].sum(1)
    difference = float(gaps.sum() / units.sum())
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    as_far = np.abs(drawn - difference) >= abs(difference)
    return Difference(
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=float((as_far.sum() + 1) / (draws + 1)),
    )


def paired_bootstrap(
    system: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str,
    metric: str = "bleu",
    samples: int = 1000,
) -> PairedBootstrap:
    """Resample the sentences of a test set to compare two systems (Koehn, 2004), by sacrebleu.

    The same input gives the same answer: the seed is sacrebleu's own, 12345, unless the environment
    sets `SACREBLEU_SEED`; the signature names it.

    Raises
    ------
    InputError
        When the three do not have the same length.
    """
    from sacrebleu.significance import PairedTest

    from mnmt_repro.evaluation.metrics import check_lengths, make_metric

    check_lengths(system, references)
    check_lengths(baseline, references)
    test = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {metric: make_metric(metric, target_language)},
        [list(references)],
        test_type="bs",
        n_samples=samples,
    )
    signatures, columns = test()
    (key,) = signatures  # the library's own name of the metric
    before, after = cast(list[Any], columns[key])
    return PairedBootstrap(
        signature=str(signatures[key]),
        score=float(after.score),
        baseline=float(before.score),
        p_value=float(after.p_value),
    )


def paired_t_test(system: Sequence[float], baseline: Sequence[float]) -> Difference:
    """Mean difference over the directions that both systems were scored on, as Paper B tests it.

    Parameters
    ----------
    system, baseline
        Score of each direction, in one order.

    Examples
    --------
    >>> result = paired_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    >>> result.difference, round(result.p_value, 4)
    (2.0, 0.0742)
    """
    after, before = np.array(system, dtype=float), np.array(baseline, dtype=float)
    result = stats.ttest_rel(after, before)
    interval = result.confidence_interval(_LEVEL)
    return Difference(
        difference=float((after - before).mean()),
        low=float(interval.low),
        high=float(interval.high),
        p_value=float(result.pvalue),
    )
