"""`fit`: fit a scaling law to a table of losses."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mnmt_repro.cli.losses_table import ROLES, TableOptions, read_losses
from mnmt_repro.cli.options import JsonOption, print_json, write_output
from mnmt_repro.errors import InputError, note, show
from mnmt_repro.typed_config import setting

if TYPE_CHECKING:
    from mnmt_repro.laws import LawFit

    Fit = LawFit[Any]

Asked = Literal["auto", "eq12", "eq13"]
"""Laws that `--law` can name."""
NAMES_OF_A_RUN = ("seed", "run_id", "config_hash", "commit")
"""Columns in which further seeds of a cell (pair, weight, size) may differ without a word."""

MOST_SETTINGS = 10
"""Distinct numbers of a setting, such as a learning rate; a column with more is a measurement."""


@dataclass(frozen=True, kw_only=True)
class FitOptions(JsonOption, TableOptions):
    """The options of `fit`."""

    law: Asked = setting(
        "auto: the law of mixtures with --mixture-column, else joint where there are several "
        "weights p, else power; eq12, eq13: the law at any weight, with the effective fraction of "
        "that equation",
        "auto",
    )
    report: Path | None = setting(
        "also write the fits with charts to one HTML file", metavar="FILE.html"
    )


EXAMPLES = (
    "mnmt-repro fit losses.csv            # columns n, loss[, p][, pair]",
    "mnmt-repro fit table.csv --column pair=language --column p=share --law eq12",
    "mnmt-repro fit chrf.csv --column loss=chrf --direction max --ceiling 100 --json",
    "mnmt-repro fit losses.csv --mixture-column run_id  # three pairs or more",
    "mnmt-repro fit losses.csv --report losses.html",
)


SMALLEST = 50
"""Model size below which all sizes are taken for logarithms."""
HIGHEST = 20.0
"""Nats a token that no model loses: even pieces drawn at random, of a million, cost 14."""


def notes_on_rows(frame: pd.DataFrame, options: TableOptions) -> list[str]:
    """What to say of odd units, rows that share a cell (pair, weight, size), and harm.

    Parameters
    ----------
    frame : a table of `read_losses`
    options : those of the table
    """
    notes = list[str]()
    if options.file.is_dir():
        from mnmt_repro import results
        from mnmt_repro.laws.convergence import note_on_fall

        curves = results.load_curves(root=options.file, run_id=set(frame["run_id"]))
        notes += note_on_fall(curves)
    if frame["n"].max() < SMALLEST:
        notes.append(
            f"all sizes are below {SMALLEST}: are they logarithms, or in millions? A law is of the "
            "numbers of parameters"
        )
    if (copies := frame.duplicated()).any() and "p" in frame:
        notes.append(f"{copies.sum()} rows are exact copies of others, and count as further runs")
    if options.direction == "min" and frame["loss"].max() > HIGHEST:
        notes.append(
            f"there are losses above {HIGHEST:g}: are they perplexities? A law is of nats a token, "
            "which are their natural logarithms"
        )
    cell: list[str] = [each for each in ("p", "pair", "n") if each in frame]
    cell += [options.mixture_column] if options.mixture_column else []
    several = frame[frame.duplicated(cell, keep=False)]
    others = [c for c in frame.columns if c not in (*cell, "loss", *NAMES_OF_A_RUN)]
    others = [c for c in others if not is_measurement(frame[c])]
    differing = [c for c in others if (several.groupby(cell)[c].nunique() > 1).any()]
    lacking = [f"--column {role}=NAME" for role in ROLES if role not in frame]
    if len(several) and (differing or lacking):
        unlike = f", but differ in {', '.join(differing)}" if differing else ""
        named = f", or name the column that tells them apart by {' or '.join(lacking)}"
        notes.append(
            f"{len(several)} rows share {', '.join(cell)} with others and are taken as seeds of "
            f"one cell{unlike}: keep one value with --where{named * bool(lacking)}"
        )
    kinds = (rows["vocabulary_hash"].nunique() for rows in by_pair(frame).values())
    if "vocabulary_hash" in frame and max(kinds) > 1:
        notes.append(
            "one law is fitted to models of several vocabularies, and a loss per token depends on "
            "the vocabulary: keep one with --where vocabulary_hash=..."
        )
    for pair, rows in by_pair(frame).items() if "p" in frame else ():
        means = rows.groupby(["n", "p"])["loss"].mean().unstack()
        gain = (means.iloc[:, 0] - means.iloc[:, -1]) * (1 if options.direction == "min" else -1)
        if len(means.columns) > 1 and (gain.dropna() < 0).mean() > 0.5:
            notes.append(
                f"{pair}: does worse at p = {means.columns[-1]:g} than at p = "
                f"{means.columns[0]:g} at most sizes; is p the weight of this pair?"
            )
    return notes


def is_measurement(column: pd.Series) -> bool:
    """Whether a column holds another metric and no setting: numbers, many of them distinct."""
    numbers = pd.to_numeric(column, errors="coerce")
    many = min(len(numbers) / 2, MOST_SETTINGS)
    return bool(numbers.notna().all() and numbers.nunique() > many)


def by_pair(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of each pair; all under one name where the table has no column `pair`."""
    if "pair" not in frame.columns:
        return {"all rows": frame}
    return {str(pair): rows for pair, rows in frame.groupby("pair", sort=True)}


def fit_table(
    frame: pd.DataFrame, options: TableOptions, asked: Asked
) -> dict[str, tuple[str, Fit]]:
    """Fit each pair of a table, by the law `asked`: the name of its law, and its fit.

    Raises
    ------
    InputError
        When the law needs weights that the table lacks.
    """
    from mnmt_repro import laws

    if asked != "auto" and "p" not in frame.columns:
        raise InputError(
            f"--law {asked}: the table has no column of weights; name it by --column p=NAME; "
            f"there are {', '.join(frame.columns)}"
        )
    mixtures = None
    if options.mixture_column:
        if asked != "auto" or options.direction == "max":
            raise InputError("--mixture-column: leave out --law and --direction max")
        mixtures = read_mixtures(frame, options.mixture_column, options.file)
    fits: dict[str, tuple[str, Fit]] = {}
    named: dict[str, Any] = {"n": "n", "loss": "loss"}
    quality: dict[str, Any] = {"direction": options.direction, "ceiling": options.ceiling}
    for pair, rows in by_pair(frame).items():
        of: dict[str, Any] = {"errors": options.errors, "label": pair}
        with of_pair(pair):
            if mixtures is not None:
                mixed = rows.join(mixtures, on=options.mixture_column)
                law = laws.fit_mixture_law(mixed, pair, [*mixtures], **named, **of)
                fits[pair] = "mixture", law
            elif asked != "auto":
                fits[pair] = asked, laws.fit_fraction(rows, form=asked, **named, **quality, **of)
            elif "p" in rows and rows["p"].nunique() > 1:
                fits[pair] = "joint", laws.fit_joint_law(rows, **named, **quality, **of)
            else:
                fits[pair] = "power", laws.fit_power_law(rows["n"], rows["loss"], **quality, **of)
    return fits


def read_mixtures(frame: pd.DataFrame, name: str, path: Path) -> pd.DataFrame:
    """Weights of all pairs, a column each, of every value of the column `name`."""
    from mnmt_repro.laws.mixture_law import SUMS_TO

    if not {"p", "pair"} <= set(frame.columns):
        raise InputError("--mixture-column: the table needs the columns p and pair; see --column")
    weights = frame.pivot_table("p", name, "pair", aggfunc="first", fill_value=0.0)
    whole = weights.sum(axis=1)
    if (off := (whole - 1).abs() > SUMS_TO).any():
        raise InputError(
            f"{path}: the weights of {name} {off.idxmax()} add up to "
            f"{whole[off].iloc[0]:.4g}, not 1; a mixture needs a row for each of its pairs"
        )
    return weights


def as_options(text: str) -> str:
    """A message of the library, with its arguments as options and its rows as lines of the file.

    >>> as_options('the score falls with size, against direction="max"')
    'the score falls with size, against --direction max'
    >>> as_options('or use form="eq13"')
    'or use --law eq13'
    """
    text = re.sub(r"\brow (\d+)\b", r"line \1", text)
    text = re.sub(r"^(ceiling|errors): ", r"--\1: ", text)
    text = text.replace('form="', 'law="')  # which names the form of its fraction
    return re.sub(r'(\w+)="(\w+)"', r"--\1 \2", text)


@contextlib.contextmanager
def of_pair(pair: str = "") -> Iterator[None]:
    """Name the pair in an `InputError` about its rows, and arguments as options."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{pair}: " * bool(pair) + as_options(str(error))) from error


@dataclass(frozen=True, kw_only=True)
class FittedPair:
    """What `fit` says of one pair.

    Attributes
    ----------
    law : power, joint, eq12, eq13 or mixture
    fraction
        Effective fraction at each fitted weight, ``p, f, f_low, f_high``; see `fractions`.
    left_out : see `left_out`
    """

    pair: str
    law: str
    fit: Fit
    fraction: pd.DataFrame
    left_out: dict[str, float]


def fractions(fit: Fit) -> pd.DataFrame:
    """Of the joint law where it has the single pair (Eq. 10), and of Eqs. 12 and 13; else empty."""
    from mnmt_repro.laws import FractionLaw, JointLaw, effective_fraction

    law, columns = fit.law, ["p", "f", "f_low", "f_high"]
    single = isinstance(law, FractionLaw) or (isinstance(law, JointLaw) and 1.0 in law.p)
    if fit.identified and single:
        return effective_fraction(fit)[columns]
    return pd.DataFrame(columns=columns)


def left_out(fit: Fit) -> dict[str, float]:
    """Relative errors on mixtures left out (root mean square): of a law of them, and of a mean."""
    from mnmt_repro.laws import MixtureLaw, leave_one_mixture_out

    if not isinstance(fit.law, MixtureLaw) or not fit.identified:
        return {}
    table = leave_one_mixture_out(fit)
    errors = table[["predicted", "naive"]].div(table["loss"], axis=0) - 1
    return {str(name): float(each) for name, each in ((errors**2).mean() ** 0.5).items()}


def act(options: FitOptions) -> int:
    """Print each pair's parameters; 1 where a law is not identified."""
    if options.report and options.report.exists():
        raise InputError(f"--report {options.report}: is there already; name another file")
    outcomes, notes = fit_file(options)
    if options.json:
        print_json([content(each) | {"notes": notes} for each in outcomes])
    else:
        show("\n\n".join("\n".join(lines(each)) for each in outcomes) + "\n")
    if options.report:
        from mnmt_repro.cli.fit_report import fit_report

        write_output(options.report, "--report", fit_report(options))
    return 0 if all(each.fit.identified for each in outcomes) else 1


def fit_file(options: FitOptions) -> tuple[list[FittedPair], list[str]]:
    """Fit the laws of a table, one a pair, and the notes on it that went to standard error."""
    frame = read_losses(options)
    notes = notes_on_rows(frame, options)
    note(*notes)
    return [
        FittedPair(pair=pair, law=law, fit=fit, fraction=fractions(fit), left_out=left_out(fit))
        for pair, (law, fit) in fit_table(frame, options, options.law).items()
    ], notes


def content(outcome: FittedPair) -> dict[str, Any]:
    """What ``--json`` prints of a pair."""
    fit = outcome.fit
    by_weight = outcome.fraction.set_index("p").rename(columns={"f_low": "low", "f_high": "high"})
    return {
        "pair": outcome.pair,
        "law": outcome.law,
        "params": fit.params,
        "stderr": fit.stderr,
        "interval": fit.interval(),
        "interval_method": fit.method,
        "interval_words": fit.method_in_words() if fit.identified else "",
        "fraction": {f"{p:g}": each for p, each in by_weight.to_dict("index").items()},
        "r2": fit.r2,
        "observations": fit.observations,
        "identified": fit.identified,
        "fraction_doubts": list(fit.fraction_doubts()) if fit.identified else [],
        "reason": fit.reason,
        "active_bounds": list(fit.active_bounds),
        "left_out": outcome.left_out,
    }


def lines(outcome: FittedPair) -> Iterator[str]:
    """What `fit` prints of a pair."""
    from mnmt_repro.laws import JointLaw

    fit = outcome.fit
    yield as_options(repr(fit))
    if len(outcome.fraction):
        method = fit.method if isinstance(fit.law, JointLaw) else fit.resampling
        words = f" ({fit.method_in_words(method)})" if method != fit.method else ""
        yield f"effective fraction f(p), with its 95 % interval{words}:"
        yield outcome.fraction.to_string(index=False, float_format=lambda x: f"{x:.4g}")
    if fit.identified and fit.degrees_of_freedom < 1:
        yield "as many parameters as rows: nothing is left to judge the law by"
    if outcome.left_out:
        mine, mean = (f"{100 * outcome.left_out[name]:.2g} %" for name in ("predicted", "naive"))
        yield f"error on mixtures left out: {mine}; of the mean of the others at the size: {mean}"
