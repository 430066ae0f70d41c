"""Algebra that runs: effective parameters (Appendix D), doubling (section 3.2), scalarization.

Every line of a derivation is an expression and the check that it equals the line before, for all
positive values of its symbols. A line that does not follow is shown as such.

Doubling the size "reduces its loss by the same 1/2^α": true of the reducible loss, but the whole
loss keeps its irreducible part. `doubling_by_weight` measures it.

Implicit and explicit scalarization (section 2.2) are compared on a small example. At any one set of
weights of a model each target token contributes a gradient, which here is a number. Implicit
scalarization draws sentences, a pair with probability p; explicit scalarization adds mean losses
per token with weights w. Every draw that there can be is counted with its probability, in
fractions, so nothing is rounded and nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sympy as sp
from scipy import stats

from mnmt_repro.corpora.conlang import irreducible_entropy
from mnmt_repro.papers.cohorts.catalogue import conlang_of
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.scaling import PairFits

BETA_1, BETA_P, ALPHA, N, N_EFF, F = sp.symbols("beta_1 beta_p alpha N N_eff f", positive=True)
ALPHA_1, ALPHA_P = sp.symbols("alpha_1 alpha_p", positive=True)
L_INF = sp.Symbol("L_infty", nonnegative=True)
P = sp.Symbol("p", positive=True)
C1 = sp.Symbol("c_1", real=True)  # below zero in some fits
C2, C3 = sp.symbols("c_2 c_3", positive=True)
RATIO = BETA_1 / BETA_P
EQ_9 = RATIO ** (1 / ALPHA) * N
"""Effective number of parameters."""
EQ_12 = P + C1 * P**C2 * (1 - P) ** C3
EQ_13 = C1 * (P - 1) + 1


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One line of a derivation.

    Attributes
    ----------
    reason : str
        What is done to the line before.
    expression
        The line.
    follows : bool
        Whether it equals the line before wherever the symbols are positive.
    """

    reason: str
    expression: sp.Expr
    follows: bool

    @property
    def latex(self) -> str:
        """The line as LaTeX."""
        names = {L_INF: r"L_\infty", N_EFF: r"N_\mathrm{eff}"}
        return str(sp.latex(self.expression, symbol_names=names))


def equal(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether two expressions are equal wherever their symbols are positive.

    >>> equal((BETA_1 / BETA_P) ** ALPHA, (BETA_P / BETA_1) ** -ALPHA)
    True
    >>> equal(BETA_1 * N, BETA_P * N)
    False
    """
    difference = sp.expand_power_base(sp.powdenest(left - right, force=True), force=True)
    return bool(sp.simplify(difference) == 0)


def chain(lines: Sequence[tuple[str, sp.Expr]]) -> list[_Step]:
    """Check each line against the one before; the first is taken as given.

    >>> [step.follows for step in chain([("given", N * N), ("same", N**2), ("slip", N**3)])]
    [True, True, False]
    """
    steps: list[_Step] = []
    for reason, expression in lines:
        follows = not steps or equal(steps[-1].expression, expression)
        steps.append(_Step(reason=reason, expression=expression, follows=follows))
    return steps


def as_markdown(steps: Sequence[_Step]) -> str:
    """A derivation of a loss as Markdown: a line a step, its reason and whether it follows."""
    left = r"\mathcal{L}_i(N; p)"
    lines = []
    for number, step in enumerate(steps):
        remark = "given" if not number else "follows" if step.follows else "does not follow"
        sign = "=" if step.follows else r"\neq"
        lines.append(
            f"{number + 1}. {step.reason} (*{remark}*)\n\n"
            f"   $$\n   {left if not number else ''} {sign} {step.latex}\n   $$\n"
        )
    return "\n".join(lines)


def effective_size_steps() -> list[_Step]:
    """Eq. 7 to Eqs. 8 and 9, line by line as Appendix D has it, with its last line put right.

    `appendix_d_last_line` is the line as printed.
    """

    def law(factor: sp.Expr, size: sp.Expr) -> sp.Expr:
        return factor * size**-ALPHA + L_INF

    inner = sp.Mul(BETA_P / BETA_1, N**-ALPHA, evaluate=False)
    down = (BETA_P / BETA_1) ** (-1 / ALPHA) * N
    with sp.evaluate(False):
        second = BETA_1 * inner + L_INF
        third = BETA_1 * down**-ALPHA + L_INF
        fourth = BETA_1 * EQ_9**-ALPHA + L_INF
    return chain(
        [
            ("Eq. 7, the joint law at weight p", law(BETA_P, N)),
            ("divide and multiply by the single pair's factor", second),
            ("draw the ratio into the power", third),
            ("turn the ratio over", fourth),
            (
                "the single pair's law at the size of Eq. 9: by Eq. 8 this is the definition",
                law(BETA_1, N_EFF).subs(N_EFF, EQ_9),
            ),
        ]
    )


def appendix_d_last_line() -> _Step:
    """Appendix D's last line as printed, ``= L_i(N_eff; p)``, against the line before.

    The law at weight *p* has the factor of *p*: at the effective size it is another loss. What
    equals the line before is ``L_i(N_eff; 1)``, as in Eq. 8.
    """
    before = BETA_1 * EQ_9**-ALPHA + L_INF
    printed = BETA_P * EQ_9**-ALPHA + L_INF
    return _Step(
        reason="as printed: the law at weight p, at the effective size",
        expression=printed,
        follows=equal(before, printed),
    )


def solved_size(alpha_1: sp.Expr = ALPHA, alpha_p: sp.Expr = ALPHA) -> sp.Expr:
    """Eq. 8 solved for the effective size by the algebra system, without the steps above.

    >>> equal(solved_size(), EQ_9)
    True
    """
    gap = sp.log(BETA_1) - alpha_1 * sp.log(N_EFF) - (sp.log(BETA_P) - alpha_p * sp.log(N))
    (answer,) = sp.solve(gap, N_EFF)
    return answer


def _plain(expression: sp.Expr) -> str:
    """An expression on one line as a reader writes it, for the cell of a table.

    >>> _plain(BETA_P * N**-ALPHA + L_INF), _plain(1 - C1)
    ('L∞ + β_p/N^α', '1 - c₁')
    """
    names = {
        BETA_1: "β₁", BETA_P: "β_p", ALPHA: "α", L_INF: "L∞", C1: "c₁", C2: "c₂", C3: "c₃",
    }  # fmt: skip
    written = sp.sstr(expression.subs({old: sp.Symbol(new) for old, new in names.items()}))
    return written.replace("**", "^").replace("*", " ")


def fraction_checks() -> pd.DataFrame:
    """What Eqs. 10 to 13 need, each worked out by the algebra system.

    Returns
    -------
    DataFrame
        ``statement, worked out, holds``.
    """
    fraction = EQ_9 / N
    back = BETA_1 * (F * N) ** -ALPHA + L_INF
    rows: list[tuple[str, str, bool]] = []

    def add(statement: str, result: sp.Expr, wanted: sp.Expr) -> None:
        rows.append((statement, _plain(sp.simplify(result)), equal(result, wanted)))

    add("Eq. 10: f = N_eff / N is (β₁/β_p)^(1/α)", fraction, RATIO ** (1 / ALPHA))
    add("Eq. 10: f does not depend on N (its derivative is 0)", sp.diff(fraction, N), sp.Integer(0))
    add("Eq. 10: f = 1 at p = 1, where β_p = β₁", fraction.subs(BETA_P, BETA_1), sp.Integer(1))
    add(
        "Eq. 11: with f of Eq. 10 it is Eq. 7 again",
        back.subs(F, RATIO ** (1 / ALPHA)),
        BETA_P * N**-ALPHA + L_INF,
    )
    add("Eq. 12: f̂(1) = 1", EQ_12.subs(P, 1), sp.Integer(1))
    add("Eq. 12: f̂(0) = 0 for any c₁, and c₂ above 0", EQ_12.subs(P, 0), sp.Integer(0))
    add("Eq. 12: c₁ = 0 is f̂(p) = p", EQ_12.subs(C1, 0), P)
    add("Eq. 13: f̂(1) = 1", EQ_13.subs(P, 1), sp.Integer(1))
    add("Eq. 13: c₁ = 1 is f̂(p) = p", EQ_13.subs(C1, 1), P)
    add("Eq. 13: f̂(0) = 1 − c₁, so c₁ ≤ 1 keeps f̂ from falling below 0", EQ_13.subs(P, 0), 1 - C1)
    return pd.DataFrame(rows, columns=["statement", "worked out", "holds"])


def fraction_with_own_exponents() -> sp.Expr:
    """Eq. 8 where the exponent depends on the weight: the fraction is then a power of N.

    >>> elasticity = sp.simplify(N * sp.diff(sp.log(fraction_with_own_exponents()), N))
    >>> equal(elasticity, ALPHA_P / ALPHA_1 - 1)
    True
    """
    return solved_size(ALPHA_1, ALPHA_P) / N


def doubling_of_the_whole() -> _Step:
    """The whole loss at 2N over that at N: equal to ``2**-alpha`` only where L∞ is zero."""
    once, twice = (BETA_P * size**-ALPHA + L_INF for size in (N, 2 * N))
    return _Step(
        reason="the whole loss at 2N over that at N",
        expression=twice / once,
        follows=equal(twice / once, sp.Pow(2, -ALPHA)),
    )


def known_limits(cohort: str, fits: PairFits) -> dict[str, float]:
    """L∞ of each pair: the exact entropy for generated languages, else that of the joint law."""
    config = conlang_of(cohort)
    return {
        pair: irreducible_entropy(config, pair) if config is not None else joint.params["l_inf"]
        for pair, (_, joint) in fits.items()
    }


def doubling_by_weight(points: pd.DataFrame, limits: Mapping[str, float]) -> pd.DataFrame:
    """What doubling the size did to the reducible loss, at each weight by itself and at all.

    Least squares of log(loss - L∞) on log2 N give the factor of one doubling: with a slope a
    weight, and with one slope for all of them, which is what the joint law says.

    Parameters
    ----------
    points
        From `scaling.observed`.
    limits
        L∞ of each pair, such as from `known_limits`.

    Returns
    -------
    DataFrame
        ``pair, p, factor, low, high, common``; the last is the pair's factor with one slope for all
        weights. Weights with fewer than three sizes, or a loss at or below L∞, are left out.
    """
    rows = []
    for (pair, p), group in points.groupby(["pair", "p"]):
        above = group["loss"].to_numpy() - limits[str(pair)]
        if len(group) < 3 or not (above > 0).all():
            continue
        x = np.log2(group["n"].to_numpy(dtype=float))
        line = stats.linregress(x, np.log2(above))
        half = stats.t.ppf(0.975, len(group) - 2) * line.stderr
        factor, low, high = 2.0 ** np.array([line.slope, line.slope - half, line.slope + half])
        rows.append([pair, p, factor, low, high, line.slope, ((x - x.mean()) ** 2).sum()])
    names = ["pair", "p", "factor", "low", "high", "slope", "spread"]
    table = pd.DataFrame(rows, columns=names)
    # The common slope is the mean of the weights' own, each counted by the spread of its sizes.
    weighted = (table["slope"] * table["spread"]).groupby(table["pair"]).transform("sum")
    common = weighted / table.groupby("pair")["spread"].transform("sum")
    return table.assign(common=2.0**common).drop(columns=["slope", "spread"])


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


class _Comparison(NamedTuple):
    """Gradients of the example; see `compare_counting`."""

    implicit: Fraction
    explicit: Fraction
    naive: Fraction


def explicit_weights(p: Mapping[str, Any], mean_tokens: Mapping[str, Any]) -> dict[str, Any]:
    """Task weights w_i of Eq. 4 whose expected gradient equals that of sampling by `p`.

    Sampling sentences with probability p_i and summing token losses gives pair i the expected
    weight p_i times its mean target length times its mean loss per token. Explicit scalarization
    of losses per token therefore needs w_i proportional to p_i * mean_tokens_i.

    Parameters
    ----------
    p, mean_tokens
        Weight of each pair, such as `Mixture.weights`, and its mean target tokens a sentence.

    Returns
    -------
    dict
        Weights that sum to one.

    Examples
    --------
    >>> explicit_weights({"a-b": 0.5, "a-c": 0.5}, {"a-b": 30.0, "a-c": 10.0})
    {'a-b': 0.75, 'a-c': 0.25}
    """
    products = {pair: weight * mean_tokens[pair] for pair, weight in p.items()}
    total = sum(products.values())
    return {pair: product / total for pair, product in products.items()}


def compare_counting() -> _Comparison:
    """The example's expected gradient a token under sampling, and that of Eq. 4.

    The latter with the weights of `explicit_weights`, and naively with w = p.
    """
    weights = explicit_weights(EXAMPLE_WEIGHTS, mean_tokens(EXAMPLE))
    each = (explicit_gradient(EXAMPLE, w) for w in (weights, EXAMPLE_WEIGHTS))
    return _Comparison(implicit_gradient(EXAMPLE, EXAMPLE_WEIGHTS), *each)


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
