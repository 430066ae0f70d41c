"""Fit published data again: our fitter's answers beside the published ones.

Reads the tables of `lawdata`, which are not part of this repository, and writes only the results of
fits. The page book/methods/published-fits.ipynb reads them.

    python benchmarks/published_fits.py LAWDATA --out data/external/published_fits.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mnmt_repro.laws import fit_additive_law, row_bootstrap
from mnmt_repro.laws.minimise import Curve, huber, minimise

Result = TypeVar("Result")
ROBUST = "Chinchilla, Huber's loss on log loss"
"""Optimum and bootstrap errors (4,000 resamples): epoch-research/analyzing-chinchilla @ 9225883."""
OPTIMUM = {"A": 477.84, "B": 2143.86, "E": 1.81724, "alpha": 0.347313, "beta": 0.367183}
OBJECTIVE = 0.00101827403
ERRORS = {"A": 124.5, "B": 1293.3, "E": 0.02566, "alpha": 0.01540, "beta": 0.02060}
ROUNDED = {"A": 0.05, "B": 1.0, "E": 1e-4, "alpha": 2e-5, "beta": 2e-5}
"""How far the published optimum is from converged: its search stops a little before."""
SQUARES = {
    "Chinchilla, squares of the loss": (
        False, {"E": 1.9051, "A": 4.0005, "B": 1.0509, "alpha": 0.3511, "beta": 0.4587}, 0.062414,
    ),
    "Chinchilla, squares of the log loss": (
        True, {"E": 1.8926, "A": 4.0146, "B": 1.0571, "alpha": 0.3522, "beta": 0.4430}, None,
    ),
}  # fmt: skip
"""Open-Athena/scaling-law-analysis @ 3e0656e, in millions of parameters and billions of tokens."""
MIXTURES = "Two-domain mixtures, exponential law"
"""yegcjs/mixinglaws @ 8ad3e12; the formula is not in this package, the minimiser is."""


def timed(function: Callable[[], Result]) -> tuple[Result, float]:
    """Result and seconds of a call."""
    start = perf_counter()
    return function(), perf_counter() - start


def row(fit: str, quantity: str, published: float, ours: float, tolerance: float, seconds: float):
    """One line of the table."""
    return {
        "fit": fit,
        "quantity": quantity,
        "published": published,
        "ours": ours,
        "tolerance": tolerance,
        "seconds": seconds,
    }


def robust(folder: Path) -> Iterator[dict[str, Any]]:
    runs = pd.read_csv(folder / "chinchilla_240plus5.csv")
    rows = runs[runs["loss"] < runs["loss"].nlargest(5).min()]
    fit, seconds = timed(
        lambda: fit_additive_law(
            rows["N"], rows["D"], rows["loss"], huber_delta=1e-3, log_loss=True
        )
    )
    for name, value in OPTIMUM.items():
        yield row(ROBUST, name, value, fit.params[name], ROUNDED[name], seconds)
    objective = float(huber(np.log(fit.fitted() / fit.loss), 1e-3)[0].sum())
    yield row(ROBUST, "objective", OBJECTIVE, objective, 2e-11, seconds)
    draws, seconds = timed(lambda: row_bootstrap(fit, draws=4000))
    for name, value in zip(fit.names, draws.std(0, ddof=1), strict=True):
        error = ERRORS[name]
        yield row(ROBUST, f"standard error of {name}", error, value, 0.1 * error, seconds)


def squares(folder: Path) -> Iterator[dict[str, Any]]:
    runs = pd.read_csv(folder / "chinchilla_240plus5.csv")
    rows = runs[runs["C"] < 1e21]
    rows = rows.drop(rows["loss"].nlargest(5).index)
    n, d = rows["N"] / 1e6, rows["D"] / 1e9
    for name, (log_loss, published, objective) in SQUARES.items():
        fit, seconds = timed(
            lambda log=log_loss: fit_additive_law(n, d, rows["loss"], log_loss=log)
        )
        for parameter, value in published.items():
            yield row(name, parameter, value, fit.params[parameter], 1e-4, seconds)
        if objective is not None:
            yield row(name, "objective", objective, fit.rss, 1e-6, seconds)


class Exponential(Curve):
    """``c + exp(k p + b)`` at a given c, theta = (k, b)."""

    def __init__(self, p: np.ndarray, c: float) -> None:
        self.p, self.c = p, c

    def evaluate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.exp(theta[:, :1] * self.p + theta[:, 1:])
        return value + self.c, np.stack([value * self.p, value], axis=2)


def mixtures(folder: Path) -> Iterator[dict[str, Any]]:
    runs = pd.read_csv(folder / "two_domain_mixing.csv")
    for line in pd.read_csv(folder / "two_domain_mixing_published.csv").itertuples():
        rows = runs[
            (runs["size"] == line.size) & (runs["domain"] == line.domain)
            & (runs["step"] == line.step)
        ]  # fmt: skip
        own = 0 if line.domain == "Github" else 1
        p = rows["ratio"].str.split("-").str[own].astype(float).to_numpy()
        loss = rows["loss"].to_numpy()

        def fit(p=p, loss=loss):
            steps = np.linspace(0, loss.min(), 1000)[:-1]
            c = max(steps, key=lambda c: abs(np.corrcoef(p, np.log(loss - c))[0, 1]))
            start = np.polyfit(p, np.log(loss - c), 1)[None]
            return minimise(
                Exponential(p, c), loss[None], start, np.ones((1, len(p))), delta=0.02
            ).theta[0]

        theta, seconds = timed(fit)
        where = f"{line.size}, {line.domain}, {line.step:,} steps"
        for name, value, ours in zip("kb", (line.k, line.b), theta, strict=True):
            yield row(MIXTURES, f"{name}, {where}", value, float(ours), 1e-3, seconds)


def table(folder: Path) -> pd.DataFrame:
    """Every published number with ours: ``fit, quantity, published, ours, tolerance, seconds``."""
    parts = (robust, squares, mixtures)
    return pd.DataFrame([line for part in parts for line in part(folder)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lawdata", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = table(options.lawdata)
    print(found.to_string(index=False))
    if options.out:
        found.to_csv(options.out, index=False, float_format="%.10g")


if __name__ == "__main__":
    main()
