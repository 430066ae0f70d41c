"""Rows of one run are not independent: errors and intervals that come from runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import fit_fraction, fit_joint_law, fit_power_law

SIZES = np.geomspace(4e3, 1.2e5, 20)
EACH = 10


def checkpoints(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, losses and names of 20 runs with ten rows each, whose errors are nearly one."""
    rng = np.random.default_rng(seed)
    n, run = np.repeat(SIZES, EACH), np.repeat(np.arange(20), EACH)
    loss = 60 * n**-0.3 + 1.1
    noise = 0.02 * rng.standard_normal(20)[run] + 0.002 * rng.standard_normal(len(n))
    return n, loss + noise, run


def test_rows_of_one_run_are_no_further_evidence() -> None:
    """Standard errors by runs are those of one row a run; those by rows are far too small."""
    n, loss, run = checkpoints(0)
    alone = fit_power_law(n, loss)
    grouped = fit_power_law(n, loss, groups=run)
    once = fit_power_law(SIZES, loss.reshape(20, EACH).mean(1))
    assert (grouped.values == alone.values).all()
    assert grouped.stderr["alpha"] > 2.5 * alone.stderr["alpha"]
    assert grouped.stderr["alpha"] == pytest.approx(once.stderr["alpha"], rel=0.35)
    assert grouped.t_quantile > 1.05 * alone.t_quantile


def test_intervals_by_runs_cover_and_those_by_rows_do_not() -> None:
    inside = {"runs": 0, "t": 0}
    for seed in range(100):
        n, loss, run = checkpoints(seed)
        for method, fit in (
            ("runs", fit_power_law(n, loss, groups=run)),
            ("t", fit_power_law(n, loss)),
        ):
            low, high = fit.interval(draws=300)["alpha"]
            inside[method] += low <= 0.3 <= high
    assert inside["t"] < 60
    assert 89 <= inside["runs"] <= 100


def test_every_law_takes_runs() -> None:
    rng = np.random.default_rng(1)
    p, n = np.repeat([0.1, 0.3, 0.6, 1.0], 16), np.tile(np.repeat(SIZES[::3][:4], 4), 4)
    run = [f"{a}-{b:.0f}" for a, b in zip(p, n, strict=True)]
    loss = 60 * ((p + 0.4 * p * (1 - p)) * n) ** -0.3 + 1.1
    frame = pd.DataFrame({"p": p, "n": n, "run": run})
    frame["loss"] = loss + 0.01 * rng.standard_normal(16)[pd.factorize(frame["run"])[0]]
    frame["loss"] += 0.001 * rng.standard_normal(64)
    of: dict = {"n": "n", "loss": "loss"}
    for fit in (fit_joint_law, fit_fraction):
        rows, runs = fit(frame, **of), fit(frame, groups="run", **of)
        assert runs.stderr["alpha"] > 1.3 * rows.stderr["alpha"]
        assert runs.resampling == "runs"
    wide, narrow = (law.band(np.linspace(0.1, 1, 9), 2e4, draws=200) for law in (runs, rows))
    assert (wide["high"] - wide["low"]).median() > 1.3 * (narrow["high"] - narrow["low"]).median()


def test_too_few_runs_give_no_interval_and_wrong_names_are_errors() -> None:
    n, loss, _ = checkpoints(0)
    few = fit_power_law(n, loss, groups=np.arange(len(n)) % 3)
    assert few.identified and np.isnan(few.interval()["alpha"]).all()
    with pytest.raises(InputError, match="3 runs are no more than 3 parameters"):
        few.draws("runs")
    with pytest.raises(InputError, match="fit with groups="):
        fit_power_law(n, loss).draws("runs")
    with pytest.raises(InputError, match="2 names of runs for 200 rows"):
        fit_power_law(n, loss, groups=["a", "b"])
    with pytest.raises(InputError, match="all rows are of one run"):
        fit_power_law(n, loss, groups=["a"] * 200)


def test_rows_without_weight_are_counted() -> None:
    cells = [(n, p) for n in SIZES[:6] for p in (0.0, 0.5, 1.0)]
    frame = pd.DataFrame(cells, columns=["n", "p"]).assign(mixture=lambda t: t["p"].astype(str))
    frame["loss"] = (40 + 20 * (1 - frame["p"])) * frame["n"] ** -0.3 + 1
    of: dict = {"n": "n", "loss": "loss"}
    fit = fit_joint_law(frame, **of)
    assert fit.left_out == 6 and "6 zero-shot rows (p = 0) left out" in fit._repr_html_()
    whole = fit_joint_law(frame, by="mixture", **of)
    assert whole.law.keys == ("0.0", "0.5", "1.0") and whole.alpha == pytest.approx(0.3, rel=1e-6)
