"""`fit`: fit a scaling law to a table of losses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mnmt_repro.commands.options import add_command, add_json, print_json, read_table

if TYPE_CHECKING:
    from mnmt_repro.laws import AdditiveLawFit, JointLawFit, PowerLawFit

    Fit = PowerLawFit | JointLawFit | AdditiveLawFit

FORMULA = {
    "power": "loss = beta * n**-alpha + l_inf",
    "joint": "loss = beta[p] * n**-alpha + l_inf",
    "additive": "loss = E + A * n**-alpha + B * d**-beta",
}


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "fit",
        "fit the power law (Eq. 3), or where a column p has several weights the joint law "
        "(Eq. 7), or one of size and data, to a table of losses, each pair apart",
        examples=[
            "mnmt-repro fit losses.csv            # columns n, loss[, p][, pair]",
            "mnmt-repro fit rows.csv --n-column n_non_embedding --loss-column cross_entropy",
            "mnmt-repro fit chrf.csv --loss-column chrf --direction max --json",
            "mnmt-repro fit runs.csv --law additive --data-column target_tokens",
        ],
        act=act,
    )
    add_table(parser)
    parser.add_argument(
        "--law",
        choices=("auto", "power", "joint", "additive"),
        default="auto",
        help="auto: joint where there are several weights p, else power; additive: of size and of "
        "the data of the pair, which is what tells runs apart that are far from done",
    )
    parser.add_argument(
        "--data-column",
        metavar="NAME",
        help="with --law additive: column of the data seen, such as target tokens of the pair "
        "(default: d)",
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
    frame: pd.DataFrame, *, n: str, loss: str, law: str, direction: str, data: str = "d"
) -> dict[str, tuple[str, Fit]]:
    """Fit each pair of a table: name of the law and its fit.

    Raises
    ------
    InputError
        When a value is not a number above zero, several weights are given to the power law, or a
        quality to the additive law.
    """
    from mnmt_repro.errors import InputError
    from mnmt_repro.laws import fit_additive_law, fit_joint_law, fit_power_law

    if law == "additive" and direction == "max":
        raise InputError("--law additive: fits losses, not a quality; leave out --direction max")
    fits: dict[str, tuple[str, Fit]] = {}
    for pair, rows in by_pair(frame).items():
        weights = rows["p"].nunique() if "p" in rows.columns else 1
        if law == "joint" and "p" not in rows.columns:
            raise InputError("--law joint: the table has no column 'p'")
        if law == "power" and weights > 1:
            raise InputError(
                f"--law power: {pair} has {weights} weights p; keep one, or fit the joint law"
            )
        if law == "additive":
            if pd.api.types.is_numeric_dtype(rows[data]) and not (rows[data] > 0).all():
                raise InputError(
                    f"--law additive: column {data!r} of {pair} must be above 0: leave out runs "
                    "that saw nothing of the pair"
                )
            fits[pair] = law, fit_additive_law(rows[n], rows[data], rows[loss])
        elif law == "joint" or weights > 1:
            joint = fit_joint_law(rows, n=n, loss=loss, direction=direction, label=pair)  # type: ignore[arg-type]
            fits[pair] = "joint", joint
        else:
            power = fit_power_law(rows[n], rows[loss], direction=direction, label=pair)  # type: ignore[arg-type]
            fits[pair] = "power", power
    return fits


def act(options: argparse.Namespace) -> int:
    """Print each pair's parameters; 1 where a law is not identified."""
    from mnmt_repro.errors import InputError

    additive = options.law == "additive"
    if options.data_column and not additive:
        raise InputError("--data-column belongs to --law additive; add it, or leave this out")
    data = options.data_column or "d"
    needed = (options.n_column, options.loss_column, *((data,) if additive else ()))
    frame = read_table(options.file, needed)
    fits = fit_table(
        frame,
        n=options.n_column,
        loss=options.loss_column,
        law=options.law,
        direction=options.direction,
        data=data,
    )
    if options.json:
        print_json(
            [
                {
                    "pair": pair,
                    "law": law,
                    "params": fit.params,
                    "stderr": fit.stderr,
                    "interval": {name: list(ends) for name, ends in fit.interval().items()},
                    "r2": fit.r2,
                    "observations": fit.observations,
                    "identified": fit.identified,
                    "reason": fit.reason,
                    "active_bounds": list(fit.active_bounds),
                }
                for pair, (law, fit) in fits.items()
            ]
        )
    else:
        for pair, (law, fit) in fits.items():
            formula = FORMULA[law]
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
    return 0 if all(fit.identified for _, fit in fits.values()) else 1
