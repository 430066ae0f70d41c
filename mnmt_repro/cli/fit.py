"""`fit`: fit a scaling law to a table of losses."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mnmt_repro.cli.losses_table import TableOptions, read_losses
from mnmt_repro.cli.options import JsonOption, print_json, write_output
from mnmt_repro.errors import InputError, note, show
from mnmt_repro.typed_config import setting

if TYPE_CHECKING:
    from mnmt_repro.laws import LawFit
    from mnmt_repro.laws.uncertainty import Asked

    Fit = LawFit[Any]
    Fitter = Callable[[pd.DataFrame], Fit]

NAMES_OF_A_RUN = ("seed", "run_id", "config_hash", "commit")
"""Columns in which further seeds of a cell (pair, weight, size) may differ without a word."""

MOST_SETTINGS = 10
"""Distinct numbers of a setting, such as a learning rate; a column with more is a measurement."""

HUBER_DELTA = 1e-3
"""Of Huber's loss of the log loss, as in Hoffmann et al. (2022)."""
MOST_NAMED = 5
"""Rows that are named as outliers of one pair."""


@dataclass(frozen=True, kw_only=True)
class FitOptions(JsonOption, TableOptions):
    """The options of `fit`."""

    law: Literal["auto", "power", "joint", "eq12", "eq13", "additive"] = setting(
        "auto: the law of mixtures with --mixture-column, else joint where there are several "
        "weights p, else power; eq12, eq13: the law at any weight, with the effective fraction of "
        "that equation; additive: of size n and data seen d",
        "auto",
    )
    loss: Literal["squares", "huber"] = setting(
        "with --law additive: huber gives outliers little weight", "squares"
    )
    log: bool = setting("with --law additive: fit the logarithm of the losses", False)
    interval: Literal["auto", "t", "residual", "runs", "perturbation"] = setting(
        "from standard errors (t), refits to resampled residuals or runs, or to losses with "
        "1 percent of noise. auto: runs with --groups, residual at an active bound, else t",
        "auto",
    )
    report: Path | None = setting(
        "also write the fits with charts to one HTML file", metavar="FILE.html"
    )

    def roles(self) -> tuple[str, ...]:
        """As those of every table; the law of size and data reads no weights."""
        return ("n", "loss", "pair", "d") if self.law == "additive" else super().roles()


EXAMPLES = (
    "mnmt-repro fit losses.csv            # columns n, loss[, p][, pair]",
    "mnmt-repro fit table.csv --column pair=language --column p=share --law eq12",
    "mnmt-repro fit chrf.csv --column loss=chrf --direction max --ceiling 100 --json",
    "mnmt-repro fit runs.csv --law additive --column d=tokens --loss huber --log --groups run",
    "mnmt-repro fit losses.csv --mixture-column run_id  # three pairs or more",
    "mnmt-repro fit losses.csv --report losses.html",
)


SMALLEST = 50
"""Model size below which all sizes are taken for logarithms."""
HIGHEST = 20.0
"""Nats a token that no model loses: even pieces drawn at random, of a million, cost 14."""


def notes_on_rows(frame: pd.DataFrame, options: TableOptions) -> list[str]:
    """What to say of odd units, rows that share a cell (pair, weight, size, data), and harm.

    Parameters
    ----------
    frame : a table of `read_losses`
    options : those of the table
    """
    roles, groups, notes = set(options.roles()), options.groups, list[str]()
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
    if options.direction == "min" and frame["loss"].max() > HIGHEST:
        notes.append(
            f"there are losses above {HIGHEST:g}: are they perplexities? A law is of nats a token, "
            "which are their natural logarithms"
        )
    cell: list[str] = [each for each in ("p", "pair", "n", "d") if each in roles & {*frame}]
    cell += [options.mixture_column] if options.mixture_column else []
    several = frame[frame.duplicated(cell, keep=False)]
    if groups and groups not in cell:  # rows of one run share their size as a matter of course
        several = frame[frame.groupby(cell)[groups].transform("nunique") > 1]
    others = [c for c in frame.columns if c not in (*cell, "loss", groups, *NAMES_OF_A_RUN)]
    others = [c for c in others if not is_measurement(frame[c])]
    differing = [c for c in others if (several.groupby(cell)[c].nunique() > 1).any()]
    lacking = roles - {*frame}
    if (copies := frame.duplicated()).any() and not lacking:
        line = "" if options.file.is_dir() else f" (first: line {frame.index[copies][0]})"
        notes.append(
            f"{copies.sum()} rows are exact copies of others{line}, and count as further runs"
        )
    if len(several) and (differing or lacking):
        unlike = f", but differ in {', '.join(differing)}" if differing else ""
        named = [*(f"--column {role}=NAME" for role in sorted(lacking)), "--groups"]
        notes.append(
            f"{len(several)} rows share {', '.join(cell)} with others and are taken as seeds of "
            f"one cell{unlike}: keep one value with --where, or name the column that tells them "
            f"apart by {' or '.join(named)}"
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


def fit_table(frame: pd.DataFrame, options: FitOptions) -> dict[str, tuple[str, Fitter, Fit]]:
    """Fit each pair of a table: its law as `--law` calls it, what fits it to rows, and its fit.

    Raises
    ------
    InputError
        When the law needs weights that the table lacks, several are given to the power law, or a
        quality to the additive law.
    """
    law = options.law
    if law == "additive" and options.direction == "max":
        raise InputError("--law additive: fits losses, not a quality; leave out --direction max")
    if law in ("joint", "eq12", "eq13") and "p" not in frame.columns:
        raise InputError(
            f"--law {law}: the table has no column of weights; name it by --column p=NAME; there "
            f"are {', '.join(frame.columns)}"
        )
    fits = {}
    of_mixtures = mixture_fitter(frame, options) if options.mixture_column else None
    for pair, rows in by_pair(frame).items():
        weights = rows["p"].nunique() if "p" in rows.columns else 1
        if law == "power" and weights > 1:
            raise InputError(
                f"--law power: {pair} has {weights} weights p; keep one, or fit the joint law"
            )
        several = "mixture" if of_mixtures else "joint" if weights > 1 else "power"
        own = several if law == "auto" else law
        fitter = of_mixtures(pair) if of_mixtures else fitter_of(own, pair, options)
        with of_pair(pair):
            fits[pair] = own, fitter, fitter(rows)
    return fits


def mixture_fitter(frame: pd.DataFrame, options: FitOptions) -> Callable[[str], Fitter]:
    """As `fitter_of`, each law from the weights of all pairs of the same mixture."""
    from mnmt_repro import laws
    from mnmt_repro.laws.mixture_law import SUMS_TO

    name = options.mixture_column
    if options.law != "auto" or options.groups or options.direction == "max":
        raise InputError("--mixture-column: leave out --law, --groups and --direction max")
    if not {"p", "pair"} <= set(frame.columns):
        raise InputError("--mixture-column: the table needs the columns p and pair; see --column")
    weights = frame.pivot_table("p", name, "pair", aggfunc="first", fill_value=0.0)
    whole = weights.sum(axis=1)
    if (off := (whole - 1).abs() > SUMS_TO).any():
        raise InputError(
            f"{options.file}: the weights of {name} {off.idxmax()} add up to "
            f"{whole[off].iloc[0]:.4g}, not 1; a mixture needs a row for each of its pairs"
        )
    pairs = list(map(str, weights))

    def fit(pair: str, rows: pd.DataFrame) -> Fit:
        mixed = rows.join(weights, on=name)
        return laws.fit_mixture_law(
            mixed, pair, pairs, n="n", loss="loss", errors=options.errors, label=pair
        )

    return lambda pair: partial(fit, pair)


def fitter_of(law: str, pair: str, options: FitOptions) -> Fitter:
    """What fits a law to the rows of a pair, with the columns and settings of the options."""
    from mnmt_repro import laws

    runs = options.groups
    if law == "additive":
        return lambda rows: laws.fit_additive_law(
            rows["n"],
            rows["d"],
            rows["loss"],
            groups=rows[runs] if runs else None,
            huber_delta=HUBER_DELTA if options.loss == "huber" else None,
            log_loss=options.log,
            label=pair,
        )
    settings: dict[str, Any] = {
        "errors": options.errors,
        "direction": options.direction,
        "ceiling": options.ceiling,
        "label": pair,
    }
    if law == "power":
        return lambda rows: laws.fit_power_law(
            rows["n"], rows["loss"], groups=rows[runs] if runs else None, **settings
        )
    settings |= {"n": "n", "loss": "loss", "groups": runs}
    if law == "joint":
        return lambda rows: laws.fit_joint_law(rows, **settings)
    return lambda rows: laws.fit_fraction(rows, **settings | {"form": law})


def strange_rows(
    rows: pd.DataFrame, fitter: Fitter, fit: Fit, options: FitOptions
) -> tuple[list[str], Fit]:
    """Name the rows that no noise explains, by their line in the file; and fit the others.

    Rows are left out one by one, the furthest first: a gross one hides the next, and bends the law
    away from good ones.
    """
    from mnmt_repro.laws import outliers

    strange: list[str] = []
    clean, measure = fit, options.names()["loss"]
    while clean.identified and len(strange) < MOST_NAMED and (far := outliers(clean)):
        row, distance = next(iter(far.items()))
        loss, where = rows["loss"].iloc[row], f"line {rows.index[row]}"
        if "run_id" in rows:  # of a results store
            where = f"run {rows['run_id'].iloc[row]}"
        strange.append(
            f"{where}: {measure} {loss:.4g} is {distance:.0f} standard deviations from "
            "the law of the other rows; check it"
        )
        rows = rows.drop(rows.index[row])
        clean = fitter(rows)
    return strange, clean if clean.identified else fit


def as_options(text: str) -> str:
    """A message of the library, with its arguments as options and its rows as lines of the file.

    >>> as_options('the score falls with size, against direction="max"')
    'the score falls with size, against --direction max'
    """
    text = re.sub(r"\brow (\d+)\b", r"line \1", text)
    text = re.sub(r"^(groups|ceiling|errors): ", r"--\1: ", text)
    text = re.sub(r"\bgroups=$", "--groups", text)
    return re.sub(r'(\w+)="(\w+)"', r"--\1 \2", text)


@contextlib.contextmanager
def of_pair(pair: str = "") -> Iterator[None]:
    """Name the pair in an `InputError` about its rows, and arguments as options."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{pair}: " * bool(pair) + as_options(str(error))) from error


def _fractions(fit: Fit, asked: Asked) -> tuple[pd.DataFrame, str]:
    """Effective fraction at each fitted weight, ``p, f, f_low, f_high``, and how its interval is.

    Of the joint law where it has the single pair (Eq. 10), and of Eqs. 12 and 13; else empty.
    """
    from mnmt_repro.laws import FractionLaw, JointLaw, effective_fraction

    columns = ["p", "f", "f_low", "f_high"]
    by_refits = isinstance(fit.law, FractionLaw) and fit.spare > 0
    if not fit.identified or not (by_refits or isinstance(fit.law, JointLaw) and 1.0 in fit.law.p):
        return pd.DataFrame(columns=columns), ""
    if by_refits and asked in ("auto", "t"):
        asked = fit.resampling
    return effective_fraction(fit, method=asked)[columns], fit.method_in_words(asked)


class FittedPair:
    """What `fit` says of one pair: its law, with intervals and diagnostics."""

    def __init__(
        self,
        pair: str,
        law: str,
        fitter: Fitter,
        fit: Fit,
        rows: pd.DataFrame,
        options: FitOptions,
    ) -> None:
        from mnmt_repro.laws import lack_of_fit

        self.pair, self.law, self.fit = pair, law, fit
        with of_pair(pair):
            self.strange, clean = strange_rows(rows, fitter, fit, options)
            self.fitness = lack_of_fit(clean)
            self.lack = self.fitness.words
            if self.strange:
                self.lack = f"without the rows that stand out, {self.lack}"
            self.text = as_options(fit.describe(options.interval))
            self.method = fit.method_in_words(options.interval) if fit.identified else ""
            self.fraction, self.fraction_method = _fractions(fit, options.interval)
            self.doubts = fit.fraction_doubts() if fit.identified else ()
            self.left_out = left_out(fit)


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
    additive = options.law == "additive"
    if not additive and (options.log or options.loss != "squares"):
        raise InputError("--loss and --log belong to --law additive; add it")
    if additive and options.errors == "relative":
        raise InputError("--errors: --law additive has --log for errors that grow with the loss")
    if options.report and options.report.exists():
        raise InputError(f"--report {options.report}: is there already; name another file")
    outcomes, notes = fit_file(options)
    if options.json:
        print_json([content(each, options.interval) | {"notes": notes} for each in outcomes])
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
    fits, rows = fit_table(frame, options), by_pair(frame)
    return [FittedPair(pair, *fits[pair], rows[pair], options) for pair in fits], notes


def content(outcome: FittedPair, interval: Asked) -> dict[str, Any]:
    """What ``--json`` prints of a pair."""
    fit = outcome.fit
    fractions = outcome.fraction.set_index("p").rename(columns={"f_low": "low", "f_high": "high"})
    return {
        "pair": outcome.pair,
        "law": outcome.law,
        "params": fit.params,
        "stderr": fit.stderr,
        "interval": fit.interval(interval),
        "interval_method": outcome.fit.method_of(interval),
        "interval_words": outcome.method,
        "fraction": {f"{p:g}": each for p, each in fractions.to_dict("index").items()},
        "r2": fit.r2,
        "observations": fit.observations,
        "identified": fit.identified,
        "fraction_doubts": list(outcome.doubts),
        "reason": fit.reason,
        "active_bounds": list(fit.active_bounds),
        "lack_of_fit": asdict(outcome.fitness) | {"words": outcome.lack},
        "outliers": outcome.strange,
        "left_out": outcome.left_out,
    }


def lines(outcome: FittedPair) -> Iterator[str]:
    """What `fit` prints of a pair."""
    fit = outcome.fit
    yield outcome.text
    if len(outcome.fraction):
        other = outcome.fraction_method if outcome.fraction_method != outcome.method else ""
        yield f"effective fraction f(p), with its 95 % interval{f' ({other})' if other else ''}:"
        yield outcome.fraction.to_string(index=False, float_format=lambda x: f"{x:.4g}")
    if fit.identified and fit.degrees_of_freedom < 1:
        yield "as many parameters as rows: nothing is left to judge the law by"
    elif fit.identified:
        yield f"lack of fit: {outcome.lack}"
    if outcome.left_out:
        mine, mean = (f"{100 * outcome.left_out[name]:.2g} %" for name in ("predicted", "naive"))
        yield f"error on mixtures left out: {mine}; of the mean of the others at the size: {mean}"
    yield from outcome.strange
