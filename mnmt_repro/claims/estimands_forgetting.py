"""Estimands of what training changes in old weights: claims B12, B14 and B21 of Paper B.

They read analyses of stored runs (`mnmt_repro.results.analyses`). Each function is pure: evidence,
claim and scope in; measures out. What they read is told in ``data/claims/paper_b.yml``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.analysis.intervals import DRAWS, Measure, Measures, NoRowsYet, measure
from mnmt_repro.analysis.variants import Variant
from mnmt_repro.claims.evidence import Evidence, Units
from mnmt_repro.claims.ledger import Claim, Scope
from mnmt_repro.laws.checks import Array


def embeddings_substituted(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B12: how much less the old model loses by embeddings trained with scaled rates."""
    options = claim.options
    old = Variant(options["old_cohort"], options["old_model"], 1.0)
    units: Units = {}
    for model in options["models"]:
        variants = [
            Variant(scope.cohorts[0], f"{model}, {setting}", options["share"])
            for setting in (options["scaled"], options["unscaled"])
        ]
        found = [analysis(evidence, scope, variant, "substituted") for variant in variants]
        drops = [rows.groupby("pair")["value"].mean() for rows in of_common_seeds(*found)]
        both = pd.concat(drops, axis=1, keys=["scaled", "unscaled"]).dropna()
        if len(both) < (wanted := options["needs"]["directions"]):
            raise NoRowsYet(f"{variants[0]}: {len(both)} of {wanted} directions are substituted")
        units[model] = _forgotten(both, _weights(evidence, scope, old))
    return units


def blocks_moved(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B14: distance from the old matrix with scaled rates over that without, by block."""
    options = claim.options
    variants = [
        Variant(scope.cohorts[0], options[name], options["share"])
        for name in ("scaled", "unscaled")
    ]
    found = [analysis(evidence, scope, variant, "moved") for variant in variants]
    scaled, unscaled = map(_by_layer, of_common_seeds(*found), variants)
    change = (scaled / unscaled).map(math.log)
    return {
        "all": {
            f"{block}_change": _over_layers(change[block].to_numpy()) for block in ("old", "new")
        }
        | {
            "old_share": Measure(value=float((change["old"] < 0).mean())),
            "new_share": Measure(value=float((change["new"] > 0).mean())),
            "layers": Measure(value=len(change)),
        }
    }


def halves_apart(evidence: Evidence, claim: Claim, scope: Scope) -> Units:
    """B21: distance between the two halves in the last decoder layers over that elsewhere."""
    options = claim.options
    variant = Variant(scope.cohorts[0], options["model"], options["share"])
    between = _by_layer(analysis(evidence, scope, variant, "moved"), variant)["between"]
    place = [name.partition(".") for name in between.index]
    decoder = [int(number) for stack, _, number in place if stack == "decoder"]
    from_layer = len(decoder) - math.ceil(options["last"] * len(decoder))
    last = np.array(
        [stack == "decoder" and int(number) >= from_layer for stack, _, number in place]
    )
    late, rest = between[last].to_numpy(), between[~last].to_numpy()
    return {
        "all": {
            "ratio": Measure(value=float(late.mean() / rest.mean())),
            "share_below": Measure(value=float((rest < late.min()).mean())),
            "decoder_layers": Measure(value=len(decoder)),
        }
    }


def analysis(evidence: Evidence, scope: Scope, variant: Variant, name: str) -> pd.DataFrame:
    """Rows of one analysis of a variant's runs, in the scope's tier.

    Raises
    ------
    NoRowsYet
        When there are none.
    """
    rows = evidence.analyses
    if not rows.empty:
        rows = rows[
            (rows["tier"] == scope.tier)
            & (rows["cohort"] == variant.cohort)
            & (rows["variant"] == variant.name)
            & np.isclose(rows["updates_share"].astype(float), variant.share)
            & (rows["analysis"] == name)
        ]
    if rows.empty:
        raise NoRowsYet(f"{variant}: no analysis {name!r} is stored")
    return rows


def of_common_seeds(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Rows of the seeds that all frames have: other seeds are other old models.

    Raises
    ------
    NoRowsYet
        When there is none.
    """
    seeds = set.intersection(*(set(frame["seed"]) for frame in frames))
    if not seeds:
        raise NoRowsYet("no seed is analysed on both sides")
    return [frame[frame["seed"].isin(list(seeds))] for frame in frames]


def _by_layer(rows: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """Distances of a variant, mean over seeds: a row a layer, columns old, new and between."""
    table = rows.pivot_table(index="layer", columns="block", values="value")
    if missing := {"old", "new", "between"} - set(table.columns):
        raise NoRowsYet(f"{variant}: analysis 'moved' lacks block {sorted(missing)[0]!r}")
    return table


def _weights(evidence: Evidence, scope: Scope, variant: Variant) -> pd.Series:
    """Sampling weight of each direction of a variant."""
    frame = evidence.frame
    if "variant" in frame:
        rows = evidence.rows(scope, [variant.cohort])
        rows = rows[rows["variant"] == variant.name]
        if not rows.empty:
            return rows.groupby("pair")["p"].mean()
    raise NoRowsYet(f"{variant}: no rows, which tell each direction's share of the training text")


def _forgotten(drops: pd.DataFrame, weights: pd.Series) -> Measures:
    """Measures of one model; directions are resampled."""
    scaled, unscaled = drops["scaled"].to_numpy(), drops["unscaled"].to_numpy()
    resource = weights.reindex(drops.index).to_numpy()
    mean = (scaled + unscaled) / 2
    picks = np.random.default_rng(0).integers(len(drops), size=(DRAWS, len(drops)))
    relief = unscaled.mean() - scaled.mean()
    drawn = (unscaled - scaled)[picks].mean(1) - relief
    rank = float(_spearman(mean[None], resource[None])[0])
    ranks = _spearman(mean[picks], resource[picks])
    return {
        "relief": measure(relief, drawn),
        "relief_share": Measure(value=float(relief / unscaled.mean())),
        "share_relieved": Measure(value=float((scaled < unscaled).mean())),
        "rank": measure(rank, ranks - rank),
    }


def _spearman(x: Array, y: Array) -> Array:
    """Rank correlation of each row of `x` (B, n) with that of `y`; NaN where one is constant."""
    ranks = [stats.rankdata(values, axis=1) - (x.shape[1] + 1) / 2 for values in (x, y)]
    with np.errstate(invalid="ignore"):
        first, second = (rank / np.linalg.norm(rank, axis=1, keepdims=True) for rank in ranks)
    return np.asarray((first * second).sum(1))


def _over_layers(values: Array) -> Measure:
    """Mean over layers with its t interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    value = float(values.mean())
    return Measure(value=value, low=value - float(half), high=value + float(half))
