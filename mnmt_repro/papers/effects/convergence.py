"""Convergence correction on and off: Appendix G on our runs.

The paper fits a power law to the learning curves of its two largest models at p of at most 0.05 and
reads them at 2.5M steps. Here the same is done to the same cells of our grid at the same multiple
of the budget. `backtest` and `against_longer` ask how far such readings can be trusted: what they
would have said of known losses. Those are the ends of finished curves, predicted from their
beginnings, and the ends of longer runs. The paper shows neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro import laws
from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.laws.convergence import PAPER_MULTIPLE, SKIP
from mnmt_repro.papers.cohorts.names import cohort_name, pair_name
from mnmt_repro.papers.effects.cells import Rows, framed, mean_losses
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
    corrected = laws.correct_convergence(rows, curves, declared, multiple=multiple, skip=skip)
    return corrected.assign(declared=declared)


@framed()
def corrected_cells(corrected: pd.DataFrame) -> Rows:
    """The corrected cells, and how far they lie from the law of all other cells.

    A cell is the mean over seeds. The joint law is fitted to the others; its multiplier at
    p = 0.05 is that of the smaller sizes.

    Parameters
    ----------
    corrected
        From `correct`.

    Returns
    -------
    DataFrame
        ``pair, p, n, observed, corrected loss, law, before, after, reason``: `before` and `after`
        are relative distances from the law, above zero where the loss is too high; `reason` says
        why a cell stayed as it was. NaN where the others identify no law.
    """
    about: dict[str, Any] = {
        "declared": ("declared", "any"),
        "reason": ("correction_reason", "max"),
    }
    before = mean_losses(_in_state(corrected, STATES[0]), "pair", "p")["loss"]
    means = mean_losses(corrected, "pair", "p", **about).assign(observed=before)
    for pair, cells in means.groupby("pair"):
        mine = cells[cells["declared"]]
        law = laws.fit_joint_law(cells[~cells["declared"]], n="n", loss="observed")
        known = law.identified & mine["p"].isin(law.law.p)
        at = np.full(len(mine), np.nan)
        at[known] = law.predict(mine.loc[known, "p"], mine.loc[known, "n"])
        yield pd.DataFrame(
            {
                "pair": pair_name(str(pair)),
                "p": mine["p"],
                "n": mine["n"],
                "observed": mine["observed"],
                "corrected loss": mine["loss"],
                "law": at,
                "before": mine["observed"] / at - 1,
                "after": mine["loss"] / at - 1,
                "reason": mine["reason"].replace("", "corrected"),
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
    fits = [fit_pairs(observed(_in_state(corrected, state))) for state in STATES]
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


def _in_state(corrected: pd.DataFrame, state: str) -> pd.DataFrame:
    off = state == STATES[0]
    return corrected.assign(cross_entropy=corrected["observed"]) if off else corrected


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
        frame = observed(_in_state(corrected, state))
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
        cell = dict(zip(keys, key, strict=True)) | {
            "multiple": last / float(early["step"].iloc[-1])
        }
        yield from _forecast(cell, early, skip, whole["cross_entropy"].iloc[-1])


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
        if len(mine) and multiple > 1:
            about = {"pair": row["pair"], "p": row["p"], "n": row["n_non_embedding"]}
            about |= {"cohort": cohort_name(row["cohort"]), "multiple": multiple}
            end = row["cross_entropy_longer"]
            yield from _forecast(about, mine, skip, end, reached=row["cross_entropy"])


def _forecast(
    about: dict[str, Any],
    curve: pd.DataFrame,
    skip: float,
    end: float,
    reached: float | None = None,
) -> Iterator[dict[str, Any]]:
    """A row where a power law fits the curve; `reached` is the loss of its end unless given."""
    read = laws.extrapolate_curve(
        curve["step"], curve["cross_entropy"], multiple=about["multiple"], skip=skip
    )
    if read.law.identified:
        reached = float(curve["cross_entropy"].iloc[-1] if reached is None else reached)
        predicted = reached * read.ratio
        values = (reached, predicted, end, predicted - end, reached - end)
        yield about | dict(zip(FORECAST, values, strict=True))


@framed()
def trust_table(forecasts: pd.DataFrame, by: str = "p") -> Rows:
    """Errors of the predicted losses, beside those of leaving the losses as they are.

    Parameters
    ----------
    forecasts
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
    for value, group in forecasts.groupby(by):
        yield {
            by: value,
            "curves": len(group),
            "fall": group["fall"].mean(),
            "predicted fall": (group["reached"] - group["predicted"]).mean(),
            "error": float(np.sqrt((group["missed"] ** 2).mean())),
            "error without": float(np.sqrt((group["fall"] ** 2).mean())),
            "closer": float((group["missed"].abs() < group["fall"].abs()).mean()),
        }
