"""Implicit and explicit scalarization (section 2.2), by exact arithmetic on a small example.

At any one set of weights of a model each target token contributes a gradient, which here is a
number. Implicit scalarization draws sentences, a pair with probability p; explicit scalarization
adds mean losses per token with weights w. Every draw that there can be is counted with its
probability, in fractions, so nothing is rounded and nothing is sampled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from mnmt_repro.corpora.mixture import explicit_weights
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.framed import Rows, framed

Text = Mapping[str, Sequence[Sequence[int]]]
"""Pair to its sentences, each the gradients of its target tokens."""
EXAMPLE: Text = {
    "eng-deu": ((4, 2, 0, 2), (6, 2)),  # sentences of 4 and 2 tokens
    "eng-zho": ((-3,), (1, -1, 1, -1, 3), (-6,)),  # of 1, 5 and 1
}
EXAMPLE_WEIGHTS = {"eng-deu": Fraction(1, 4), "eng-zho": Fraction(3, 4)}


def mean_tokens(text: Text) -> dict[str, Fraction]:
    """Mean target tokens a sentence of each pair.

    >>> print(*mean_tokens(EXAMPLE).values())
    3 7/3
    """
    return {pair: Fraction(sum(map(len, rows)), len(rows)) for pair, rows in text.items()}


def implicit_gradient(text: Text, p: Mapping[str, Fraction]) -> Fraction:
    """Expected gradient a target token, where sentences are drawn with probabilities `p`.

    The expected sum over the tokens of one drawn sentence, over the expected number of them.

    >>> print(implicit_gradient(EXAMPLE, EXAMPLE_WEIGHTS))
    1/5
    """
    gradient, tokens = Fraction(0), Fraction(0)
    for pair, rows in text.items():
        for row in rows:  # each draw that there can be, times its probability
            gradient += p[pair] / len(rows) * sum(row)
            tokens += p[pair] / len(rows) * len(row)
    return gradient / tokens


def explicit_gradient(text: Text, w: Mapping[str, Fraction]) -> Fraction:
    """Gradient of Eq. 4, the sum of w_i times the mean loss per token of pair i.

    >>> print(explicit_gradient(EXAMPLE, EXAMPLE_WEIGHTS))
    1/42
    """
    return sum(
        (
            w[pair] * Fraction(sum(map(sum, rows)), sum(map(len, rows)))
            for pair, rows in text.items()
        ),
        Fraction(0),
    )


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """Outcome of `compare_counting`.

    Attributes
    ----------
    implicit : expected gradient a token under sampling
    explicit : gradient of Eq. 4 with the weights of `explicit_weights`
    naive : gradient of Eq. 4 with w = p
    weights : those of `corpora.mixture.explicit_weights`
    """

    implicit: Fraction
    explicit: Fraction
    naive: Fraction
    weights: Mapping[str, Fraction]


def compare_counting(
    text: Text = EXAMPLE, p: Mapping[str, Fraction] = EXAMPLE_WEIGHTS
) -> _Comparison:
    """Set the expected gradients of both kinds of scalarization side by side."""
    weights = explicit_weights(p, mean_tokens(text))
    return _Comparison(
        implicit=implicit_gradient(text, p),
        explicit=explicit_gradient(text, weights),
        naive=explicit_gradient(text, p),
        weights=weights,
    )


@framed()
def working() -> Rows:
    """The arithmetic of the example, a row a pair, as text.

    Returns
    -------
    DataFrame
        ``pair, token gradients, p, mean tokens, mean gradient a token, w``.
    """
    lengths = mean_tokens(EXAMPLE)
    weights = explicit_weights(EXAMPLE_WEIGHTS, lengths)
    for pair, rows in EXAMPLE.items():
        yield {
            "pair": pair_name(pair),
            "token gradients": "; ".join(", ".join(map(str, row)) for row in rows),
            "p": str(EXAMPLE_WEIGHTS[pair]),
            "mean tokens": str(lengths[pair]),
            "mean gradient a token": str(Fraction(sum(map(sum, rows)), sum(map(len, rows)))),
            "w": str(weights[pair]),
        }


@framed()
def batch_gradients(
    text: Text = EXAMPLE,
    p: Mapping[str, Fraction] = EXAMPLE_WEIGHTS,
    sizes: Sequence[int] = (1, 2, 4, 8, 16, 32),
) -> Rows:
    """What a trainer sees that divides the gradient of a batch by the batch's own tokens.

    All batches of so many sentences are counted with their probabilities, by convolution of the
    distribution of (sum of gradients, number of tokens). The mean of a ratio is not the ratio of
    means, so the expectation is off by a little, and by less the larger the batch.

    Returns
    -------
    DataFrame
        ``sentences, mean, off`` (mean less that of the implicit gradient) and ``deviation``, the
        standard deviation over batches; explicit scalarization on the whole text has none.
    """
    chances = {pair: p[pair] / len(rows) for pair, rows in text.items()}
    whole = math.lcm(*(chance.denominator for chance in chances.values()))
    one: Counter[tuple[int, int]] = Counter()  # of (gradient, tokens), in parts of `whole`
    for pair, rows in text.items():
        for row in rows:
            one[sum(row), len(row)] += int(chances[pair] * whole)
    target = implicit_gradient(text, p)
    drawn: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    have = 0
    for size in sorted(sizes):
        for _ in range(size - have):
            longer: Counter[tuple[int, int]] = Counter()
            for (gradient, tokens), chance in drawn.items():
                for (more, count), share in one.items():
                    longer[gradient + more, tokens + count] += chance * share
            drawn = longer
        have = size
        first: Counter[int] = Counter()  # by tokens, which are the denominators
        second: Counter[int] = Counter()
        for (gradient, tokens), chance in drawn.items():
            first[tokens] += gradient * chance
            second[tokens] += gradient**2 * chance
        every = whole**size
        mean = sum((Fraction(x, n * every) for n, x in first.items()), Fraction(0))
        square = sum((Fraction(x, n * n * every) for n, x in second.items()), Fraction(0))
        yield {
            "sentences": size,
            "mean": float(mean),
            "off": float(mean - target),
            "deviation": float(square - mean * mean) ** 0.5,
        }


@framed("pair", "p", "w", "predicted")
def token_shares(rows: pd.DataFrame) -> Rows:
    """The task weights that runs were in fact trained with: each pair's share of target tokens.

    For two pairs whose sentences have a and b target tokens on average, w = p a / (p a + (1-p) b).
    The ratio a / b is read off the runs at p = 0.5 and then predicts all others.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain.

    Returns
    -------
    DataFrame
        ``pair, p, w, predicted``: means over the runs with that weight; pairs that lack p = 0.5 are
        left out.
    """
    mixed = rows[(rows["p"] > 0) & (rows["p"] < 1)]
    for pair, group in mixed.groupby("pair"):
        w = group.groupby("p")["token_share"].mean()
        half = w[np.isclose(w.index, 0.5)]
        if len(half):
            odds = float(half.iloc[0] / (1 - half.iloc[0]))
            predicted = w.index * odds / (w.index * odds + 1 - w.index)
            table = {"pair": pair_name(str(pair)), "p": w.index, "w": w, "predicted": predicted}
            yield pd.DataFrame(table)
