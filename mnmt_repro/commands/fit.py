"""`fit`: fit a scaling law to a table of losses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mnmt_repro.commands.options import add_command, add_json, print_json, read_table

if TYPE_CHECKING:
    from mnmt_repro.laws import JointLawFit, PowerLawFit

FORMULA = {
    "power": "loss = beta * n**-alpha + l_inf",
    "joint": "loss = beta[p] * n**-alpha + l_inf",
}


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "fit",
        "fit the power law (Eq. 3), or where a column p has several weights the joint law "
        "(Eq. 7), to a table of losses, each pair apart",
        examples=[
            "mnmt-repro fit losses.csv            # columns n, loss[, p][, pair]",
            "mnmt-repro fit rows.csv --n-column n_non_embedding --loss-column cross_entropy",
            "mnmt-repro fit chrf.csv --loss-column chrf --direction max --json",
        ],
        act=act,
    )
    add_table(parser)
    parser.add_argument(
        "--law",
        choices=("auto", "power", "joint"),
        default="auto",
        help="auto: joint where there are several weights p, else power",
    )
    add_json(parser)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Declare the table and its columns."""
    parser.add_argument("file", type=Path, metavar="FILE.csv", help="table with a header line")
    parser.add_argument("--n-column", default="n", metavar="NAME", help="column of model sizes")
    parser.add_argument("--loss-column", default="loss", metavar="NAME", help="column of losses")
    parser.add_argument(
        "--direction",
        choices=("min", "max"),
        default="min",
        help="min: a loss, falling with size; max: a quality, rising",
    )


def by_pair(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of each pair; all under one name where the table has no column `pair`."""
    if "pair" not in frame.columns:
        return {"all rows": frame}
    return {str(pair): rows for pair, rows in frame.groupby("pair", sort=True)}


def fit_table(
    frame: pd.DataFrame, *, n: str, loss: str, law: str, direction: str
) -> dict[str, PowerLawFit | JointLawFit]:
    """Fit each pair of a table.

    Raises
    ------
    InputError
        When a value is not a number above zero, or several weights are given to the power law.
    """
    from mnmt_repro.errors import InputError
    from mnmt_repro.laws import fit_joint_law, fit_power_law

    fits: dict[str, PowerLawFit | JointLawFit] = {}
    for pair, rows in by_pair(frame).items():
        weights = rows["p"].nunique() if "p" in rows.columns else 1
        if law == "joint" and "p" not in rows.columns:
            raise InputError("--law joint: the table has no column 'p'")
        if law == "power" and weights > 1:
            raise InputError(
                f"--law power: {pair} has {weights} weights p; keep one, or fit the joint law"
            )
        if law == "joint" or weights > 1:
            fits[pair] = fit_joint_law(rows, n=n, loss=loss, direction=direction, label=pair)  # type: ignore[arg-type]
        else:
            fits[pair] = fit_power_law(rows[n], rows[loss], direction=direction, label=pair)  # type: ignore[arg-type]
    return fits


def act(options: argparse.Namespace) -> int:
    """Print each pair's parameters; 1 where a law is not identified."""
    from mnmt_repro.laws import JointLawFit

    frame = read_table(options.file, (options.n_column, options.loss_column))
    fits = fit_table(
        frame,
        n=options.n_column,
        loss=options.loss_column,
        law=options.law,
        direction=options.direction,
    )
    kinds = {pair: "joint" if isinstance(f, JointLawFit) else "power" for pair, f in fits.items()}
    if options.json:
        print_json(
            [
                {
                    "pair": pair,
                    "law": kinds[pair],
                    "params": fit.params,
                    "stderr": fit.stderr,
                    "interval": {name: list(ends) for name, ends in fit.interval().items()},
                    "r2": fit.r2,
                    "observations": fit.observations,
                    "identified": fit.identified,
                    "reason": fit.reason,
                    "active_bounds": list(fit.active_bounds),
                }
                for pair, fit in fits.items()
            ]
        )
    else:
        for pair, fit in fits.items():
            formula = FORMULA[kinds[pair]]
            if options.direction == "max":
                formula = formula.replace("loss = ", "quality = l_inf - ").replace(" + l_inf", "")
            print(f"{pair}: {formula}   ({fit.observations} rows, R² {fit.r2:.5f})")
            if fit.identified:
                print(fit.summary().to_string(index=False, float_format=lambda x: f"{x:.5g}"))
            else:
                print(f"not identified: {fit.reason}")
            if fit.active_bounds:
                print(f"bounds active: {', '.join(fit.active_bounds)}")
            print()
    return 0 if all(fit.identified for fit in fits.values()) else 1
