"""What the tables of the central comparison say, in sentences, whatever rows are stored.

Each function takes a table of `mnmt_repro.figures.upgrades` and returns Markdown, empty where its
rows are missing. A gain can be told from zero where its interval leaves zero out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
from scipy import stats

from mnmt_repro.claims.paired import Variant
from mnmt_repro.experiments.languages25 import directions_of
from mnmt_repro.figures.audit.tables import UPGRADES
from mnmt_repro.figures.contrasts import Bench, interval
from mnmt_repro.figures.upgrades import BUDGETS, HALVED, TABLE3, UNSAMPLED, UNSCALED


def table1(table: pd.DataFrame) -> str:
    """What `upgrades.table1` says of each upgraded model, and whether chrF++ says the same."""
    lines = []
    found = table.dropna(subset=["gain, %"])
    for model, rows in found.groupby("model", sort=False):
        told = ", ".join(f"{row['group']} {_gain(row)}" for row in rows.to_dict("records"))
        lines.append(f"- **{model}** over {UPGRADES[str(model)]}: {told}.")
    both = found.dropna(subset=["chrF++ gain"])
    if len(both):
        clear = _clear(both) & (both["chrF++ low"] * both["chrF++ high"] > 0)
        alike = clear & (both["gain, %"] * both["chrF++ gain"] > 0)
        lines.append(
            f"- **chrF++**: in {alike.sum()} of {len(both)} comparisons its gain and that of the "
            "loss can both be told from zero, with the same sign."
        )
    return "\n".join(lines)


def equal_total(table: pd.DataFrame, bench: Bench) -> str:
    """What `upgrades.old_training_counted` comes to.

    Parameters
    ----------
    bench
        Of which the table is.
    """
    known = table.dropna(subset=["gain, %"])
    name = known["upgraded"].str.replace(r", [^,]*$", "", regex=True)
    upgraded = known[~name.isin([UNSAMPLED, UNSCALED, HALVED])]
    parted = ("original", "other original", "related", "added")
    old, other, related, added = (upgraded[upgraded["group"] == group] for group in parted)
    if old.empty or added.empty:
        return ""
    text = 100 * added["tokens, upgraded"] / added["tokens, from scratch"]
    lines = [
        f"- **Original languages**: gains of {_gains(old)}; {_told(old)}",
        f"- **Of these, not up-sampled**: {_gains(other)}; {_told(other)}{_alone(other)}",
        f"- **Of these, up-sampled as relatives of added ones**: {_gains(related)}; "
        f"{_told(related)}",
        f"- **Added languages**: gains of {_gains(added)}; {_told(added)} The upgraded models were "
        f"shown {_listed(f'{share:.0f}' for share in text)} % of the text of these languages that "
        "the longer baselines were.",
    ]
    for variant, what in ((UNSAMPLED, "up-sampling"), (UNSCALED, "learning-rate scaling")):
        rows = known[name == variant].set_index("group")
        if {"other original", "related", "added"} <= set(rows.index):
            lines.append(
                f"- **Without {what}**, compared at the same size only: "
                f"{_gain(rows.loc['other original'])} on the original languages that the recipe "
                f"does not up-sample, {_gain(rows.loc['related'])} on their relatives of added "
                f"ones, {_gain(rows.loc['added'])} on the added ones."
            )
    lines += _rate_or_forgetting(bench, known[name == HALVED])
    return "\n".join(lines)


def _rate_or_forgetting(bench: Bench, halved: pd.DataFrame) -> list[str]:
    """What scaling is worth to the upgrade beside what half the rate is worth to a baseline.

    On languages that are neither added nor up-sampled.
    """
    share, group = BUDGETS["Mt25"], "other original"
    upgraded, unscaled = bench.variant("Mt25", share), Variant(TABLE3, UNSCALED, share)
    worth = bench.gain(upgraded, unscaled, directions_of(group))
    if math.isnan(worth["gain, %"]):
        return []
    told = (
        "- **Is that less forgetting, or just a lower rate?** To the upgrade scaling is worth "
        f"{_gain(worth)} on the languages that the recipe does not up-sample"
    )
    found = halved[halved["group"] == group].to_dict("records")
    if not found:
        return [f"{told}; the baseline that would tell these apart is not stored yet."]
    enough = found[0]["gain, %"] >= worth["gain, %"]
    return [
        f"{told}. To a baseline that goes on at half the rate, with nothing added and nothing to "
        f"forget, that is worth {_gain(found[0])} over the whole rate: "
        + (
            "as much, so that a lower rate by itself could be all there is to scaling."
            if enough
            else "less, so that forgetting may have a part in it, too."
        )
    ]


def agreement(table: pd.DataFrame) -> str:
    """What `upgrades.agreement` comes to, beside a coin; directions are taken as independent."""
    lines = []
    for row in table[table["rank correlation"].notna()].to_dict("records"):
        same, count = row["same sign"], row["directions"]
        coin = stats.binomtest(same, count).pvalue
        lines.append(
            f"- **{row['upgraded']}**: {same} of {count} signs agree, where a coin would have "
            f"{count / 2:g} (p = {coin:.2g}); rank correlation {row['rank correlation']:+.2f} "
            f"(p = {row['p']:.2g})."
        )
    return "\n".join(lines)


def least(table: pd.DataFrame) -> str:
    """Of `upgrades.table12` the original languages that are not up-sampled, out of English.

    Means of single directions' gains, with 95 % t-intervals over them.
    """
    kind = (table["languages"] == "other original") & (table["direction"] == "out of English")
    rows = []
    for model, gains in table[kind].groupby("upgraded", sort=False)["gain, %"]:
        known = gains.dropna()
        if len(known) > 1:
            low, high = stats.ttest_1samp(known, 0).confidence_interval(0.95)
            rows.append({"upgraded": model, "gain, %": known.mean(), "low": low, "high": high})
    if not rows:
        return ""
    return (
        "Original languages that are not up-sampled, out of English: mean gains of "
        f"{_gains(pd.DataFrame(rows))}; {_told(pd.DataFrame(rows))}"
    )


def _clear(table: pd.DataFrame) -> pd.Series[bool]:
    return table["low"] * table["high"] > 0


def _gain(row: Any) -> str:
    ends = interval(row["low"], row["high"])
    return f"{row['gain, %']:+.2f} %" + f" ({ends})" * bool(ends)


def _gains(rows: pd.DataFrame) -> str:
    records = rows.assign(upgraded=rows["upgraded"].str.replace(", ", " at ")).to_dict("records")
    return _listed(f"{_gain(row)} for {row['upgraded']}" for row in records)


def _told(rows: pd.DataFrame) -> str:
    clear = int(_clear(rows).sum())
    return f"{clear or 'none'} of {len(rows)} can be told from zero."


def _alone(rows: pd.DataFrame) -> str:
    """What gains over baselines of equal total say of training time alone."""
    if (rows["high"] < 0).any() and not (rows["low"] > 0).any():
        return " A baseline that is level or ahead is what training time alone predicts."
    if not _clear(rows).any():
        most = max(rows["high"].max(), -rows["low"].min())
        return (
            " That is as predicted of training time alone, and no proof that the models are level: "
            f"differences of up to {most:.1f} % cannot be excluded."
        )
    return " Training time alone does not account for that." * bool((rows["low"] > 0).any())


def _listed(items: Iterable[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last
