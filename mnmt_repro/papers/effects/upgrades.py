"""Upgraded models against those trained from scratch: Tables 1 and 12, and Figure 4.

Each frame has the printed numbers beside ours. The paper prints points of spBLEU, and chrF++ of
100. Ours are cross-entropies, and scores of translations where a run was decoded. A *lead* puts
both on one axis: by how many per cent the upgraded model is better than the one from scratch, with
a lower loss here and a higher spBLEU in the paper.

Figure 4 (`recovery`) shows quality against updates. Of a mean loss in nats the quality is
exp(-loss), the geometric mean of a token's probability; its share of the baseline's is a ratio of
perplexities.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.papers.cohorts import languages25
from mnmt_repro.papers.cohorts.names import pair_name
from mnmt_repro.papers.cohorts.software25 import BASELINE_SHARES, KINDS, SHARES, SUFFIX
from mnmt_repro.papers.effects import published
from mnmt_repro.papers.effects.audit import rows_of
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.forgetting import in_per_cent
from mnmt_repro.papers.effects.noise import Measure, NoRowsYet
from mnmt_repro.papers.effects.updates_saved import pace
from mnmt_repro.papers.effects.variants import (
    NO_GAIN,
    TABLE3,
    VariantAt,
    Variants,
    functional,
    gap_shares,
    lower_by,
)

LAST_SHARES = {"M20": 1.0} | {
    model: share
    for kind in KINDS
    for model, share in ((f"M25{SUFFIX[kind]}", 1.0), (f"Mt25{SUFFIX[kind]}", SHARES[kind][-1]))
}
"""Models of Table 1, in its order, and the share of the baselines' updates that it has them at."""
UNSCALED, UNSAMPLED = "Mt25, no learning-rate scaling", "Mt25, no up-sampling"
HALVED = "M25, rate halved"
MODEL_CHANGES = {"Mt25": "same size", "Mt25-wide": "wider", "Mt25-deep": "deeper"}
"""What each upgrade does to the model."""
LEAD = ["upgraded", "group", "lead", "low", "high", "paper"]
"""Columns of a frame of leads."""
EARLY_SHARE = 0.1
STATED = {("M25-wide", EARLY_SHARE): 78.0, ("Mt25-wide", EARLY_SHARE): 97.0}
"""Per cent of M25-wide's score after 10k updates (Section 5.3; the second is "over 97 %")."""


@framed()
def table1(variants: Variants) -> Rows:
    """Table 1: a row a model and group of languages.

    M20 knows the original languages only, and counts tokens of its own vocabulary.

    Returns
    -------
    DataFrame
        ``model, updates, group``, printed scores and their difference from the baseline, our
        ``loss, chrF++, spBLEU, piece BLEU`` (over the run's own pieces, so that only models of one
        vocabulary compare), the gain over the baseline (`variants.GAIN`), how many points of chrF++
        it is ahead (``chrF++ value, chrF++ low, chrF++ high``), ``seeds``.
    """
    printed = {(c.model, c.group, c.metric): c.value for c in rows_of(published.printed_table(1))}
    for model, share in LAST_SHARES.items():
        mine, old = variants.variant(model, share), published.UPGRADES.get(model)
        baseline = variants.variant(old, 1.0) if old else mine
        for group in published.GROUPS:
            if (model, group, "spbleu") not in printed:
                continue
            pairs = languages25.directions_of("original" if model == "M20" else group)
            theirs = printed[model, group, "spbleu"]
            yield {
                "model": model,
                "updates": share,
                "group": group,
                "spBLEU, paper": theirs,
                "chrF++, paper": printed[model, group, "chrfpp"],
                "difference, paper": theirs - printed.get((old, group, "spbleu"), math.nan),
                "loss": variants.mean(mine, pairs),
                "chrF++": variants.mean(mine, pairs, "chrfpp"),
                "spBLEU": variants.mean(mine, pairs, "spbleu"),
                "piece BLEU": variants.mean(mine, pairs, "piece_bleu"),
                **(variants.gain(mine, baseline, pairs) if old else NO_GAIN),
                **_points_ahead(variants, mine, baseline, pairs),
                "seeds": variants.seeds(pairs, mine, baseline),
            }


def _points_ahead(
    variants: Variants, mine: VariantAt, baseline: VariantAt, pairs: tuple[str, ...]
) -> dict[str, float]:
    """Points of chrF++ that a model is ahead of its baseline; NaN for itself, or not decoded."""
    ahead = Measure(value=math.nan)
    with contextlib.suppress(NoRowsYet):
        both = variants.samples(pairs, mine, baseline, metric="chrfpp")
        if mine != baseline:
            ahead = functional(lambda treated, control: treated - control, *both)
    return {f"chrF++ {end}": getattr(ahead, end) for end in ("value", "low", "high")}


def leads(table: pd.DataFrame) -> pd.DataFrame:
    """Leads over the models from scratch, of `table1` or `old_training_counted`.

    Returns
    -------
    DataFrame
        The columns `LEAD`: ours in per cent of the loss from scratch, with its 95 % interval;
        `paper` in per cent of the spBLEU from scratch, NaN where nothing is printed.
    """
    upgraded = table.rename(columns={"model": "upgraded", "gain, %": "lead"})
    upgraded = upgraded[
        upgraded["upgraded"].isin(list(MODEL_CHANGES)) | ("from scratch" in upgraded)
    ]
    difference = upgraded.get("difference, paper", pd.Series(math.nan, upgraded.index))
    scratch = upgraded.get("spBLEU, paper", difference) - difference
    return upgraded.assign(paper=100 * difference / scratch)[LEAD].reset_index(drop=True)


@framed()
def old_training_counted(variants: Variants) -> Rows:
    """Table 1's upgrades against baselines of as many updates as M20 and upgrade together (ours).

    Parameters
    ----------
    variants
        Of the cohort ``software25-total``. Of `TABLE3` the upgrade of the same size without
        learning-rate scaling is a row, too. The last row is no upgrade: the baseline that goes on
        at half the rate, against itself at the whole rate.

    Returns
    -------
    DataFrame
        ``upgraded, from scratch`` (names, with updates of their own), ``group`` (of
        `published.PARTS`), the loss of each, the gain of the upgraded one (`variants.GAIN`), how
        many target tokens of the group each was shown.
    """
    share = LAST_SHARES["Mt25"]
    compared = [
        *(
            (variants.variant(new, LAST_SHARES[new]), old)
            for new, old in published.UPGRADES.items()
        ),
        (variants.variant(UNSAMPLED, share), "M25"),
        (VariantAt(TABLE3, UNSCALED, share), "M25"),
        (variants.variant(HALVED, 1 + share), "M25"),
    ]
    for treated, old in compared:
        control = variants.variant(old, 1 + LAST_SHARES.get(treated.name, share))
        for group in published.PARTS:
            pairs = languages25.directions_of(group)
            yield {
                "upgraded": f"{treated.name}, {treated.share:.0%}",
                "from scratch": f"{control.name}, {control.share:.0%}",
                "group": group,
                "loss, upgraded": variants.mean(treated, pairs),
                "loss, from scratch": variants.mean(control, pairs),
                **variants.gain(treated, control, pairs),
                "tokens, upgraded": _shown(variants, treated, pairs),
                "tokens, from scratch": _shown(variants, control, pairs),
            }


def _shown(variants: Variants, variant: VariantAt, pairs: tuple[str, ...]) -> float:
    """Target tokens of some directions that a run has been shown, the mean over seeds."""
    rows = variants.of(variant.cohort)
    mine = rows[
        (rows["variant"] == variant.name)
        & np.isclose(rows["updates_share"], variant.share)
        & rows["pair"].isin(pairs)
    ]
    return float(mine.groupby("run_id")["pair_target_tokens"].sum().mean())


def table12(variants: Variants) -> pd.DataFrame:
    """Table 12: a row a direction and upgraded model, beside its baseline.

    Returns
    -------
    DataFrame
        ``pair, group, level``; ``languages`` (added; related to them, and up-sampled too; other
        original ones) and ``direction``; ``upgraded``; of each side_of (from scratch, upgraded) the
        printed scores and our ``loss, chrF++, spBLEU``; ``difference, paper`` in points of spBLEU
        and ``gain, %``.
    """
    printed = published.printed_scores().set_index(["model", "pair"])
    pairs = languages25.directions_of("all")
    parts = []
    for new, old in published.UPGRADES.items():
        both = {
            "from scratch": variants.variant(old, 1.0),
            "upgraded": variants.variant(new, LAST_SHARES[new]),
        }
        part = printed.loc[new, ["group", "level"]].reindex(pairs).assign(upgraded=new)
        for side, variant in both.items():
            theirs = printed.loc[variant.name].reindex(pairs)
            for metric, title in published.METRIC_NAMES.items():
                part[f"{title}, {side}, paper"] = theirs[metric]
            part[f"loss, {side}"] = variants.by_direction(variant, pairs)
            for metric, title in published.METRIC_NAMES.items():
                part[f"{title}, {side}"] = variants.by_direction(variant, pairs, metric)
        part["difference, paper"] = (
            part["spBLEU, upgraded, paper"] - part["spBLEU, from scratch, paper"]
        )
        try:
            both_samples = variants.samples(pairs, *both.values())
        except NoRowsYet:
            part["gain, %"] = math.nan
        else:
            part["gain, %"] = lower_by(*(sample.by_direction for sample in both_samples))
        parts.append(part.rename_axis("pair").reset_index())
    table = pd.concat(parts, ignore_index=True)
    grouping = languages25.GROUPINGS["Mt25"]
    kinds = {code: "added" for code in grouping.added} | dict.fromkeys(
        grouping.related, "related, up-sampled"
    )
    codes = table["pair"].map(languages25.foreign)
    table.insert(3, "languages", codes.map(kinds).fillna("other original"))
    table.insert(4, "direction", table["pair"].map(languages25.side_of))
    return table


def by_direction(table: pd.DataFrame) -> pd.DataFrame:
    """Of `table12` a row a direction: each upgraded model's printed difference and our gain."""
    wide = table.pivot(index=["pair", "languages"], columns="upgraded")
    columns = {
        f"{model}, {whose}": wide[column, model]
        for model in published.UPGRADES
        for whose, column in (("paper", "difference, paper"), ("ours, %", "gain, %"))
    }
    return (
        pd.DataFrame(columns)
        .reset_index()
        .sort_values("pair", key=lambda pairs: pairs.map(pair_name), ignore_index=True)
    )


@framed(*LEAD)
def by_kind(variants: Variants, table: pd.DataFrame) -> Rows:
    """Where the leads come from: leads over kinds of directions.

    Parameters
    ----------
    table
        From `table12`, of the same variants.

    Returns
    -------
    DataFrame
        The columns `LEAD`; `group` is the kind of language, then ``out`` of English or ``into`` it.
    """
    kinds = {"added": "added", "related": "related, up-sampled", "other": "other original"}
    for new, old in published.UPGRADES.items():
        both = variants.variant(new, LAST_SHARES[new]), variants.variant(old, 1.0)
        for name, kind in kinds.items():
            for side in (languages25.OUT, languages25.INTO):
                columns = table[["upgraded", "languages", "direction"]]
                mine = table[(columns == [new, kind, side]).all(axis=1)]
                gain = variants.gain(*both, tuple(mine["pair"]))
                scratch = mine["spBLEU, from scratch, paper"].mean()
                yield {
                    "upgraded": new,
                    "group": f"{name}, {side.partition(' ')[0]}",
                    "lead": gain["gain, %"],
                    "low": gain["low"],
                    "high": gain["high"],
                    "paper": 100 * mine["difference, paper"].mean() / scratch,
                }


@framed()
def budgets(rows: pd.DataFrame) -> Rows:
    """How many tokens the upgrades read, and what that does to old and to new languages.

    Parameters
    ----------
    rows
        Of the cohort ``software25-main`` and one test set, from `results.load`.

    Returns
    -------
    DataFrame
        ``model, tokens, tokens / parameter``; ``new languages, %``: by how much the loss lies above
        that of the model from scratch; ``old languages, %``: above M20's. Losses are summed over
        the text, because the vocabularies differ, and averaged over directions and seeds.
    """
    above = _logs_above(rows)

    def change(*compared: Any) -> float:
        return 100 * math.expm1(above(*compared).mean())

    for new, old in published.UPGRADES.items():
        for share, own in rows[rows["variant"] == new].groupby("updates_share"):
            tokens, n = own["target_tokens"].mean(), own["n_total"].max()
            yield {
                "model": f"{MODEL_CHANGES[new]}, {n / 1e6:.1f}M parameters",
                "tokens": tokens,
                "tokens / parameter": tokens / n,
                "new languages, %": change("added", (new, share), (old, 1.0)),
                "old languages, %": change("original", (new, share), ("M20", 1.0)),
            }


def falls_of_baselines(rows: pd.DataFrame) -> pd.Series[float]:
    """Per cent by which losses of models from scratch fall over the last half of their updates.

    Parameters
    ----------
    rows
        Of the cohort ``software25-main`` and one test set, from `results.load`.

    Returns
    -------
    Series
        A number for each model, of the mean loss over directions and seeds.
    """
    scratch = rows[rows["variant"].isin([*published.UPGRADES.values()])]
    means = scratch.pivot_table("cross_entropy", "variant", "updates_share")
    return 100 * (1 - means[1.0] / means[0.5])


def _logs_above(rows: pd.DataFrame) -> Callable[..., pd.Series[float]]:
    """How far the log of a group's loss lies above that of another run: a mean for each seed.

    Losses are summed over the text, because the vocabularies differ.
    """
    rows = rows.assign(nats=rows["cross_entropy"] * rows["test_tokens"])
    keys = ["variant", "updates_share", "seed"]
    logs = rows.pivot_table(index=keys, columns="pair", values="nats").map(math.log)

    def above(group: str, own: tuple[str, Any], base: tuple[str, float]) -> pd.Series[float]:
        pairs = list(languages25.directions_of(group))
        return (logs.loc[own, pairs] - logs.loc[base, pairs]).mean(axis=1)

    return above


@framed()
def ways_to_more_languages(rows: pd.DataFrame) -> Rows:
    """What new languages take: an upgrade, or training all languages again from scratch.

    Parameters
    ----------
    rows
        As for `budgets`.

    Returns
    -------
    DataFrame
        ``model, way`` (in words), ``updates`` (their share from scratch), ``tokens``, ``hours`` on
        one thread at the pace of the model's fastest run, ``seeds``; for ``new`` languages against
        the model from scratch, and for ``old`` ones against M20, by how many per cent the loss is
        higher: ``new, new low, new high`` and so on, with t intervals over seeds.
    """
    above = _logs_above(rows)
    paces = pace(rows)
    runs = list(rows.groupby(["variant", "updates_share"]))
    for new, old in published.UPGRADES.items():
        for (model, share), own in runs:  # the model from scratch comes first
            if model != new and (model, share) != (old, 1.0):
                continue
            tokens = own["target_tokens"].mean()
            how = "all languages again, from scratch" if model == old else "upgrade"
            row = {"model": model, "way": f"{MODEL_CHANGES[new]}: {how}", "updates": share}
            row |= {"tokens": tokens, "hours": paces[str(model)] * tokens / 3600}
            row["seeds"] = own["seed"].nunique()
            for name, group, base in (("new", "added", old), ("old", "original", "M20")):
                more = in_per_cent(above(group, (model, share), (base, 1.0)))
                row |= {name: more.value, f"{name} low": more.low, f"{name} high": more.high}
            yield row


def deeper_above_wider(rows: pd.DataFrame, group: str) -> Measure:
    """By how many per cent a group's loss is higher in the deeper upgrade than in the wider one.

    Both have had half of the baseline's updates. The t interval is over old models, because both
    upgrades of a seed share one.

    Parameters
    ----------
    rows
        As for `budgets`.
    group
        One of `languages25.directions_of`, such as ``"original"``.
    """
    return in_per_cent(_logs_above(rows)(group, ("Mt25-deep", 0.5), ("Mt25-wide", 0.5)))


def printed_recovery() -> dict[tuple[str, float], float]:
    """Per cent of the baseline's spBLEU by model and share of updates, from Tables 1 and 3."""
    one = published.over_all(1, "metric == 'spbleu'")
    at_30k = published.over_all(3, "setting == 'full recipe'")
    recovered = dict(STATED)
    for new, old in published.UPGRADES.items():
        recovered[old, 1.0] = 100.0
        recovered[new, 0.3] = 100 * at_30k[new] / one[old]
        recovered[new, LAST_SHARES[new]] = 100 * one[new] / one[old]
    return recovered


@framed()
def recovery(variants: Variants) -> Rows:
    """How much of its baseline a model has after each share of the updates, over all directions.

    Returns
    -------
    DataFrame
        ``model, shape, arm, updates``; ``spBLEU, paper``, per cent of the baseline's; our ``loss``;
        ``quality``, per cent of the baseline's exp(-loss); ``closed``, per cent of the gap between
        the baseline after a tenth of its updates and after all, with its interval
        (`variants.gap_shares`); ``seeds``.
    """
    printed, pairs = printed_recovery(), languages25.directions_of("all")
    unknown = Measure(value=math.nan)
    for kind in KINDS:
        old, new = f"M25{SUFFIX[kind]}", f"Mt25{SUFFIX[kind]}"
        ends = variants.variant(old, 1.0), variants.variant(old, EARLY_SHARE)
        for model, share in [(old, s) for s in BASELINE_SHARES] + [(new, s) for s in SHARES[kind]]:
            mine = variants.variant(model, share)
            try:
                measures = gap_shares(*variants.samples(pairs, mine, *ends))
            except NoRowsYet:
                measures = {}
            quality, closed = (measures.get(n, unknown) for n in ("perplexity_ratio", "closed"))
            yield {
                "model": model,
                "shape": MODEL_CHANGES[new],
                "arm": "upgrade" if model == new else "scratch",
                "updates": share,
                "spBLEU, paper": printed.get((model, share), math.nan),
                "loss": variants.mean(mine, pairs),
                "quality": 100 * quality.value,
                "closed": 100 * closed.value,
                "low": 100 * closed.low,
                "high": 100 * closed.high,
                "seeds": variants.seeds(pairs, mine, *ends),
            }
