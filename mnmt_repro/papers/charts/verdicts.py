"""Verdicts on pages: the badge of a claim, and how many claims have which verdict."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import NOT_MEASURED, STYLE, Badge, typeset
from mnmt_repro.papers.charts.measures import half_width_written, measured, named, written
from mnmt_repro.papers.charts.provenance import counted
from mnmt_repro.papers.charts.theme import plain
from mnmt_repro.papers.claims.report import STORED, headlines
from mnmt_repro.papers.claims.schema import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    claims_by_id,
)

VERDICTS_PAGE = "../verdicts.html"  # from a page of results
SOURCE = f"{STORED.as_posix()}, written from the stored runs by mnmt-repro verify --write."


def headline(stored: pd.DataFrame, claim: str) -> pd.Series:
    """The stored row that gives a claim's verdict, with the columns of `claims.report.COLUMNS`.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    rows = headlines(stored)
    rows = rows[rows["claim"] == claim]
    if rows.empty:
        raise InputError(f"claim {claim} has no stored verdict: run `mnmt-repro verify --write`")
    return rows.iloc[0]


def shown_verdict(row: pd.Series) -> str:
    """What pages call a stored verdict: an undecided one without a value has a word of its own.

    >>> shown_verdict(pd.Series({"verdict": "undecided", "value": float("nan")}))
    'not measured yet'
    >>> shown_verdict(pd.Series({"verdict": "undecided", "value": 3.1}))
    'undecided'
    """
    waits = row["verdict"] == UNDECIDED and pd.isna(row["value"])
    return NOT_MEASURED if waits else str(row["verdict"])


def said(row: pd.Series) -> str:
    """The verdict of a stored row, whether it is near its limit, and whether this limit came late.

    >>> said(pd.Series({"verdict": "reproduced", "value": 4.0, "post_hoc": "yes"}))
    'reproduced, post hoc'
    """
    late = ", post hoc" * (row["post_hoc"] == "yes")
    return "barely " * _barely(row) + shown_verdict(row) + late


ENOUGH_SEEDS = 6
"""Old models that must agree for a plain difference to be fairly sure."""
NEAR = 0.1
"""An end of an interval that is nearer to the limit, in halves of the interval, is barely clear."""


def _barely(row: pd.Series) -> bool:
    """Whether a decided claim would be undecided with an interval that is a little wider.

    >>> row = {"verdict": "reproduced", "low": 0.01, "high": 1.19, "resolution": 0.59}
    >>> _barely(pd.Series(row | {"limit": "0"})), _barely(pd.Series(row | {"limit": "-0.2 to 2"}))
    (True, False)
    """
    if row["verdict"] not in (REPRODUCED, NOT_REPRODUCED) or not row.get("resolution", 0) > 0:
        return False
    apart = [abs(row[end] - limit) for end in ("low", "high") for limit in _limits(row)]
    return bool(min(apart) < NEAR * row["resolution"])


def reach(row: pd.Series) -> str:
    """Why an effect with a range of limits is undecided, in words; empty where it is decided.

    Parameters
    ----------
    row
        A stored row whose effect and limits are shares.

    >>> row = {"verdict": "undecided", "low": -0.43, "high": -0.098, "limit": "-0.1 to 0.1"}
    >>> reach(pd.Series(row))
    'Undecided: 0.6 % of the interval lies between the limits. '
    """
    if row["verdict"] != UNDECIDED or pd.isna(row["low"]):
        return ""
    inside = min(row["high"], max(_limits(row))) - max(row["low"], min(_limits(row)))
    share = inside / (row["high"] - row["low"])
    return f"Undecided: {100 * share:.1f} % of the interval lies between the limits. "


def effect_of(row: pd.Series) -> str:
    """The effect behind a stored verdict with its interval, or why there is none."""
    if pd.isna(row["value"]):
        return f"{shown_verdict(row)}: {reason(row)}"
    numbers = measured(row["measure"], row, row["claim"])
    return typeset(f"{named(row['measure'], row['claim'])}: {numbers}")


def reason(row: pd.Series) -> str:
    """Why a claim has no effect: the first sentence of what is stored."""
    return str(row["why"]).partition(". ")[0] or "no rows yet"


def badge(stored: pd.DataFrame, claim: str, page: str = VERDICTS_PAGE) -> Badge:
    """The badge of a claim, which leads to its entry on the page of verdicts.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    row, title = headline(stored, claim), claims_by_id()[claim].title
    about = f"{title}. On {plain(row['setting'])}: {effect_of(row)}"
    return Badge(
        verdict=shown_verdict(row),
        text=f"{claim} {said(row)}",
        title=about,
        href=f"{page}#{anchor(claim)}",
        about=title,
    )


def anchor(claim: str) -> str:
    """Name of a claim's entry on the page of verdicts, in its address.

    >>> anchor("A6")
    'claim-a6'
    """
    return f"claim-{claim.lower()}"


def tally(stored: pd.DataFrame, page: str = "") -> list[Badge]:
    """How many claims have which verdict, a badge each, which leads to these in the list."""
    counts = headlines(stored).apply(shown_verdict, axis=1).value_counts()
    return [
        Badge(
            verdict=name,
            text=f"{counts[name]} {name}",
            href=f"{page}#only-{name.replace(' ', '-')}",
        )
        for name in STYLE
        if name in counts
    ]


def how_sure(stored: pd.DataFrame, claim: str) -> str:
    """How sure a claim's verdict is, in a word and a reason.

    High: robust on generated and on real text. Medium: robust on one of them, or a plain
    difference over at least six seeds. Low: everything else.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    row = headline(stored, claim)
    beside = stored[(stored["claim"] == claim) & (stored["role"] == "beside")]
    word, seeds = "Low", int(row["seeds"])
    known = claims_by_id().get(claim)  # a report may be of another folder's claims
    runs = ", ".join(known.headline.cohorts[:1]) if known else "its own"
    if pd.isna(row["value"]):
        listed = f"cohort {runs} in the list of `mnmt-repro sweep`"
        more = f" ({listed})" * row["why"].startswith("its ")
        more += "; runs that read more text would raise this" * row["why"].startswith("too little")
        return f"**Low**: {reason(row)}{more}."
    if row["robust"] == "yes":
        word = "High" if beside["verdict"].eq(row["verdict"]).any() else "Medium"
        why = "robust: text-matched training agrees, and half of the text changes little"
    elif row["robust"] == "no":
        why = "not robust: text-matched training or half of the text gives another result"
    elif claim.startswith("A"):
        why = f"{_apart(row)}. {_lacking(stored, row)}"
    elif row["why"]:
        why = f"{row['why']}; more seeds (cohort {runs}) would give one"
    elif seeds < ENOUGH_SEEDS:
        few = f"{counted(seeds, 'old model')} {'is' if seeds == 1 else 'are'} too few"
        raises = f"{ENOUGH_SEEDS - seeds} more that agree (cohort {runs}) would raise this"
        why = f"{_distance(row)}; {few}, and {raises}"
    elif row["verdict"] == UNDECIDED:
        why = f"{_distance(row)}; more old models (cohort {runs}) would narrow it"
    else:
        word, why = "Medium", f"{seeds} old models agree; runs on generated text would raise this"
    return f"**{word}**: {why}."


def _limits(row: pd.Series) -> list[float]:
    """The limit of a stored row, or both ends of its range."""
    return [float(end) for end in str(row["limit"]).split(" to ")]


def _distance(row: pd.Series) -> str:
    """How far an effect with an interval lies from its limit."""
    if row["verdict"] == UNDECIDED:
        return "the interval includes the limit"
    if not row["resolution"] > 0:
        return "all draws lie at an end of the curve"
    times = min(abs(row["value"] - limit) for limit in _limits(row)) / row["resolution"]
    return f"the limit is {times:.1f} half-widths of the interval away"


def _apart(row: pd.Series) -> str:
    """What speaks against a verdict on Paper A that is not known to be robust."""
    if pd.isna(row["low"]):
        return "there is no interval"
    if row["verdict"] == UNDECIDED:
        half = half_width_written(row["measure"], row["resolution"], row["claim"])
        return f"the interval ({half}) includes the limit"
    return f"only one way of training stands behind it (median seeds a cell: {row['seeds']:.0f})"


def _lacking(stored: pd.DataFrame, row: pd.Series) -> str:
    """Which runs would raise a verdict on Paper A of which it is not known whether it is robust."""
    name, of = row["claim"], claims_by_id()[row["claim"]]
    mine = stored[(stored["claim"] == name) & stored["limit"].ne("") & stored["value"].notna()]
    half, matched = (mine[mine["role"] == role] for role in ("half", "text-matched"))
    if of.headline.tier == "mini":
        return "Runs with a final decay and more seeds would raise this"
    cohort = f"cohort {of.robustness.get('text-matched', of.headline).cohorts[0]}"
    runs = "More seeds and text" if row["verdict"] == UNDECIDED else "Text"
    text = f"{runs}-matched runs of this grid ({cohort}) would raise this, if they agree"
    if len(matched):
        value = measured(row["measure"], matched.iloc[0], name)
        text = f"Text-matched runs give {value}; more of them ({cohort}) would raise this"
    if len(half):
        less, seeds = half[["value", "seeds"]].iloc[0]
        across = any((less - limit) * (row["value"] - limit) < 0 for limit in _limits(row))
        text += f". With half of the text (median seeds a cell: {seeds:.0f}) the effect is "
        text += written(row["measure"], less, name) + ", on the other side of the limit" * across
    return text
