"""How often `recommend` answers for the design it asks for, and how good its answers are.

Each table has two pairs of known laws (Eqs. 11 and 12), each alone and in three mixtures, at three
sizes with two seeds: thirty models. The laws, the importance of the pairs and the size asked for
(up to twice the largest) differ between tables. A line for each level of noise shows:

- the share of tables with a recommendation;
- their regret: how much higher the weighted loss is than at the best trained-range mixture, beside
  that of equal weights, and the median distance between the weights;
- how often the 95 % intervals contain the best weight and the losses of the recommended mixture.

    OMP_NUM_THREADS=1 python benchmarks/recommended.py --tables 400 --out data/recommended.csv
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import trange

from mnmt_repro.laws import fit_fraction, recommend_weights
from mnmt_repro.laws.fraction import fraction_of
from mnmt_repro.laws.recommendation import Recommendation

SIZES, MIXTURES, SEEDS = (5e3, 2e4, 8e4), (0.2, 0.5, 0.8), 2
PAIRS = ("first", "second")
LEVELS = (0.01, 0.03)
GRID = np.linspace(MIXTURES[0], MIXTURES[-1], 1201)
"""Weights of the first pair between those that were trained."""
STEP = 0.00125
"""Half the step of the weights that an interval is made of."""


@dataclass(frozen=True)
class Truth:
    """Eq. 11 with the fraction of Eq. 12."""

    alpha: float
    beta: float
    l_inf: float
    c: np.ndarray

    @classmethod
    def draw(cls, random: np.random.Generator) -> Truth:
        """A law whose fraction nowhere exceeds 1."""
        while True:
            c = random.uniform((0.2, 0.3, 0.5), (1.4, 0.7, 2.5))
            if fraction_of(np.linspace(0.01, 1, 100), c).max() <= 1:
                break
        alpha, reducible, l_inf = random.uniform((0.2, 0.6, 0.2), (0.4, 1.5, 1.5))
        return cls(alpha=alpha, beta=reducible * SIZES[1] ** alpha, l_inf=l_inf, c=c)

    def loss(self, p: np.ndarray | float, n: np.ndarray | float) -> np.ndarray:
        f = fraction_of(np.atleast_1d(p), self.c)
        return np.asarray(self.beta * (f * n) ** -self.alpha + self.l_inf)


def measured(
    truths: dict[str, Truth], runs: pd.DataFrame, noise: float, random: np.random.Generator
) -> pd.DataFrame:
    """Losses of runs ``n`` with a column of weights a pair, as a table ``pair, p, n, loss``."""
    rows = runs.melt("n", var_name="pair", value_name="p").query("p > 0")
    loss = [truths[row.pair].loss(row.p, row.n)[0] for row in rows.itertuples()]
    return rows.assign(loss=np.array(loss) * (1 + noise * random.standard_normal(len(rows))))


def answer(table: pd.DataFrame, n: float, importance: dict[str, float]) -> Recommendation | None:
    """What `recommend` answers; None where a law is not identified."""
    laws = {pair: fit_fraction(rows, n="n", loss="loss") for pair, rows in table.groupby("pair")}
    if not all(law.identified for law in laws.values()):
        return None
    return recommend_weights(laws, n, importance)


def trial(seed: int, noise: float) -> dict[str, float]:
    """One table: the columns that `main` averages."""
    random = np.random.default_rng(seed)
    truths = {pair: Truth.draw(random) for pair in PAIRS}
    first = random.uniform(0.3, 0.7)
    importance = dict(zip(PAIRS, (first, 1 - first), strict=True))
    n = random.uniform(SIZES[1], 2 * SIZES[-1])
    design = [(n, p, 1 - p) for n in SIZES for p in (0.0, *MIXTURES, 1.0) for _ in range(SEEDS)]
    table = measured(truths, pd.DataFrame(design, columns=["n", *PAIRS]), noise, random)
    best = answer(table, n, importance)
    if best is None or best.refusal:
        return {"answered": False}
    mean = first * truths["first"].loss(GRID, n) + (1 - first) * truths["second"].loss(1 - GRID, n)
    true, weight = GRID[mean.argmin()], best.weights["first"]
    low, high = best.table.p_low["first"] - STEP, best.table.p_high["first"] + STEP
    covered = [
        row.low <= truths[row.Index].loss(row.p, n)[0] <= row.high
        for row in best.table.itertuples()
    ]
    return {
        "answered": True,
        "regret": np.interp(weight, GRID, mean) / mean.min() - 1,
        "of equal weights": np.interp(0.5, GRID, mean) / mean.min() - 1,
        "distance": abs(weight - true),
        "weight covered": low <= true <= high,
        "losses covered": np.mean(covered),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for noise in LEVELS:
        trials = [trial(seed, noise) for seed in trange(options.tables, disable=None)]
        table = pd.DataFrame(trials).astype(float)
        of = {"noise": noise, "tables": options.tables}
        lines.append(of | table.mean().to_dict() | {"distance": table["distance"].median()})
    table = pd.DataFrame(lines)
    print(table.T.to_string(float_format="{:.3g}".format))
    if options.out:
        table.round(5).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
