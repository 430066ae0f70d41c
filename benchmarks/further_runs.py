"""Which runs to train next: the order of `recommend --next` against two plain ones.

The stored grid of two generated languages is a table of outcomes, so a run is "trained" by looking
it up. A trial starts from one seed of three sizes, each with both pairs alone and three mixtures.
It then adds runs of these sizes, of any stored mixture and seed, until their cost (parameters, as
all runs have the same text) is a share of what the start cost:

- designed: the runs that `further_runs` ranks first; the laws are fitted again at each budget;
- cheapest: the smallest size first, with random mixtures;
- random: a random size and mixture.

After each budget the best weight at `SIZE` is compared with that of the law of all stored runs. A
line of the table holds means over the trials, and their standard errors (``_se``):

- ``error``: distance between the two weights;
- ``regret``: by the law of all runs, how much higher the weighted loss is than at its best weight;
- ``width``: of the 95 % interval; ``covered``: whether it contains the weight of all runs.

    OMP_NUM_THREADS=1 python benchmarks/further_runs.py --trials 12 --out data/further_runs.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import trange

from mnmt_repro.laws import FractionFit, fit_fraction
from mnmt_repro.laws.recommendation import NEAR, further_runs
from mnmt_repro.laws.uncertainty import percentiles
from mnmt_repro.papers.effects.grids import load_rows

SIZES, MIXTURES, SIZE = (1466, 5396, 24646), (0.0, 0.1, 0.5, 0.9, 1.0), 20_000
BUDGETS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
"""Cost of the further runs, as a share of the start's."""
IMPORTANCES = (0.3, 0.5, 0.7)
"""Of the first pair."""
DRAWS = 200
GRID = np.linspace(0.1, 0.9, 641)
"""Weights of the first pair from which the best one is taken."""
CELL = ["n", "weight"]


class Laws:
    """The laws of some rows, and the best weights by them and by their refits."""

    def __init__(self, rows: pd.DataFrame, draws: int = DRAWS) -> None:
        self.fits: dict[str, FractionFit] = {
            pair: fit_fraction(group, n="n", loss="loss") for pair, group in rows.groupby("pair")
        }
        self.refits = {
            pair: law.draws("residual", draws=draws, seed=i).values
            for i, (pair, law) in enumerate(self.fits.items())
        }

    def mean_loss(self, importance: float, far: float = 1.0) -> np.ndarray:
        """At each weight of `GRID`, by the fit and by parameters so far from it to each refit."""
        losses = [
            law.law.curve(
                np.vstack([law.values, law.values + far * (self.refits[pair] - law.values)]),
                law.law.rows_at(share, SIZE),
            )
            for (pair, law), share in zip(self.fits.items(), (GRID, 1 - GRID), strict=True)
        ]
        return importance * losses[0] + (1 - importance) * losses[1]

    def best(self, importance: float, far: float = 1.0) -> np.ndarray:
        """Best weights by the same."""
        return GRID[self.mean_loss(importance, far).argmin(1)]


def added(
    pool: pd.DataFrame, laws: Laws, importance: float, budget: float, policy: str
) -> list[str]:
    """Names of the runs of a shuffled pool that a policy adds for so much cost."""
    picked: list[str] = []
    while True:
        left = pool.drop(index=picked)
        left = left[left["n"] <= budget - pool.loc[picked, "n"].sum()]
        cells = left.drop_duplicates(CELL)
        if left.empty:
            return picked
        if policy != "designed":
            order = cells.sample(frac=1, random_state=len(picked))
            picked += [*(order if policy == "random" else left.sort_values("n")).index[:1]]
            continue
        runs = [(float(n), (p, round(1 - p, 6))) for n, p in cells[CELL].itertuples(index=False)]
        weights = laws.best(importance)[1:], laws.best(importance, NEAR)[1:]
        for run in further_runs(laws.fits, laws.refits, *weights, runs):
            same = left[(left["n"] == run.n) & (left["weight"] == [*run.weights.values()][0])]
            same = same.drop(index=[name for name in picked if name in same.index])
            if same.empty or pool.loc[picked, "n"].sum() + run.n > budget:
                break  # rank the others anew
            picked += [same.index[0]]


def trial(rows: pd.DataFrame, whole: Laws, seed: int) -> Iterator[dict[str, object]]:
    """One start, and what each policy makes of it at each budget and importance."""
    runs = rows.drop_duplicates("run_id").set_index("run_id").sample(frac=1, random_state=seed)
    runs = runs[runs["n"].isin(SIZES)]
    start = runs[runs["weight"].isin(MIXTURES)].drop_duplicates(CELL)
    first = Laws(rows[rows["run_id"].isin(start.index)])
    for policy in ("designed", "cheapest", "random"):
        trained: dict[float, list[str]] = dict.fromkeys(IMPORTANCES, [*start.index])
        laws = dict.fromkeys(IMPORTANCES, first)
        for budget in BUDGETS:
            for importance in IMPORTANCES if budget else ():
                if policy != "designed" and importance != IMPORTANCES[0]:
                    trained[importance] = trained[IMPORTANCES[0]]  # whatever the importance
                    laws[importance] = laws[IMPORTANCES[0]]
                    continue
                have = trained[importance]
                free = (1 + budget) * start["n"].sum() - runs.loc[have, "n"].sum()
                pool = runs.drop(index=have)
                have = have + added(pool, laws[importance], importance, free, policy)
                trained[importance] = have
                laws[importance] = Laws(rows[rows["run_id"].isin(have)])
            for importance in IMPORTANCES:
                best = laws[importance].best(importance)
                true = whole.mean_loss(importance)[0]
                low, high = percentiles(best[1:])
                yield {
                    "policy": policy,
                    "budget": budget,
                    "importance": importance,
                    "runs": len(trained[importance]),
                    "error": abs(best[0] - GRID[true.argmin()]),
                    "regret": np.interp(best[0], GRID, true) / true.min() - 1,
                    "width": high - low,
                    "covered": low <= GRID[true.argmin()] <= high,
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = load_rows(tier="steady", cohort="conlang-steady", test_set="indomain", domain="all")
    rows = rows.rename(columns={"n_non_embedding": "n", "cross_entropy": "loss"}).query("p > 0")
    first = rows["pair"] == rows["pair"].min()
    rows["weight"] = rows["p"].where(first, 1 - rows["p"]).round(6)
    whole = Laws(rows, draws=1)
    lines = [
        {"trial": seed} | line
        for seed in trange(options.trials, disable=None)
        for line in trial(rows, whole, seed)
    ]
    raw = pd.DataFrame(lines).astype({"covered": float})
    values = ["runs", "error", "regret", "width", "covered"]
    trials = raw.groupby(["policy", "budget", "trial"])[values].mean()  # of the importances
    by = trials.groupby(["policy", "budget"])
    table = by.mean().join(by[["error", "regret", "width"]].sem().add_suffix("_se"))
    print(table.to_string(float_format="{:.4g}".format))
    if options.out:
        table.assign(trials=options.trials).round(5).to_csv(options.out)


if __name__ == "__main__":
    main()
