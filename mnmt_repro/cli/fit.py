"""`fit`: fit a scaling law to a table of losses."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mnmt_repro.choices import option, setting
from mnmt_repro.cli import COMMANDS, losses_table
from mnmt_repro.cli.exclusions import of_fit
from mnmt_repro.cli.exclusions import refuse as refuse_excluded
from mnmt_repro.cli.options import (
    add_command,
    chosen,
    numbers_of,
    print_json,
    refuse,
)
from mnmt_repro.errors import InputError

if TYPE_CHECKING:
    from mnmt_repro.laws import AdditiveLawFit, FractionFit, JointLawFit, PowerLawFit
    from mnmt_repro.laws.diagnostics import LackOfFit
    from mnmt_repro.laws.uncertainty import Asked, Method

    Fit = PowerLawFit | JointLawFit | FractionFit | AdditiveLawFit

LABELS = ("tier", "cohort", "test_set", "domain", "metric")
"""Columns of a table of which a law may read one value only, as `laws.checks.OF_ONE`."""

NAMES_OF_A_RUN = ("seed", "run_id", "config_hash", "commit")
"""Columns in which further seeds of a cell (pair, weight, size) may differ without a word."""

CLEAR = 2.0
"""Gain of log likelihood from which another kind of errors is proposed."""
FINE = 2e-3
"""Share of the loss up to which the largest residual does not matter."""

HUBER_DELTA = 1e-3
"""Of Huber's loss of the log loss, as in Hoffmann et al. (2022)."""
GROSS = 10.0
"""Standard deviations from which a row is blamed for a law that is not identified."""
MOST_TRIED = 100
"""Rows of a table from which each is left out in turn."""

FORMULA = {
    "power": "loss = beta * n**-alpha + l_inf",
    "joint": "loss = beta[p] * n**-alpha + l_inf",
    "eq12": "loss = beta * (f(p) * n)**-alpha + l_inf, f(p) = p + c1 * p**c2 * (1 - p)**c3",
    "eq13": "loss = beta * (f(p) * n)**-alpha + l_inf, f(p) = c1 * (p - 1) + 1",
    "additive": "loss = E + A * n**-alpha + B * d**-beta",
}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table that `fit` and `recommend` read, and its columns."""

    file: Path = field(
        metadata=option(
            "results store of runs (a folder, such as runs/results), or a table with a header "
            "line, separated by comma, semicolon or tab. It has a row for each model and pair, "
            "with the columns pair, p (the pair's weight in the mixture, 0 to 1), n (model size) "
            "and loss. Further seeds are further rows. Rows with weight 0 (zero-shot) are left "
            f"out. The columns {', '.join(LABELS)}, where there are such, must each have one value "
            "(test_set: one for each pair). Other columns are ignored",
            flags=("file",),
            metavar="FILE.csv",
        )
    )
    where: tuple[str, ...] | None = setting(
        "use only rows with this value; may be given for several columns",
        metavar="COLUMN=VALUE",
    )
    n_column: str = setting("column of model sizes", "n", metavar="NAME")
    loss_column: str = setting("column of losses", "loss", metavar="NAME")
    p_column: str = setting("column of weights", "p", metavar="NAME")
    pair_column: str = setting("column of pairs", "pair", metavar="NAME")
    direction: Literal["min", "max"] = setting(
        "min: a loss, falling with size; max: a quality, rising", "min"
    )
    errors: Literal["absolute", "relative"] = setting(
        "least squares of the residuals, or of the residuals divided by the loss, for noise that "
        "grows with the loss",
        "absolute",
    )
    groups: str | None = setting(
        "column that names the run of a row: rows of one run, such as its checkpoints, are not "
        "independent, and intervals then come from runs",
        metavar="NAME",
    )
    ceiling: float | None = setting(
        "with --direction max: highest score possible, such as 100 for chrF",
        metavar="SCORE",
    )


@dataclass(frozen=True, kw_only=True)
class FitOptions(TableOptions):
    """The options of `fit`."""

    law: Literal["auto", "power", "joint", "eq12", "eq13", "additive"] = setting(
        "auto: joint where there are several weights p, else power; eq12, eq13: Eq. 11, the law at "
        "any weight, with the effective fraction f(p) of that equation; additive: a law of size "
        "and of the pair's data, for runs that have not converged",
        "auto",
    )
    data_column: str | None = setting(
        "with --law additive: column of the data seen, such as target tokens of the pair "
        "(default: d)",
        metavar="NAME",
    )
    loss: Literal["squares", "huber"] = setting(
        "with --law additive: what is minimised; huber gives outliers little weight (delta 1e-3)",
        "squares",
    )
    log: bool = setting("with --law additive: fit the logarithm of the losses", False)
    by: str | None = setting(
        "with --law joint: column whose values have a multiplier each, in place of the weights p",
        metavar="NAME",
    )
    interval: Literal["auto", "t", "residual", "seeds", "runs", "perturbation"] = setting(
        "how intervals are made. t: from standard errors. residual, seeds, runs: percentiles of "
        "refits to resampled residuals, seeds or runs (--groups). perturbation: refits to losses "
        "with noise of 1 percent. auto: runs with --groups, residual where a bound holds a "
        "parameter, else t",
        "auto",
    )
    report: Path | None = setting(
        "also write curves, effective fraction, diagnostics, caveats and code to one HTML file",
        metavar="FILE.html",
    )
    json: bool = setting("print JSON in place of a table", False)


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "fit",
        COMMANDS["fit"],
        examples=[
            "mnmt-repro fit losses.csv            # columns n, loss[, p][, pair]",
            "mnmt-repro fit rows.csv --n-column n_non_embedding --loss-column cross_entropy",
            "mnmt-repro fit rows.csv --where test_set=indomain --where domain=all",
            "mnmt-repro fit table.csv --pair-column language --p-column weight --law eq12",
            "mnmt-repro fit chrf.csv --loss-column chrf --direction max --ceiling 100 --json",
            "mnmt-repro fit runs.csv --law additive --data-column target_tokens",
            "mnmt-repro fit runs.csv --law additive --loss huber --log --groups run",
            "mnmt-repro fit losses.csv --report losses.html",
        ],
        act=act,
        options=FitOptions,
    )


def read_losses(
    options: TableOptions,
    needed: tuple[str, ...] = (),
    data: str | None = None,
    by: str | None = None,
) -> pd.DataFrame:
    """Read a table: its columns of numbers checked, weights and pairs as p, pair.

    Parameters
    ----------
    options : those of the table
    needed : those of "p" and "pair" that the table must have
    data : column of the data seen, for a law of sizes and data, without weights
    by : column that takes the place of the weights

    Raises
    ------
    InputError
        For a missing column, with file, line and column for a value that cannot be used, for a
        column of `LABELS` with several values, or when no row is left.
    """
    path, n, loss = options.file, options.n_column, options.loss_column
    if options.ceiling is not None and options.direction == "min":
        raise InputError("--ceiling is the highest score of a quality: add --direction max")
    named = {"pair": options.pair_column} | ({} if data or by else {"p": options.p_column})
    wanted = [column for name, column in named.items() if name in needed or column != name]
    wanted += [column for column in (by, options.groups) if column]
    numbers = [n, loss, *([data] if data else [])]
    table = _chosen(losses_table.read(path, [*numbers, *wanted]), options.where or (), path)
    for label in LABELS:
        if label not in table.columns or label in (*numbers, *named.values()):
            continue
        # Each pair may have a test set of its own; the other labels are of the whole table.
        by = named["pair"] if label == "test_set" and named["pair"] in table.columns else None
        for _, rows in table.groupby(by) if by else [("", table)]:
            if len(values := sorted(set(rows[label]))) > 1:
                raise InputError(
                    f"{path}: column {label} has {', '.join(values)}, and a law is of one: add "
                    f"--where {label}={values[0]}"
                )
    frame = table.drop(columns=["p", "pair"], errors="ignore")
    for column in numbers:
        frame[column] = numbers_of(table, column, path)
    refuse(frame[n] <= 0, table, n, path, "sizes must be above 0")
    if options.direction == "min":
        why = "losses must be above 0 (log-probabilities: change the sign; a quality: --direction "
        refuse(frame[loss] <= 0, table, loss, path, why + "max)")
    if data:
        why = "must be above 0; leave out runs that saw nothing of the pair"
        refuse(frame[data] <= 0, table, data, path, why)
    if named.get("p") in table.columns:
        frame["p"] = numbers_of(table, named["p"], path)
        outside = (frame["p"] < 0) | (frame["p"] > 1)
        refuse(outside, table, named["p"], path, "weights lie from 0 to 1")
    if named["pair"] in table.columns:
        frame["pair"] = table[named["pair"]]
        refuse(frame["pair"] == "", table, named["pair"], path, "no pair is named")
    return _trained(frame, path) if "p" in frame else frame


def _chosen(table: pd.DataFrame, wishes: Iterable[str], path: Path) -> pd.DataFrame:
    """Rows of a table with the values of ``--where``."""
    for wish in wishes:
        column, equals, value = wish.partition("=")
        if not equals or column not in table.columns:
            there = ", ".join(table.columns)
            raise InputError(f"--where {wish}: write COLUMN=VALUE; {path} has {there}")
        values = sorted(set(table[column]))
        table = table[table[column] == value]
        if table.empty:
            raise InputError(f"--where {wish}: no such row; {column} has {', '.join(values[:20])}")
    return table


def _trained(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Rows with a weight above 0: no law describes a pair that was not trained on."""
    kept = frame[frame["p"] > 0]
    if kept.empty:
        raise InputError(f"{path}: all rows are zero-shot (p = 0), which no law describes")
    if left := len(frame) - len(kept):
        say([f"{left} zero-shot rows (p = 0) are left out"])
    return kept


def one_curve_note(frame: pd.DataFrame, n: str, loss: str, data: str | None = None) -> str:
    """Warn that columns p or pair are lacking where rows share a size (and `data`)."""
    names = ("pair",) if data else ("p", "pair")
    lacking = [name for name in names if name not in frame.columns]
    known = [name for name in names if name in frame.columns]
    shared = int(frame.duplicated([n, *([data] if data else []), *known], keep=False).sum())
    if not lacking or not shared:
        return ""
    each = f"all rows of one {' and '.join(known)} are" if known else "all rows are"
    cell = [n, *([data] if data else []), *known]
    others = [c for c in frame.columns if c not in (*cell, loss, *NAMES_OF_A_RUN)]
    differing = [c for c in others if (frame.groupby(cell)[c].nunique() > 1).any()]
    apart = f" and differ in {', '.join(differing)}" if differing else ""
    return (
        f"no column {' or '.join(map(repr, lacking))}: {each} taken as one curve; {shared} rows "
        f"share a size{apart}; name the columns with "
        f"{', '.join(f'--{name}-column' for name in lacking)}"
    )


def notes_on_rows(
    frame: pd.DataFrame,
    n: str,
    loss: str,
    direction: str,
    data: str | None = None,
    groups: str | None = None,
) -> list[str]:
    """What to say of rows that share a cell (pair, weight, size, data), and a weight that harms.

    Parameters
    ----------
    frame, n, loss, data : a table of `read_losses`, and its columns of sizes, losses and data (or
        what takes the place of the weights)
    direction : ``"min"`` or ``"max"``
    groups : column that names runs
    """
    notes = []
    cell = [name for name in ("pair", "p", n, data) if name and name in frame.columns]
    several = frame[frame.duplicated(cell, keep=False)]
    if copies := int(frame.duplicated().sum()):
        notes.append(f"{copies} rows are exact copies of others, and count as further runs")
    others = [c for c in frame.columns if c not in (*cell, loss, groups, *NAMES_OF_A_RUN)]
    others = [c for c in others if not is_measurement(frame[c])]
    differing = [c for c in others if (several.groupby(cell)[c].nunique() > 1).any()]
    if differing:
        notes.append(
            f"{len(several)} rows share {', '.join(cell)} with others and are taken as seeds of "
            f"one cell, but differ in {', '.join(differing)}: keep one value with --where"
        )
    if "p" in frame.columns:
        for pair, rows in by_pair(frame).items():
            means = rows.groupby([n, "p"])[loss].mean().unstack()
            gain = (means.iloc[:, 0] - means.iloc[:, -1]) * (1 if direction == "min" else -1)
            if len(means.columns) > 1 and (gain.dropna() < 0).mean() > 0.5:
                notes.append(
                    f"{pair}: does worse at p = {means.columns[-1]:g} than at p = "
                    f"{means.columns[0]:g} at most sizes; is p the weight of this pair?"
                )
    return notes


def is_measurement(column: pd.Series) -> bool:
    """Whether a column holds another metric and no setting: numbers, most of them distinct."""
    numbers = pd.to_numeric(column, errors="coerce")
    return bool(numbers.notna().all() and numbers.nunique() > len(numbers) / 2)


def note_on_errors(fits: Iterable[Fit]) -> list[str]:
    """Propose the other kind of errors where the losses are clearly likelier under it."""
    from mnmt_repro.laws import AdditiveLawFit
    from mnmt_repro.laws.diagnostics import favour_relative

    notes = []
    for fit in fits:
        gain = favour_relative(fit)
        now = "relative" if fit.relative else "absolute"
        fine = abs(fit.observed() / fit.fitted() - 1).max() <= FINE
        if fine or abs(gain) < CLEAR or (gain > 0) == fit.relative:
            continue
        grow = "grow" if gain > 0 else "do not grow"
        other = "--errors absolute" if fit.relative else "--errors relative"
        if isinstance(fit, AdditiveLawFit):
            other = "no --log" if fit.relative else "--log"
        notes.append(
            f"{getattr(fit, 'label', '') or 'all rows'}: residuals {grow} with the loss (log "
            f"likelihood {abs(gain):.1f} above that of {now} errors); use {other}"
        )
    return notes


def by_pair(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of each pair; all under one name where the table has no column `pair`."""
    if "pair" not in frame.columns:
        return {"all rows": frame}
    return {str(pair): rows for pair, rows in frame.groupby("pair", sort=True)}


def fit_table(frame: pd.DataFrame, options: FitOptions) -> dict[str, tuple[str, Fit]]:
    """Fit each pair of a table: name of the law and its fit.

    Raises
    ------
    InputError
        When the law needs weights that the table lacks, several are given to the power law, or a
        quality to the additive law.
    """
    law = options.law
    if law == "additive" and options.direction == "max":
        raise InputError("--law additive: fits losses, not a quality; leave out --direction max")
    if law in ("joint", "eq12", "eq13") and "p" not in frame.columns and not options.by:
        there = ", ".join(map(str, frame.columns))
        raise InputError(
            f"--law {law}: the table has no column of weights; name it by --p-column; there are "
            f"{there}"
        )
    fits: dict[str, tuple[str, Fit]] = {}
    for pair, rows in by_pair(frame).items():
        weights = rows["p"].nunique() if "p" in rows.columns else 1
        if law == "power" and weights > 1:
            raise InputError(
                f"--law power: {pair} has {weights} weights p; keep one, or fit the joint law"
            )
        several = "joint" if weights > 1 or options.by else "power"
        name = several if law == "auto" else law
        with of_pair(pair):
            fits[pair] = name, fit_law(rows, name, pair, options)
    return fits


def fit_law(rows: pd.DataFrame, law: str, pair: str, options: FitOptions) -> Fit:
    """Fit one law to the rows of one pair."""
    from mnmt_repro.laws import fit_additive_law, fit_fraction, fit_joint_law, fit_power_law
    from mnmt_repro.laws.checks import error_weights

    n, loss, runs = options.n_column, options.loss_column, options.groups
    if law == "additive":
        return fit_additive_law(
            rows[n],
            rows[data_of(options)],
            rows[loss],
            huber_delta=HUBER_DELTA if options.loss == "huber" else None,
            log_loss=options.log,
            groups=rows[runs] if runs else None,
        )
    of: Any = {"direction": options.direction, "ceiling": options.ceiling, "label": pair}
    if law == "power":
        weights = error_weights(options.errors, rows[loss].to_numpy(dtype=float))
        names = rows[runs] if runs else None
        return fit_power_law(rows[n], rows[loss], weights=weights, groups=names, **of)
    of |= {"n": n, "loss": loss, "errors": options.errors, "groups": runs}
    if law == "joint":
        return fit_joint_law(rows, by=options.by or "p", **of)
    return fit_fraction(rows, **of | {"form": law})


def data_of(options: FitOptions) -> str | None:
    """The column of data, of a law that has one."""
    return options.data_column or "d" if options.law == "additive" else None


def strange_rows(rows: pd.DataFrame, law: str, fit: Fit, options: FitOptions) -> list[str]:
    """Name the rows that no noise explains, by their line in the file.

    Where the law is not identified, a single row may be to blame: each is left out in turn.
    """
    from mnmt_repro.laws import outliers

    def named(row: int, distance: float) -> str:
        loss = rows[options.loss_column].iloc[row]
        return (
            f"line {rows.index[row] + 2}: {options.loss_column} {loss:.4g} is {distance:.0f} "
            "standard deviations from the law of the other rows; check it"
        )

    if fit.identified:
        return [named(row, distance) for row, distance in outliers(fit).items()]
    if not 6 <= len(rows) <= MOST_TRIED:
        return []
    found = []
    for row in range(len(rows)):
        others = fit_law(rows.drop(rows.index[row]), law, "", options)
        same = others.names == fit.names  # a weight of one row vanishes with it
        if others.identified and same and others.degrees_of_freedom > 0 and others.rss > 0:
            curve = replace(fit, values=others.values).fitted()
            left = abs(curve[row] - rows[options.loss_column].iloc[row])
            distance = left / float(others.noise_at(curve[row]))
            found += [(distance, named(row, distance))] if distance > GROSS else []
    return [max(found)[1]] if found else []


def say(notes: list[str]) -> None:
    """Print notes to standard error."""
    for note in notes:
        print(f"mnmt-repro: note: {note}", file=sys.stderr)


def as_options(text: str) -> str:
    """A message of the library, with its arguments as options of the command.

    >>> as_options('the loss rises with size, against direction="min"')
    'the loss rises with size, against --direction min'
    """
    return re.sub(r'(\w+)="(\w+)"', r"--\1 \2", text)


@contextlib.contextmanager
def of_pair(pair: str) -> Iterator[None]:
    """Name the pair in an `InputError` about its rows."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{pair}: {as_options(str(error))}") from error


def fractions(fit: Fit, asked: Asked) -> pd.DataFrame:
    """Effective fraction at each fitted weight with its 95 % interval: ``p, f, f_low, f_high``.

    Of the joint law where it has the single pair (Eq. 10), and of Eqs. 12 and 13; else empty.
    """
    from mnmt_repro.laws import FractionFit, JointLawFit, effective_fraction

    if isinstance(fit, JointLawFit) and fit.identified and 1.0 in fit.p:
        found = effective_fraction(fit, method=method_of(fit, asked))
        return found[["p", "f", "f_low", "f_high"]]
    if isinstance(fit, FractionFit) and fit.identified and fit.degrees_of_freedom > 0:
        return fit.fraction_band(sorted(set(fit.p)))
    return pd.DataFrame(columns=["p", "f", "f_low", "f_high"])


def method_of(fit: Fit, asked: Asked) -> Method:
    """The method behind the intervals of a fit."""
    return fit.interval_method if asked == "auto" else asked


def doubts(fit: Fit) -> tuple[str, ...]:
    """Why the effective fraction is not identified, and the runs to add; empty where it is."""
    from mnmt_repro.laws import FractionFit, JointLawFit

    if not fit.identified or not isinstance(fit, JointLawFit | FractionFit):
        return ()
    return fit.doubts()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What `fit` says of one pair."""

    pair: str
    law: str
    formula: str
    fit: Fit
    table: pd.DataFrame
    method: Method
    fraction: pd.DataFrame
    doubts: tuple[str, ...]
    fitness: LackOfFit
    strange: list[str]


def outcome(pair: str, law: str, fit: Fit, rows: pd.DataFrame, options: FitOptions) -> Outcome:
    """Intervals and diagnostics of a fit to the rows of a pair."""
    from mnmt_repro.laws import lack_of_fit

    formula = FORMULA[law].replace("[p]", f"[{options.by or 'p'}]")
    if options.direction == "max":
        formula = formula.replace("loss = ", "quality = l_inf - ").replace(" + l_inf", "")
    with of_pair(pair):
        return Outcome(
            pair=pair,
            law=law,
            formula=formula,
            fit=fit,
            table=fit.summary(options.interval),
            method=method_of(fit, options.interval),
            fraction=fractions(fit, options.interval),
            doubts=doubts(fit),
            fitness=lack_of_fit(fit),
            strange=strange_rows(rows, law, fit, options),
        )


def act(options: FitOptions) -> int:
    """Print each pair's parameters; 1 where a law is not identified."""
    refuse_excluded(of_fit(options), chosen(options))
    if options.report and options.report.exists():
        raise InputError(f"--report {options.report}: is there already; name another file")
    n, loss, extra = options.n_column, options.loss_column, data_of(options) or options.by
    frame = read_losses(options, data=data_of(options), by=options.by)
    note = one_curve_note(frame, n, loss, extra)
    notes = (
        [note] if note else notes_on_rows(frame, n, loss, options.direction, extra, options.groups)
    )
    say(notes)
    fits = fit_table(frame, options)
    grown = note_on_errors(fit for _, fit in fits.values())
    say(grown)
    notes += grown
    rows = by_pair(frame)
    outcomes = [outcome(pair, law, fit, rows[pair], options) for pair, (law, fit) in fits.items()]
    if options.report:
        from mnmt_repro.cli.fit_report import write_report

        write_report(outcomes, notes, options)
    if options.json:
        print_json([content(each) | {"notes": notes} for each in outcomes])
    else:
        print("\n\n".join("\n".join(lines(each)) for each in outcomes), end="\n\n")
    return 0 if all(fit.identified for _, fit in fits.values()) else 1


def content(found: Outcome) -> dict[str, Any]:
    """What ``--json`` prints of a pair."""
    fit = found.fit
    return {
        "pair": found.pair,
        "law": found.law,
        "params": fit.params,
        "stderr": fit.stderr,
        "interval": {row.parameter: [row.low, row.high] for row in found.table.itertuples()},
        "interval_method": found.method,
        "fraction": {
            f"{row.p:g}": {"f": row.f, "low": row.f_low, "high": row.f_high}
            for row in found.fraction.itertuples()
        },
        "r2": fit.r2,
        "observations": fit.observations,
        "identified": fit.identified,
        "fraction_doubts": list(found.doubts),
        "reason": fit.reason,
        "active_bounds": list(fit.active_bounds),
        "lack_of_fit": {
            "test": found.fitness.test,
            "p_value": found.fitness.p_value,
            "words": found.fitness.words,
        },
        "outliers": found.strange,
    }


def lines(found: Outcome) -> Iterator[str]:
    """What `fit` prints of a pair."""
    from mnmt_repro.laws.uncertainty import NAMES

    fit = found.fit
    yield f"{found.pair}: {found.formula}   ({fit.observations} rows, R² {fit.r2:.5f})"
    if fit.identified:
        yield found.table.to_string(index=False, float_format=lambda x: f"{x:.5g}")
        yield f"95 % intervals: {NAMES[found.method]}"
    else:
        yield f"not identified: {as_options(fit.reason)}"
    yield from (f"the effective fraction is not identified: {doubt}" for doubt in found.doubts)
    if len(found.fraction):
        yield "effective fraction f(p), with its 95 % interval:"
        yield found.fraction.to_string(index=False, float_format=lambda x: f"{x:.4g}")
    if fit.active_bounds:
        yield f"bounds active: {', '.join(fit.active_bounds)}"
    if fit.identified and fit.degrees_of_freedom < 1:
        yield "as many parameters as rows: nothing is left to judge the law by"
    elif fit.identified:
        yield f"lack of fit: {found.fitness.words}"
    yield from found.strange
