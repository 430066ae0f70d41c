"""Figure 6: what its panels compare, and why the factor f / p falls with the size of the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from IPython.display import Markdown

from mnmt_repro import results
from mnmt_repro.papers.charts.display import Figure, absent, show
from mnmt_repro.papers.charts.lines import lines
from mnmt_repro.papers.charts.measures import measured
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.charts.verdicts import headline, shown_verdict
from mnmt_repro.papers.claims.report import claim_measures, read_stored
from mnmt_repro.papers.cohorts.settled import SMALL
from mnmt_repro.papers.effects.fractions import SIMILARITY_COHORTS, Line, compare_lines
from mnmt_repro.papers.effects.settled import fractions_by_way, ways

_DECAY, _EARLY = "generated, with a final decay", "real text, stopped early"
_BESIDE, _SAME = "partner of German, stopped early", "German and Chinese, the same sentences"
_REAL, _DOMAINS = "German and French, with a final decay", "test set, real text"
COMPARED = {
    "direction": [
        Line(panel=_DECAY, label="out of one language", cohort="conlang-steady"),
        Line(panel=_DECAY, label="into one language", cohort="conlang-steady-many2one"),
        Line(panel=_EARLY, label="out of one language", cohort="webtech-en-dezh"),
        Line(panel=_EARLY, label="into one language", cohort="webtech-dezh-en"),
    ],
    "similarity": [
        *(
            Line(panel="targets, with a final decay", label=f"similarity {value:g}", cohort=name)
            for value, name in SIMILARITY_COHORTS["steady"].items()
        ),
        Line(panel=_BESIDE, label="Chinese", cohort="webtech-en-dezh", pairs=("eng-deu",)),
        Line(panel=_BESIDE, label="French", cohort="webtech-en-defr", pairs=("eng-deu",)),
    ],
    "domain": [
        Line(panel=_DOMAINS, label="in-domain", cohort="webtech-en-dezh"),
        Line(panel=_DOMAINS, label="newstest21", cohort="webtech-en-dezh", test_set="newstest21"),
    ],
    "real": [
        Line(panel=_REAL, label="out of English", cohort="webtech-steady"),
        Line(panel=_SAME, label="out of English", cohort="shared-en-dezh"),
        Line(panel=_SAME, label="into English", cohort="shared-dezh-en"),
    ],
}
"""Tab of the page to the lines that it compares."""


def fraction_panel(stored: pd.DataFrame, tab: str, caption: str) -> Figure | Markdown:
    """Draw f against p by the joint law, the mean over languages, for one entry of `COMPARED`.

    Parameters
    ----------
    stored
        From `results.load`, of all domains.
    """
    comparison = compare_lines(stored, COMPARED[tab])
    f, ends = comparison.lines, ["f", "f_low", "f_high"]
    if f.empty:
        return absent()
    means = f.astype(dict.fromkeys(ends, float))
    means = means.groupby(["panel", "line", "p"], as_index=False, sort=False)[ends].mean()
    chart = lines(
        means, "p", "f", by="line", panel="panel", interval=("f_low", "f_high"), diagonal=True,
        titles={"p": "weight p", "f": "effective fraction f"}, domain=(0, 1.3),
    )  # fmt: skip
    return show(
        chart,
        name=f"fig6-{tab}",
        alt="Effective fraction against weight, a line for each of what is compared. "
        "The dotted diagonal is f = p.",
        data=f,
        provenance=Provenance.of(comparison.rows),
        caption=caption,
    )


LONG = "conlang-settled"


def why_it_falls() -> Markdown:
    """Say whether f / p falls with size for lack of text or for the weight, as far as runs show.

    In text-matched runs a pair reads as much at p = 0.05 as alone. Lack of text is not a likely
    cause if log(f / p) falls by at least half as much there. Sizes without an interval of f in
    both are left out.
    """
    matched_runs = f"{LONG}-matched"
    rows = results.load(cohort=[LONG, matched_runs], test_set="indomain", domain="all")
    both = {way: ways(LONG)[way] for way in ("long runs", "text-matched")}
    every = fractions_by_way(rows, both, SMALL).reindex(columns=["way", "n", "times", "low"])
    shares = every.dropna().loc[lambda read: read["n"].duplicated(keep=False)]
    if shares.empty:
        return Markdown("*The long runs that would show why are not in the store that is read.*")
    usual, matched = (shares[shares["way"] == way].sort_values("n")["times"] for way in both)
    usual_fall, matched_fall = (np.log(each.iloc[0] / each.iloc[-1]) for each in (usual, matched))
    weighs = matched_fall >= usual_fall / 2
    text = rows.groupby("cohort")["target_tokens"].max() / 1e6
    small = rows[(rows["cohort"] == matched_runs) & (rows["p"].round(9) == SMALL)]
    seeds = sorted(set(small.groupby(["pair", "n_non_embedding"])["seed"].nunique()))
    cause = "is not a likely cause" if weighs else "is the likely cause"
    effect = "lifts the factor and does not stop its fall" if weighs else "stops most of the fall"
    slopes = claim_measures(read_stored(), "A7", "slope").query("role == 'text-matched'")
    slope = "".join(
        f"In text-matched runs, the slope of log f on log N is {measured('slope', row, 'A7')}. "
        for _, row in slopes.iterrows()
        if np.isfinite(row["low"])
    )
    at = f"N = {shares['n'].min():,}, the smallest size where both kinds of run have an interval,"
    return Markdown(
        "**Why may the factor [f / p](effective-fraction-panels.ipynb#the-method) fall with "
        f"size?** Lack of text {cause}. In long runs at p = {SMALL:g}, the factor falls from "
        f"{usual.iloc[0]:.1f} at {at} to {usual.iloc[-1]:.1f} at N = {shares['n'].max():,}. In "
        "[text-matched](../methods/glossary.md#term-text-matched) runs, where a pair reads as much "
        f"as alone, it falls from {matched.iloc[0]:.1f} to {matched.iloc[-1]:.1f}. So more text "
        f"{effect}. Text-matched runs read {text[matched_runs]:.0f}M target tokens and long runs "
        f"{text[LONG]:.0f}M. The doubled text may play a part, too. {slope}Such runs have "
        f"{' to '.join(map(str, seeds))} seeds a pair. The verdict on A7 reads the long runs, "
        f"and is {shown_verdict(headline(read_stored(), 'A7'))}."
    )
