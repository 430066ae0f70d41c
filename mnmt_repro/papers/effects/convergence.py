"""Convergence correction on and off: Appendix G on our runs.

The paper fits a power law to the learning curves of its two largest models at p of at most 0.05 and
reads them at 2.5M steps. Here the same is done to the same cells of our grid at the same multiple
of the budget. `backtest` and `against_longer` ask how far such readings can be trusted: what they
would have said of known losses. Those are the ends of finished curves, predicted from their
beginnings, and the ends of longer runs. The paper shows neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro import laws
from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.laws.checks import Array
from mnmt_repro.laws.convergence import PAPER_MULTIPLE, SKIP
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.cells import Cells, mean_losses
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.papers.effects.intervals import (
    NoRowsYet,
    NotIdentified,
)
from mnmt_repro.papers.effects.scaling import fit_pairs, joint_curves, observed

PAPER_STEPS, PAPER_TARGET, PAPER_BATCH = 1_000_000, 2_500_000, 500_000
"""Steps that the paper's models above 500M parameters took, steps it reads them at, tokens a step
(section 3.1 and Appendix G)."""
STATES = ("without the correction", "with the correction")


def budget_table(rows: pd.DataFrame, *, multiple: float = PAPER_MULTIPLE) -> pd.DataFrame:
    """The paper's extrapolation beside ours: the largest model of each.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort.
    multiple
        Where our curves are read, over their length.

    Returns
    -------
    DataFrame
        ``quantity, paper, ours``.
    """
    largest = rows[rows["n_non_embedding"] == rows["n_non_embedding"].max()].iloc[0]
    paper_n = parameter_counts(PAPER_A[-1].config)["non_embedding"]
    steps, tokens = int(largest["steps"]), int(largest["target_tokens"])
    paper_tokens = PAPER_STEPS * PAPER_BATCH
    table = {
        "steps trained": (PAPER_STEPS, steps),
        "steps read at": (PAPER_TARGET, round(multiple * steps)),
        "multiple of the budget": (PAPER_TARGET / PAPER_STEPS, multiple),
        "target tokens trained on": (paper_tokens, tokens),
        "target tokens of a pair at p = 0.05, about": (0.05 * paper_tokens, 0.05 * tokens),
        "non-embedding parameters": (paper_n, int(largest["n_non_embedding"])),
        "tokens a parameter, trained": (
            paper_tokens / paper_n,
            tokens / largest["n_non_embedding"],
        ),
        "tokens a parameter, read at": (
            PAPER_TARGET * PAPER_BATCH / paper_n,
            multiple * tokens / largest["n_non_embedding"],
        ),
    }
    return pd.DataFrame(
        [{"quantity": name, "paper": a, "ours": b} for name, (a, b) in table.items()]
    )


def correct(
    rows: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    multiple: float = PAPER_MULTIPLE,
    skip: float = SKIP,
) -> pd.DataFrame:
    """Rows with the declared ones corrected: p of at most 0.05 at the two largest sizes.

    Parameters
    ----------
    rows
        From `results.load`, of one cohort, test set and domain, with some declared run.
    curves
        From `results.load_curves`, of the same cohort.

    Returns
    -------
    DataFrame
        `rows` with ``cross_entropy`` corrected and ``declared, observed, corrected,
        correction_reason``; see `laws.correct_convergence`.

    Raises
    ------
    InputError
        When a declared row has no learning curve.
    """
    declared = laws.declared_runs(rows)
    found = laws.correct_convergence(rows, curves, declared, multiple=multiple, skip=skip)
    return found.assign(declared=declared)


def distances(
    cells: Cells, ratios: Array, fit: laws.JointLawFit, n: str = "n_non_embedding"
) -> tuple[Array, Array]:
    """Relative distances of cells of one pair from the law of the others, as in claim A19.

    Parameters
    ----------
    cells
        The cells that are corrected.
    ratios
        By which each is corrected, from `forecast_ratio`.
    fit
        The joint law of the pair's other cells.

    Returns
    -------
    before, after : (m,)
        Without the correction and with it; above zero where the loss is too high.
    """
    law = np.asarray(fit.predict(cells["p"], cells[n]))
    loss = cells["cross_entropy"].to_numpy()
    return loss / law - 1, loss * ratios / law - 1


def forecast_ratio(
    curves: pd.DataFrame, cell: Mapping[Any, Any], *, multiple: float, skip: float = SKIP
) -> float:
    """Loss predicted at `multiple` of the budget over the fitted loss at its end, mean of runs.

    Raises
    ------
    NoRowsYet, NotIdentified
        When the cell has no learning curve, or one that no power law fits.
    """
    mine = curves[
        (curves["pair"] == cell["pair"])
        & (curves["n_non_embedding"] == cell["n_non_embedding"])
        & (curves["p"].round(9) == cell["p"])
    ]
    what = f"{cell['pair']} at p = {cell['p']:g}, N = {cell['n_non_embedding']:,}"
    if mine.empty:
        raise NoRowsYet(f"no learning curve of {what}")
    ratios = []
    for _, run in mine.groupby("run_id"):
        read = laws.extrapolate_curve(
            run["step"], run["cross_entropy"], multiple=multiple, skip=skip
        )
        if not read.law.identified:
            raise NotIdentified(f"learning curve of {what}: {read.law.reason}")
        ratios.append(read.ratio)
    return float(np.mean(ratios))


@framed()
def corrected_cells(
    rows: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    multiple: float = PAPER_MULTIPLE,
    skip: float = SKIP,
) -> Rows:
    """The corrected cells, and how far they lie from the law of all other cells (claim A19).

    A cell is the mean over seeds. The joint law is fitted to the others; its multiplier at
    p = 0.05 is that of the smaller sizes.

    Parameters
    ----------
    rows, curves, multiple, skip
        As for `correct`.

    Returns
    -------
    DataFrame
        ``pair, p, n, observed, corrected loss, law, before, after, reason``: `before` and `after`
        are relative distances from the law, above zero where the loss is too high; `reason` says
        why a cell stayed as it was. NaN where the others identify no law.
    """
    means = mean_losses(rows, "pair", "p").rename(
        columns={"n": "n_non_embedding", "loss": "cross_entropy"}
    )
    for pair, cells in means.groupby("pair"):
        declared = laws.declared_runs(cells)
        mine, law = cells[declared], laws.fit_joint_law(cells[~declared])
        known = law.identified & mine["p"].isin(law.law.p)
        ratios, reasons = np.ones(len(mine)), ["corrected"] * len(mine)
        for k, cell in enumerate(mine.to_dict("records")):
            try:
                ratios[k] = forecast_ratio(curves, cell, multiple=multiple, skip=skip)
            except NotIdentified as error:
                reasons[k] = str(error)
        before, after = np.full((2, len(mine)), np.nan)
        before[known], after[known] = distances(mine[known], ratios[known], law)
        yield pd.DataFrame(
            {
                "pair": pair_name(str(pair)),
                "p": mine["p"],
                "n": mine["n_non_embedding"],
                "observed": mine["cross_entropy"],
                "corrected loss": mine["cross_entropy"] * ratios,
                "law": mine["cross_entropy"] / (1 + before),
                "before": before,
                "after": after,
                "reason": reasons,
            }
        )


@framed()
def effect(corrected: pd.DataFrame) -> Rows:
    """What the correction changes in the laws of each pair.

    Returns
    -------
    DataFrame
        ``pair, law, coefficient`` and a column for each of `STATES`: α, L∞ and R² of the joint law
        (Eq. 7) and of the separate law (Eq. 6) of the least weight.
    """
    fits = [fit_pairs(_state(corrected, state)) for state in STATES]
    for pair in fits[0]:
        least = min(fits[0][pair][0])
        for law, pick in (
            ("joint (Eq. 7)", [fit[pair][1] for fit in fits]),
            (f"p = {least:g} alone (Eq. 6)", [fit[pair][0][least] for fit in fits]),
        ):
            for name in ("alpha", "l_inf", "R²"):
                values = [one.r2 if name == "R²" else one.params[name] for one in pick]
                yield {
                    "pair": pair_name(pair),
                    "law": law,
                    "coefficient": {"alpha": "α", "l_inf": "L∞"}.get(name, name),
                    **dict(zip(STATES, values, strict=True)),
                }


def _state(corrected: pd.DataFrame, state: str) -> pd.DataFrame:
    uncorrected = corrected.assign(cross_entropy=corrected["observed"])
    return observed(uncorrected if state == STATES[0] else corrected)


def law_data(corrected: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points and joint laws in both states, at the least weight and the single pair.

    Returns
    -------
    points : ``state, pair, p, n, loss, moved``
    curves : ``state, pair, p, n, loss``
    """
    declared = corrected[corrected["corrected"]]
    moved = set(zip(declared["pair"], declared["p"], declared["n_non_embedding"], strict=True))
    points, curves = [], []
    for state in STATES:
        frame = _state(corrected, state)
        shown = frame["p"].isin([frame["p"].min(), 1.0])
        of = list(zip(frame["pair"], frame["p"], frame["n"], strict=True))
        points.append(frame.assign(state=state, moved=[cell in moved for cell in of])[shown])
        lines = joint_curves(frame, fit_pairs(frame))
        curves.append(lines[lines["p"].isin([frame["p"].min(), 1.0])].assign(state=state))
    names = ["state", "pair", "p", "n", "loss"]
    return (
        pd.concat(points, ignore_index=True)[[*names, "moved"]],
        pd.concat(curves, ignore_index=True)[names],
    )


def curve_data(
    corrected: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    multiple: float = PAPER_MULTIPLE,
    skip: float = SKIP,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Learning curves of the declared runs, and the power laws that extend them.

    Returns
    -------
    seen : ``pair, size, n, p, step, loss``
    law : the same, from where the fit begins to where the law is read
    """
    seen, law = [], []
    for row in corrected[corrected["declared"]].to_dict("records"):
        mine = curves[(curves["run_id"] == row["run_id"]) & (curves["pair"] == row["pair"])]
        about = {key: row[key] for key in ("pair", "size", "p")} | {"n": row["n_non_embedding"]}
        own = pd.DataFrame({"step": mine["step"], "loss": mine["cross_entropy"]})
        seen.append(own.assign(**about))
        read = laws.extrapolate_curve(own["step"], own["loss"], multiple=multiple, skip=skip)
        if read.law.identified:
            steps = np.geomspace(skip * read.last, read.target, 60)
            line = pd.DataFrame({"step": steps, "loss": read.law.predict(steps)})
            law.append(line.assign(**about))
    names = ["pair", "size", "n", "p", "step", "loss"]
    return (
        pd.concat(seen, ignore_index=True)[names],
        pd.concat(law, ignore_index=True)[names] if law else pd.DataFrame(columns=names),
    )


# --- how far the correction can be trusted -----------------------------------------------------

FORECAST = ("reached", "predicted", "end", "missed", "fall")
"""Loss where a curve is left, forecast, truth; forecast less truth, what is reached less truth."""


@framed("run_id", "pair", "p", "size", "n", "multiple", *FORECAST)
def backtest(curves: pd.DataFrame, *, multiple: float = PAPER_MULTIPLE, skip: float = SKIP) -> Rows:
    """Cut finished curves at 1 / `multiple` of their length, predict their ends, and compare.

    The cut is the last point of a curve at or before that, so `multiple` is the least that a
    prediction reaches over.

    Parameters
    ----------
    curves
        From `results.load_curves`, of one cohort.

    Returns
    -------
    DataFrame
        ``run_id, pair, p, size, n, multiple`` (end over the last step kept), ``reached`` (loss at
        the cut), ``predicted, end, missed`` (predicted less end), ``fall`` (reached less end).
        Curves with fewer than three points before the cut, or that no power law fits, are left out.
    """
    keys = ["run_id", "pair", "p", "size", "n"]
    known = curves[curves["p"] > 0].rename(columns={"n_non_embedding": "n"})
    for key, group in known.groupby(keys):
        whole = group.sort_values("step")
        last = float(whole["step"].iloc[-1])
        early = whole[whole["step"] * multiple <= last]
        if len(early) < 3:
            continue
        cut = float(early["step"].iloc[-1])
        read = laws.extrapolate_curve(
            early["step"], early["cross_entropy"], multiple=last / cut, skip=skip
        )
        if not read.law.identified:
            continue
        reached, end = (float(one["cross_entropy"].iloc[-1]) for one in (early, whole))
        cell = dict(zip(keys, key, strict=True))
        yield {**cell, "multiple": last / cut, **_forecast(reached, read.ratio, end)}


@framed("cohort", "pair", "p", "n", "multiple", *FORECAST)
def against_longer(
    rows: pd.DataFrame, curves: pd.DataFrame, longer: pd.DataFrame, *, skip: float = SKIP
) -> Rows:
    """Predict the losses of longer runs from the shorter ones, and compare.

    Parameters
    ----------
    rows, curves
        Of the shorter runs, as for `correct`.
    longer
        From `results.load`, of cohorts that train cells of the same grid for longer, same test set.

    Returns
    -------
    DataFrame
        ``cohort, pair, p, n, multiple, reached, predicted, end, missed, fall``, as in `backtest`,
        for the cells that both have and whose shorter curve a power law fits.
    """
    cell = ["pair", "p", "n_non_embedding"]
    wanted = longer[longer["p"] > 0][[*cell, "cohort", "target_tokens", "cross_entropy"]]
    own = rows[rows["p"] > 0][[*cell, "run_id", "target_tokens", "cross_entropy"]]
    both = own.merge(wanted, on=cell, suffixes=("", "_longer"))
    for row in both.to_dict("records"):
        mine = curves[(curves["run_id"] == row["run_id"]) & (curves["pair"] == row["pair"])]
        multiple = row["target_tokens_longer"] / row["target_tokens"]
        if mine.empty or multiple <= 1:
            continue
        read = laws.extrapolate_curve(
            mine["step"], mine["cross_entropy"], multiple=multiple, skip=skip
        )
        if not read.law.identified:
            continue
        yield {
            "cohort": cohort_name(row["cohort"]),
            "pair": row["pair"],
            "p": row["p"],
            "n": row["n_non_embedding"],
            "multiple": multiple,
            **_forecast(row["cross_entropy"], read.ratio, row["cross_entropy_longer"]),
        }


def _forecast(reached: float, ratio: float, end: float) -> dict[str, float]:
    predicted = reached * ratio
    values = (reached, predicted, end, predicted - end, reached - end)
    return dict(zip(FORECAST, values, strict=True))


@framed()
def trust_table(found: pd.DataFrame, by: str = "p") -> Rows:
    """Errors of the predicted losses, beside those of leaving the losses as they are.

    Parameters
    ----------
    found
        From `backtest` or `against_longer`.
    by
        Column whose values are summarised apart.

    Returns
    -------
    DataFrame
        `by`, ``curves, fall`` (mean of what the loss still fell), ``predicted fall`` (mean),
        ``error`` and ``error without`` (root mean squares), ``closer`` (share of the curves whose
        predicted loss is nearer the end than the loss reached).
    """
    for value, group in found.groupby(by):
        yield {
            by: value,
            "curves": len(group),
            "fall": group["fall"].mean(),
            "predicted fall": (group["reached"] - group["predicted"]).mean(),
            "error": float(np.sqrt((group["missed"] ** 2).mean())),
            "error without": float(np.sqrt((group["fall"] ** 2).mean())),
            "closer": float((group["missed"].abs() < group["fall"].abs()).mean()),
        }
