"""Losses of mixtures that a law has not seen: `fit_mixture_law` beside two peers.

The peers are the exponential law of Ye et al. (2025), ``c + k * exp(sum of t * p)`` at each size,
and the mean loss of the other mixtures at the size, which is all that a multiplier for each mixture
can say of another one. All errors are relative, and all laws least squares of them.

- SLDBench, domain mixtures: fitted to its training rows, scored on its test rows by its own
  measure, the mean over domains of R² with the test rows of all sizes together.
- The Pile, SlimPajama, RedPajama, translation: every mixture predicted from all others.

RedPajama's weights have no names, so each test set takes as its own the weight worth most to it.
Needs the original table ``redpajama_mixtures.csv`` in a folder, and some minutes.

    python benchmarks/mixture_law.py EXTERNAL --out data/benchmarks/mixture_law.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stored import keep

from mnmt_repro.laws import LawFit, MixtureLaw, fit_mixture_law, leave_one_mixture_out
from mnmt_repro.laws.minimise import Curve, minimise
from mnmt_repro.repository import ROOT

FOLDER = ROOT / "data" / "external"
PUBLISHED = {
    "human": 0.671,
    "best": 0.998807,
    "best_mean": 0.996258,
}
"""R² of the benchmark's leaderboard (Lin et al., arXiv 2507.21184): the law of its human experts,
and the best of the searches, in its best run and as the mean of its five runs."""
REDPAJAMA = ("ArXiv", "Books3", "Github", "Pile-CC", "StackExchange", "Wikipedia_en")
"""Test sets that have a counterpart among RedPajama's parts."""


@dataclass(frozen=True)
class Exponential(Curve):
    """``c + exp(log k + sum of t * p)``; the last weight follows from the others."""

    p: np.ndarray

    def evaluate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        design = np.column_stack([np.ones(len(self.p)), self.p[:, :-1]])
        value = np.exp(np.minimum(theta[:, 1:] @ design.T, 50.0))
        one = np.ones((*value.shape, 1))
        return value + theta[:, :1], np.concatenate([one, value[:, :, None] * design], axis=2)


def exponential(p: np.ndarray, n: np.ndarray, loss: np.ndarray, at: np.ndarray, size: np.ndarray):
    """Predictions of the exponential law, fitted at each size."""
    predicted = np.full(len(at), np.nan)
    for each in np.unique(size):
        rows, y = p[n == each], loss[n == each]
        design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
        constants = y.min() * np.array([0.2, 0.5, 0.8, 0.95])
        start = [[c, *np.linalg.lstsq(design, np.log(y - c), rcond=None)[0]] for c in constants]
        many = np.broadcast_to(y, (len(start), len(y)))
        found = minimise(Exponential(rows), many, np.array(start), y[None] ** -2.0)
        best = found.theta[found.objective.argmin()][None]
        predicted[size == each] = Exponential(at[size == each]).evaluate(best)[0][0]
    return predicted


def sldbench() -> dict[str, Any]:
    """R² on the test rows."""
    table = pd.read_csv(FOLDER / "pile_groups.csv")
    pairs = list(table.filter(regex="^weight_"))
    train, test = (table[table["split"] == split] for split in ("train", "test"))
    n, size = train["model_size"].to_numpy(float), test["model_size"].to_numpy(float)
    r2: dict[str, list[float]] = {"law": [], "exponential": [], "mean": []}
    parameters = 0
    for own in pairs:
        column = f"{own.removeprefix('weight_')}_loss"
        loss, truth = train[column].to_numpy(), test[column].to_numpy()
        fit = fit_mixture_law(train, own, pairs, n="model_size", loss=column, errors="relative")
        parameters += len(fit.names)
        predictions = {
            "law": fit.predict(test, size),
            "exponential": exponential(
                train[pairs].to_numpy(), n, loss, test[pairs].to_numpy(), size
            ),
            "mean": pd.Series(loss).groupby(n).mean()[size].to_numpy(),
        }
        for name, each in predictions.items():
            r2[name].append(1 - ((truth - each) ** 2).mean() / truth.var())
    scores = {name: float(np.mean(each)) for name, each in r2.items()}
    return scores | {"parameters": parameters, "published": PUBLISHED}


def corpora(external: Path) -> Iterator[tuple[str, str, pd.DataFrame, list[str], list[str]]]:
    """Corpus, domain, its rows with columns n and loss, all weights, and those that may be own."""
    for corpus, name in (("The Pile", "pile"), ("SlimPajama", "slimpajama")):
        table = pd.read_csv(FOLDER / f"{name}.csv").query("cohort == @name")
        table = table.rename(columns=lambda column: column.removeprefix("weight_"))
        pairs = [column.removesuffix("_loss") for column in table.filter(regex="_loss$")]
        for pair in pairs:
            rows = table.rename(columns={"model_size": "n", f"{pair}_loss": "loss"})
            yield corpus, pair, rows[[*pairs, "n", "loss"]], pairs, [pair]
    raw = pd.read_csv(external / "redpajama_mixtures.csv").query("model_millions < 1000")
    sizes = raw.groupby("mixture")["model_millions"].nunique()
    raw = raw[raw["mixture"].isin(sizes.index[sizes == 4])].assign(n=1e6 * raw["model_millions"])
    pairs = [f"w{k}" for k in range(7)]
    for test_set in REDPAJAMA:
        rows = raw.loc[raw["test_set"] == test_set, [*pairs, "n", "loss"]]
        yield "RedPajama", test_set, rows, pairs, pairs
    table = pd.read_csv(FOLDER / "translation_mixtures.csv").dropna()
    table = table.rename(columns=lambda column: column.removeprefix("weight_"))
    pairs = ["fra", "deu", "zho"]
    for pair in pairs:
        rows = table.assign(n=1.0, loss=table[f"loss_{pair}"])
        yield "Translation from English", pair, rows[[*pairs, "n", "loss"]], pairs, [pair]


def error(predicted: np.ndarray, loss: np.ndarray) -> float:
    """Root mean square of relative errors."""
    return float(np.sqrt(np.mean((predicted / loss - 1) ** 2)))


def worth_of(domain: str, fit: LawFit[MixtureLaw]) -> pd.DataFrame:
    """What text of each other domain is worth, with 95 % intervals by mixtures."""
    ends = pd.DataFrame(fit.interval())
    if fit.spare > 0:
        ends = fit.draws("runs", draws=1_000).quantile([0.025, 0.975])
    rows = [(domain, other, fit.params[f"t[{other}]"], *ends[f"t[{other}]"])
            for other in fit.law.pairs[1:]]  # fmt: skip
    return pd.DataFrame(rows, columns=["pair", "other", "worth", "low", "high"])


def left_out(external: Path) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Errors on mixtures left out, and what other domains are worth, of each domain."""
    for corpus, domain, rows, pairs, owners in corpora(external):
        rows[pairs] = rows[pairs].div(rows[pairs].sum(axis=1), axis=0)  # rounded by the origin
        fits = [
            fit_mixture_law(rows, own, pairs, n="n", loss="loss", errors="relative")
            for own in owners
        ]
        fits = [fit for fit in fits if fit.identified]
        least = min(fit.rss for fit in fits)  # another unit of q is the same law, but for its box
        close = [fit for fit in fits if fit.rss <= 1.001 * least]
        fit = min(close, key=lambda fit: max(fit.values[2 : len(pairs) + 1]))
        table = leave_one_mixture_out(fit)
        mixture, loss = table["mixture"].to_numpy(), table["loss"].to_numpy()
        p, n, peer = rows[pairs].to_numpy(), table["n"].to_numpy(), np.empty(len(loss))
        for name in set(mixture):
            out = mixture == name
            peer[out] = exponential(p[~out], n[~out], loss[~out], p[out], n[out])
        yield {
            "corpus": corpus, "domain": domain, "mixtures": len(set(mixture)),
            "sizes": len(set(n)), "law": error(table["predicted"].to_numpy(), loss),
            "exponential": error(peer, loss), "mean": error(table["naive"].to_numpy(), loss),
        }, worth_of(domain, fit).assign(corpus=corpus)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("external", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    scores = sldbench()
    print(scores, flush=True)
    rows, worth = [], []
    for row, table in left_out(options.external):
        print(row, table.round(3).to_string(), sep="\n", flush=True)
        rows.append(row)
        if row["corpus"] != "RedPajama":
            worth += table.round(4).to_dict("records")
    if options.out:
        keep(options.out, pd.DataFrame(rows), sldbench=scores, transfers=worth)


if __name__ == "__main__":
    main()
