"""Bootstrap of a power law: one batched call against loops over scipy and lmfit on the same fits.

Run: ``python benchmarks/laws_bootstrap.py [--draws 10000] [--out FILE]``. The strongest loop starts
each fit of `curve_fit` at the optimum of the undisturbed losses, with the analytic gradient. Loops
are timed on a part of the draws (``--loop``) and scaled up; lmfit is included where it is
installed. Prints microseconds a fit, the ratio to ours, the share of fits that ended within 0.1 %
of the least sum of squares that any method found, and the largest difference of the exponent among
fits where both did.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import curve_fit
from stored import keep

from mnmt_repro.laws import fit_power_law

SIZES = np.array([4e3, 7e3, 12e3, 20e3, 33e3, 55e3, 85e3, 120e3])
LOSS = 60 * SIZES**-0.3 + 1.1


def law(x: np.ndarray, beta: float, alpha: float, l_inf: float) -> np.ndarray:
    return beta * x**-alpha + l_inf


def scipy_raw(loss: np.ndarray) -> np.ndarray:
    """Raw sizes and a constant start, as is often done."""
    return curve_fit(law, SIZES, loss, p0=[1.0, 0.5, 1.0], maxfev=5000)[0]


def scipy_scaled(loss: np.ndarray) -> np.ndarray:
    """Scaled sizes, a start from the data, and the same bound as ours."""
    scale = np.exp(np.log(SIZES).mean())
    start = [(loss[0] - loss[-1]), 0.5, 0.8 * loss.min()]
    box = ([0, 1e-3, 0], [np.inf, 10, np.inf])
    beta, alpha, l_inf = curve_fit(law, SIZES / scale, loss, p0=start, bounds=box)[0]
    return np.array([beta * scale**alpha, alpha, l_inf])


def scipy_started() -> Callable[[np.ndarray], np.ndarray]:
    """Scaled sizes, a start at the optimum of the undisturbed losses, the analytic gradient."""
    scale = np.exp(np.log(SIZES).mean())
    x = SIZES / scale

    def gradient(x: np.ndarray, beta: float, alpha: float, l_inf: float) -> np.ndarray:
        power = x**-alpha
        return np.stack([power, -beta * power * np.log(x), np.ones_like(x)], axis=1)

    start = curve_fit(law, x, LOSS, p0=[1.0, 0.3, 1.0], jac=gradient)[0]

    def fit(loss: np.ndarray) -> np.ndarray:
        beta, alpha, l_inf = curve_fit(law, x, loss, p0=start, jac=gradient)[0]
        return np.array([beta * scale**alpha, alpha, l_inf])

    return fit


def lmfit_scaled() -> Callable[[np.ndarray], np.ndarray]:
    """Return the same fit through lmfit's `Model`."""
    from lmfit import Model

    model, scale = Model(law), np.exp(np.log(SIZES).mean())

    def fit(loss: np.ndarray) -> np.ndarray:
        params = model.make_params(
            beta={"value": loss[0] - loss[-1], "min": 0},
            alpha={"value": 0.5, "min": 1e-3, "max": 10},
            l_inf={"value": 0.8 * loss.min(), "min": 0},
        )
        best = model.fit(loss, params, x=SIZES / scale).best_values
        return np.array([best["beta"] * scale ** best["alpha"], best["alpha"], best["l_inf"]])

    return fit


def rss_of(values: np.ndarray, losses: np.ndarray) -> np.ndarray:
    beta, alpha, l_inf = values.T[:, :, None]
    return ((beta * SIZES**-alpha + l_inf - losses) ** 2).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--loop", type=int, default=500, help="draws that the loops fit")
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--out", type=Path, help="such as data/benchmarks/laws_bootstrap.json")
    options = parser.parse_args()

    fit = fit_power_law(SIZES, LOSS)
    rng = np.random.default_rng(0)
    losses = LOSS * (1 + options.noise * rng.standard_normal((options.draws, len(SIZES))))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        values = fit.refit(losses)
        seconds.append(time.perf_counter() - start)
    ours = float(np.median(seconds)) / options.draws
    part = losses[: options.loop]
    results = {"mnmt_repro, one call": (ours, values[: options.loop][:, [2, 0, 1]])}
    peers = {"scipy curve_fit, raw sizes": scipy_raw, "scipy curve_fit, scaled": scipy_scaled}
    peers["scipy curve_fit, started well, gradient"] = scipy_started()
    try:
        peers["lmfit, scaled"] = lmfit_scaled()
    except ImportError:
        print("lmfit is not installed: left out")
    for name, peer in peers.items():
        found, start = [], time.perf_counter()
        for loss in part:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(peer(loss))
            except RuntimeError:  # curve_fit gave up
                found.append(np.full(3, np.nan))
        results[name] = ((time.perf_counter() - start) / len(part), np.array(found))

    rss = {name: rss_of(values, part) for name, (_, values) in results.items()}
    rss = {name: np.where(results[name][1][:, 2] >= -1e-9, r, np.nan) for name, r in rss.items()}
    least = np.nanmin(np.stack(list(rss.values())), axis=0)
    table = []
    print(f"{'method':40} {'us a fit':>10} {'ratio':>8} {'at optimum':>11} {'max d alpha':>12}")
    for name, (cost, found) in results.items():
        good = rss[name] <= least * 1.001
        apart = np.abs(found[good, 1] - results["mnmt_repro, one call"][1][good, 1])
        widest = f"{apart.max():12.1e}" if good.any() else f"{'-':>12}"
        table.append({"method": name, "us": cost * 1e6, "ratio": cost / ours, "best": good.mean()})
        print(f"{name:40} {cost * 1e6:10.1f} {cost / ours:8.1f} {good.mean():11.1%} {widest}")
    if options.out:
        keep(options.out, pd.DataFrame(table), draws=options.draws)


if __name__ == "__main__":
    main()
