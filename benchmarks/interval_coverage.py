"""Coverage of the default intervals: how often they contain the truth in simulated data.

For each law, losses are drawn around a known law, away from a bound and at one (an irreducible loss
of zero), with noise of one size and with noise in proportion to the loss. In the laws `runs` (20
runs) and `few_runs` (8), the rows of a run share their noise. Each data set is fitted, and the
default 95 % interval of each parameter is compared with the truth; of the joint law, also that of
each effective fraction. A row is written for each law, world, noise and parameter: the share of
intervals that contain the truth.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py --out data/coverage.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from mnmt_repro.laws import (
    JointLaw,
    effective_fraction,
    fit_additive_law,
    fit_bivariate_law,
    fit_fraction,
    fit_joint_law,
    fit_power_law,
)
from mnmt_repro.laws.checks import Errors
from mnmt_repro.laws.fit_result import LawFit

SIZES = np.geomspace(2e3, 4e4, 8)
WEIGHTS = (0.05, 0.3, 0.5, 0.7, 1.0)
ALPHA, BETA, NOISE = 0.35, 30.0, 0.02
WORLDS = {"away": 1.0, "bound": 0.0}
"""Irreducible loss of each world."""
REFITS = 400
RUNS = {"runs": 20, "few_runs": 8}
"""How many runs have `EACH` rows that share their noise, by law."""
EACH = 5
WITHIN = 0.2
"""Noise of a row within its run, as a share of the noise that the run's rows have in common."""


def fraction(p: np.ndarray) -> np.ndarray:
    """Eq. 12 with the coefficients 1, 0.5 and 1.5."""
    return np.asarray(p + p**0.5 * (1 - p) ** 1.5)


def linear(p: np.ndarray) -> np.ndarray:
    """Eq. 13 with the coefficient 0.9."""
    return np.asarray(0.9 * (p - 1) + 1)


def power(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    truth = BETA * SIZES**-ALPHA + l_inf
    errors: Errors = "relative" if relative else "absolute"
    return truth, lambda y: fit_power_law(SIZES, y, errors=errors)


def joint(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    return _grid(l_inf, relative, fit_joint_law, {})


def eq12(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    return _grid(l_inf, relative, fit_fraction, {"form": "eq12"})


def eq13(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    return _grid(l_inf, relative, fit_fraction, {"form": "eq13"}, linear)


def runs(
    l_inf: float, relative: bool, many: int = RUNS["runs"]
) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    n, names = np.repeat(np.geomspace(2e3, 4e4, many), EACH), np.repeat(np.arange(many), EACH)
    errors: Errors = "relative" if relative else "absolute"
    return BETA * n**-ALPHA + l_inf, lambda y: fit_power_law(n, y, errors=errors, groups=names)


def few_runs(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    return runs(l_inf, relative, RUNS["few_runs"])


def bivariate(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    e, d = (axis.ravel() for axis in np.meshgrid(SIZES, SIZES))
    return l_inf + 300 * e**-0.3 * d**-0.25, lambda y: fit_bivariate_law(e, d, y)


def _grid(
    l_inf: float,
    relative: bool,
    fit: Callable[..., LawFit],
    more: dict[str, Any],
    fraction: Callable[[np.ndarray], np.ndarray] = fraction,
) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    rows = pd.DataFrame([(n, p) for p in WEIGHTS for n in SIZES], columns=["n", "p"])
    p, n = rows["p"].to_numpy(), rows["n"].to_numpy()
    truth = BETA * (fraction(p) * n) ** -ALPHA + l_inf
    options = {"n": "n", "loss": "loss", "errors": "relative" if relative else "absolute", **more}
    return truth, lambda y: fit(rows.assign(loss=y), **options)


def additive(l_inf: float, relative: bool) -> tuple[np.ndarray, Callable[[np.ndarray], LawFit]]:
    n, d = (axis.ravel() for axis in np.meshgrid(SIZES, np.geomspace(1e5, 1e7, 6)))
    truth = l_inf + BETA * n**-ALPHA + 200 * d**-0.4
    return truth, lambda y: fit_additive_law(n, d, y, log_loss=relative)


LAWS = {
    "power": power,
    "joint": joint,
    "eq12": eq12,
    "eq13": eq13,
    "bivariate": bivariate,
    "additive": additive,
    "runs": runs,
    "few_runs": few_runs,
}
CELLS = [
    (law, world, errors)
    for law in LAWS
    for world in WORLDS
    for errors in ("absolute", "relative")
    if law != "bivariate" or errors == "absolute"  # its fits have one kind
]


def truths(law: str, l_inf: float) -> dict[str, float]:
    """The true value of each parameter, and of the joint law's effective fractions."""
    if law == "additive":
        return {"E": l_inf, "A": BETA, "B": 200.0, "alpha": ALPHA, "beta": 0.4}
    if law == "bivariate":
        return {"alpha_e": 0.3, "alpha_d": 0.25, "l_inf": l_inf, "beta": 300.0}
    found = {"alpha": ALPHA, "l_inf": l_inf, "beta": BETA}
    if law == "joint":
        found = {"alpha": ALPHA, "l_inf": l_inf, "beta[1]": BETA}
        return found | {f"f({p:g})": float(fraction(np.array(p))) for p in WEIGHTS[:-1]}
    if law == "eq13":
        return found | {"c1": 0.9}
    if law == "eq12":
        return found | {"c1": 1.0, "c2": 0.5, "c3": 1.5}
    return found


def coverage(law: str, world: str, errors: str, draws: int, seed: int = 0) -> pd.DataFrame:
    """Share of default 95 % intervals that contain the truth.

    Returns
    -------
    DataFrame
        ``law, world, errors, parameter, coverage, draws``; `draws` are those that identify the law.
    """
    relative = errors == "relative"
    truth, fit = LAWS[law](WORLDS[world], relative)
    random = np.random.default_rng(seed)
    hits: dict[str, list[bool]] = {}
    for _ in range(draws):
        scale = truth if relative else truth.mean()
        noise = random.standard_normal(len(truth))
        if law in RUNS:
            noise = np.repeat(random.standard_normal(RUNS[law]), EACH) + WITHIN * noise
        found = fit(truth + NOISE * scale * noise)
        if not found.identified:
            continue
        interval = found.interval(draws=REFITS)
        if isinstance(found.law, JointLaw):
            f = effective_fraction(found, draws=REFITS)
            ends = zip(f["f_low"], f["f_high"], strict=True)
            interval |= dict(zip((f"f({p:g})" for p in f["p"]), ends, strict=True))
        for name, value in truths(law, WORLDS[world]).items():
            if name in interval:
                low, high = interval[name]
                hits.setdefault(name, []).append(low <= value + 1e-9 and value <= high + 1e-9)
    rows = [(law, world, errors, name, np.mean(hit), len(hit)) for name, hit in hits.items()]
    columns = ["law", "world", "errors", "parameter", "coverage", "draws"]
    return pd.DataFrame(rows, columns=columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--laws", nargs="*", default=list(LAWS), choices=LAWS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells = [cell for cell in CELLS if cell[0] in options.laws]
    table = pd.concat([coverage(*cell, options.draws) for cell in tqdm(cells)], ignore_index=True)
    print(table.to_string(index=False, float_format=lambda x: f"{x:.3f}"))
    if options.out:
        table.round(4).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
