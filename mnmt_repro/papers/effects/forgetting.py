"""What training on changes in old weights: Paper B's Figures 3, 5 and 6, claims B12, B14 and B21.

Frames are made of `results.load_analyses`; `results.analyses` says what each analysis measures.
Where no analysis is stored they are empty. Values are means over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.cohorts.analysed import GATED
from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, INTO, OUT, foreign, side_of
from mnmt_repro.papers.cohorts.names import language
from mnmt_repro.papers.cohorts.software25 import FISHER_SHARES
from mnmt_repro.papers.effects import corpora
from mnmt_repro.papers.effects.ablations import SHARE
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import (
    Measure,
    Measures,
    NoRowsYet,
    measure,
    resampled,
    t_mean,
)
from mnmt_repro.papers.effects.variants import MAIN, TABLE3, VariantAt

TABLE11 = "software25-table11"
READ = (MAIN, TABLE3, TABLE11, GATED)
"""Cohorts of this page."""
SETTINGS = {"full recipe": "with scaling", "no learning-rate scaling": "without scaling"}
"""Runs of Table 3 to what the figures call them."""
UPSAMPLED = {"full recipe": "up-sampled", "no up-sampling": "not up-sampled"}
"""Runs of Table 3, added languages and their relatives up-sampled or not; both scale rates."""
WIDE = "Mt25-wide"
BLOCKS = {"old": "M1 (old half) from M", "new": "M2 (new half) from M", "between": "M1 from M2"}
SIZES = 4  # groups of original languages, by their training pairs
MODELS = {MAIN: "M20: ReLU, two matrices", GATED: "a model of Paper A: gated GELU, three"}
"""Cohort to what is widened of it."""
KEPT = 1e-3  # nats that a loss may change by where a function is said to be kept


def languages() -> pd.DataFrame:
    """The original languages by name, largest first in our corpus.

    Returns
    -------
    DataFrame
        ``code, language``; training ``pairs`` here; ``size``, one of four groups of as many
        languages, as text.
    """
    table = corpora.table9()
    table = table[table["group"] == "original"].sort_values("pairs, main condition")
    table = table.reset_index(drop=True)
    group = table.index * SIZES // len(table)
    pairs = table["pairs, main condition"]
    ends = pairs.groupby(group).agg(["min", "max"]) / 1000
    size = [f"{low:.0f}k to {high:.0f}k" for low, high in ends.to_numpy()]
    original = pd.DataFrame(
        {
            "code": table["language"],
            "language": table["language"].map(language),
            "pairs": pairs,
            "size": [size[i] for i in group],
        }
    )
    return original[::-1].reset_index(drop=True)


def forgotten(analyses: pd.DataFrame, model: str) -> pd.DataFrame:
    """Figure 3 (of Mt25-wide) and Figure 6 left (of Mt25): loss that M20 gains by new embeddings.

    Returns
    -------
    DataFrame
        ``pair, direction, setting, rise`` (nats per token), ``seeds``, and the columns of
        `languages`, largest languages first; a row a direction and setting.
    """
    compared = _compared(analyses, "substituted", model, SETTINGS)
    grouped = compared.groupby(["setting", "pair"])["value"]
    rises = grouped.agg(rise="mean", seeds="size").reset_index()
    rises["direction"] = rises["pair"].map(side_of)
    rises["code"] = rises["pair"].map(foreign)
    return languages().merge(rises, on="code").drop(columns="code")


def with_all_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the full recipe of the same size on all seeds; Table 3 has only its first one."""
    main = (rows["cohort"] == MAIN) & (rows["variant"] == "Mt25") & (rows["updates_share"] == SHARE)
    full = rows[main].assign(cohort=TABLE3, variant="Mt25, full recipe")
    return pd.concat([rows[rows["variant"] != "Mt25, full recipe"], full])


@framed()
def kept(rows: pd.DataFrame, model: str) -> Rows:
    """What an upgraded model itself loses on the directions that M20 was trained on (ours).

    The change is of the loss summed over the test text, because tokens of two vocabularies do not
    compare. In nats it is divided by the tokens of M20. Each seed is compared with its own M20.

    Parameters
    ----------
    rows
        From `results.load`, of one test set; cohorts `MAIN`, which has M20, and `TABLE3`.

    Returns
    -------
    DataFrame
        ``label`` (which directions), ``series`` (one of `SETTINGS`); ``value, low, high``, by how
        many per cent the loss is above M20's, with its 95 % interval over seeds; the same in nats
        (``nats, nats low, nats high``) and of chrF++ (NaN where not decoded); ``worse``, how many
        of the ``directions`` lose; ``seeds``. For `forest`.
    """
    rows = rows.assign(nats=rows["cross_entropy"] * rows["test_tokens"])
    old = rows[(rows["cohort"] == MAIN) & (rows["variant"] == "M20")]
    before = old.set_index(["seed", "pair"])
    related = GROUPINGS["Mt25"].related
    for run, setting in SETTINGS.items():
        mine = rows[(rows["cohort"] == TABLE3) & (rows["variant"] == f"{model}, {run}")]
        after = mine.set_index(["seed", "pair"])
        apart = pd.DataFrame(
            {
                "change": (after["nats"] / before["nats"]).map(math.log),
                "nats": (after["nats"] - before["nats"]) / before["test_tokens"],
                "chrF++": after["chrfpp"] - before["chrfpp"],
            }
        )
        change = apart.dropna(subset="change").reset_index()
        upsampled = change["pair"].map(foreign).isin(related)
        side = change["pair"].map(side_of)
        kinds = {
            "all old directions": upsampled | ~upsampled,
            "up-sampled relatives": upsampled,
            **{f"others, {name}": ~upsampled & (side == name) for name in (OUT, INTO)},
        }
        for label, chosen in kinds.items():
            part = change[chosen]
            by_seed = part.groupby("seed")[["change", "nats", "chrF++"]].mean()
            row = {
                "label": label,
                "series": setting,
                **vars(in_per_cent(by_seed["change"])),
                "worse": int((part.groupby("pair")["change"].mean() > 0).sum()),
                "directions": part["pair"].nunique(),
                "seeds": part["seed"].nunique(),
            }
            for unit in ("nats", "chrF++"):
                more = t_mean(by_seed[unit].dropna().to_numpy())
                row |= {unit: more.value, f"{unit} low": more.low, f"{unit} high": more.high}
            yield row


@framed()
def relatives_apart(analyses: pd.DataFrame, model: str) -> Rows:
    """Is it size, or being trained on? Loss added where related languages are up-sampled and not.

    Returns
    -------
    DataFrame
        ``directions, count``; for each of `UPSAMPLED` its mean loss added in nats per token and
        the rank correlation of that with the language's training pairs, NaN for the three related
        languages; empty while a run is missing.
    """
    compared = _compared(analyses, "substituted", model, UPSAMPLED)
    table = compared.pivot_table("value", "pair", "setting")
    table = table.reindex(columns=[*UPSAMPLED.values()]).dropna()
    if table.empty:
        return
    codes = table.index.map(foreign)
    pairs = pd.Series(languages().set_index("code")["pairs"][codes].to_numpy(), table.index)
    related = pd.Series(codes.isin(GROUPINGS["Mt25"].related), table.index)
    for what, mine in (("related", related), ("others", ~related), ("all", related | ~related)):
        row: dict[str, object] = {"directions": what, "count": int(mine.sum())}
        for title in UPSAMPLED.values():
            row[title] = table.loc[mine, title].mean()
            if what != "related":  # three languages make no rank
                rank = stats.spearmanr(table.loc[mine, title], pairs[mine])
                row[f"rank, {title}"] = rank.statistic
        yield row


def moved(analyses: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: how far each half of Mt25-wide's feed-forward layers is from where it began.

    Returns
    -------
    DataFrame
        ``stack, layer, setting, block, distance, seeds``.
    """
    compared = _compared(analyses, "moved", WIDE, SETTINGS)
    grouped = compared.groupby(["setting", "layer", "block"])["value"]
    distances = grouped.agg(distance="mean", seeds="size").reset_index()
    distances["stack"] = [layer.partition(".")[0] for layer in distances["layer"]]
    distances["layer"] = [int(layer.partition(".")[2]) for layer in distances["layer"]]
    distances["block"] = distances["block"].map(BLOCKS)
    distances = distances.sort_values(
        ["stack", "layer"], ascending=[False, True], ignore_index=True
    )
    return distances[["stack", "layer", "setting", "block", "distance", "seeds"]]


def change_by_scaling(points: pd.DataFrame) -> dict[str, float]:
    """By how many per cent each half moves farther with scaling, the geometric mean over layers.

    Parameters
    ----------
    points
        From `moved`.
    """
    table = points.pivot_table(
        index=["stack", "layer"], columns=["setting", "block"], values="distance"
    )
    change = log_change(*(pd.DataFrame(table[setting]) for setting in SETTINGS.values()))
    return {half: 100 * math.expm1(change[BLOCKS[half]].mean()) for half in ("old", "new")}


def fisher(analyses: pd.DataFrame) -> pd.DataFrame:
    """Figure 6 right: how much Fisher information the old weights hold, in bins.

    All runs of Table 11 that choose by it begin with the same model, so they have one histogram.

    Returns
    -------
    DataFrame
        ``low, high`` (nats squared per token; the last one has no end), ``share`` of the old
        weights, ``share above`` the bin's lower edge.
    """
    mine = _of(analyses, TABLE11, "fisher")
    share = mine.assign(low=mine["block"].astype(float)).groupby("low")["value"].mean()
    bins = share.rename("share").reset_index()
    bins.insert(1, "high", bins["low"].shift(-1, fill_value=math.inf))
    return bins.assign(**{"share above": bins["share"][::-1].cumsum()[::-1]})


@framed("paper", "share", "ours")
def thresholds(analyses: pd.DataFrame) -> Rows:
    """The information above which runs of Table 11 slow old weights down, printed and ours.

    Returns
    -------
    DataFrame
        ``paper, share, ours``.
    """
    mine = _of(analyses, TABLE11, "threshold")
    ours = mine.assign(share=mine["block"].astype(float)).groupby("share")["value"].mean()
    for printed, share in FISHER_SHARES.items():
        if share in ours:
            yield {"paper": float(printed), "share": share, "ours": ours[share]}


@framed(
    "model", "normalisation", "noise", "mean", "least", "most", "keeps the function", "directions"
)
def widened(analyses: pd.DataFrame) -> Rows:
    """What a model loses by being made twice as wide, before any training.

    Returns
    -------
    DataFrame
        ``model, normalisation, noise``; ``mean, least, most`` of the rise over directions and
        seeds, in nats per token; ``keeps the function``, whether all are below `KEPT` in size;
        ``directions``.
    """
    for cohort, model in MODELS.items():
        mine = _of(analyses, cohort, "widened")
        for block, group in mine.groupby("block", sort=False):
            normalisation, _, noise = str(block).partition(", noise ")
            rises = group["value"]
            yield {
                "model": model,
                "normalisation": normalisation,
                "noise": float(noise),
                "mean": rises.mean(),
                "least": rises.min(),
                "most": rises.max(),
                "keeps the function": bool(rises.abs().max() < KEPT),
                "directions": group["pair"].nunique(),
            }


def shared_pieces(analyses: pd.DataFrame) -> tuple[int, int]:
    """How many pieces of M20's vocabulary the upgrades' vocabulary has too, and of how many."""
    overlap = _of(analyses, MAIN, "overlap").groupby("block")["value"].mean()
    kept, dropped = overlap.reindex(["all, kept", "all, dropped"]).fillna(0)
    return int(kept), int(kept + dropped)


def used(
    frame: pd.DataFrame,
    analyses: pd.DataFrame,
    name: str,
    *cohorts: str,
    model: str = "",
    settings: Iterable[str] = tuple(SETTINGS),
) -> pd.DataFrame:
    """Rows of the runs of which an analysis is drawn, for their provenance.

    Parameters
    ----------
    frame
        From `results.load`.
    model
        Only its runs of these `settings`; default all runs of the cohorts.
    """
    mine = analyses[(analyses["analysis"] == name) & analyses["cohort"].isin(cohorts)]
    if model:
        mine = mine[mine["variant"].isin([f"{model}, {setting}" for setting in settings])]
    return frame.merge(mine[["run_id", "cohort"]].drop_duplicates(), on=["run_id", "cohort"])


def _compared(
    analyses: pd.DataFrame, name: str, model: str, runs: Mapping[str, str]
) -> pd.DataFrame:
    """An analysis of runs of Table 3 of the seeds that they share; ``setting`` as `runs` calls it.

    A run that is not analysed has no rows.
    """
    frames = [
        _of(analyses, TABLE3, name, f"{model}, {run}").assign(setting=setting)
        for run, setting in runs.items()
    ]
    return pd.concat(of_common_seeds(*frames), ignore_index=True)


def of_common_seeds(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Rows of the seeds that all frames with rows have: other seeds are other old models."""
    known = [set(frame["seed"]) for frame in frames if len(frame)]
    seeds = set.intersection(*known) if known else set()
    return [frame[frame["seed"].isin(list(seeds))] for frame in frames]


def _of(analyses: pd.DataFrame, cohort: str, name: str, variant: str | None = None) -> pd.DataFrame:
    mine = (analyses["cohort"] == cohort) & (analyses["analysis"] == name)
    return analyses[mine & (variant is None or analyses["variant"] == variant)]


def analysed(analyses: pd.DataFrame, tier: str, variant: VariantAt, name: str) -> pd.DataFrame:
    """Rows of one analysis of a variant's runs.

    Raises
    ------
    NoRowsYet
        When there are none.
    """
    rows = analyses
    if not rows.empty:
        rows = _of(rows, variant.cohort, name, variant.name)
        share = np.isclose(rows["updates_share"].astype(float), variant.share)
        rows = rows[(rows["tier"] == tier) & share]
    if rows.empty:
        raise NoRowsYet(f"{variant}: no analysis {name!r} is stored")
    return rows


def analysed_together(
    analyses: pd.DataFrame, tier: str, name: str, *variants: VariantAt
) -> list[pd.DataFrame]:
    """Rows of one analysis of several variants, of the seeds that all have.

    Raises
    ------
    NoRowsYet
        When one is not analysed, or no seed is analysed in all.
    """
    frames = of_common_seeds(*(analysed(analyses, tier, variant, name) for variant in variants))
    if any(rows.empty for rows in frames):
        raise NoRowsYet("no seed is analysed on both sides")
    return frames


def weight_distances(rows: pd.DataFrame, variant: VariantAt) -> pd.DataFrame:
    """Distances of a variant, mean over seeds: a row a layer, columns old, new and between.

    Raises
    ------
    NoRowsYet
        When a block is missing.
    """
    table = rows.pivot_table(index="layer", columns="block", values="value")
    if missing := {"old", "new", "between"} - set(table.columns):
        raise NoRowsYet(f"{variant}: analysis 'moved' lacks block {sorted(missing)[0]!r}")
    return table


def log_change(scaled: pd.DataFrame, unscaled: pd.DataFrame) -> pd.DataFrame:
    """Log of each distance with scaled learning rates over that without."""
    return (scaled / unscaled).map(math.log)


def in_per_cent(logs: pd.Series[float]) -> Measure:
    """Mean over seeds of a change in per cent, with its t interval, from the logs of ratios.

    The mean is that of the logs. A seed that lacks one side is left out.
    """
    mean = t_mean(np.asarray(logs.dropna(), dtype=float))
    return Measure(**{end: 100 * math.expm1(log) for end, log in vars(mean).items()})


def relief(drops: pd.DataFrame, weights: pd.Series) -> Measures:
    """How much less is forgotten with scaled learning rates; directions are resampled.

    Parameters
    ----------
    drops
        ``scaled, unscaled``: the loss added in each direction.
    weights
        Sampling weight of each direction, with which `rank` is the rank correlation.
    """
    scaled, unscaled = drops["scaled"].to_numpy(), drops["unscaled"].to_numpy()
    resource = weights.reindex(drops.index).to_numpy()
    mean = (scaled + unscaled) / 2
    picks = resampled(len(drops))
    less = unscaled.mean() - scaled.mean()
    rank = float(_spearman(mean[None], resource[None])[0])
    return {
        "relief": measure(less, (unscaled - scaled)[picks].mean(1) - less),
        "share_relieved": Measure(value=float((scaled < unscaled).mean())),
        "rank": measure(rank, _spearman(mean[picks], resource[picks]) - rank),
    }


def _spearman(x: Array, y: Array) -> Array:
    """Rank correlation of each row of `x` (B, n) with that of `y`; NaN where one is constant."""
    ranks = [stats.rankdata(values, axis=1) - (x.shape[1] + 1) / 2 for values in (x, y)]
    with np.errstate(invalid="ignore"):
        first, second = (rank / np.linalg.norm(rank, axis=1, keepdims=True) for rank in ranks)
    return np.asarray((first * second).sum(1))


def embeddings_substituted(evidence: Evidence, setting: Setting) -> Units:
    """B12: how much less the old model loses by embeddings trained with scaled rates."""
    options = setting.options
    old = VariantAt(options["old_cohort"], options["old_model"], 1.0)
    units: Units = {}
    for model in options["models"]:
        variants = [
            VariantAt(setting.cohorts[0], f"{model}, {rates}", options["share"])
            for rates in (options["scaled"], options["unscaled"])
        ]
        frames = analysed_together(evidence.analyses, setting.tier, "substituted", *variants)
        drops = [rows.groupby("pair")["value"].mean() for rows in frames]
        both = pd.concat(drops, axis=1, keys=["scaled", "unscaled"]).dropna()
        if len(both) < (wanted := options["needs"]["directions"]):
            raise NoRowsYet(f"{variants[0]}: {len(both)} of {wanted} directions are substituted")
        units[model] = relief(both, resources(evidence, setting, old))
    return units


def blocks_moved(evidence: Evidence, setting: Setting) -> Units:
    """B14: distance from the old matrix with scaled rates over that without, by block."""
    options = setting.options
    variants = [
        VariantAt(setting.cohorts[0], options[name], options["share"])
        for name in ("scaled", "unscaled")
    ]
    frames = analysed_together(evidence.analyses, setting.tier, "moved", *variants)
    change = log_change(*map(weight_distances, frames, variants))
    return {
        "all": {
            "old_change": t_mean(change["old"].to_numpy()),
            "new_change": t_mean(change["new"].to_numpy()),
        }
    }


def halves_apart(evidence: Evidence, setting: Setting) -> Units:
    """B21: distance between the two halves in the last decoder layers over that elsewhere.

    Layers are named as ``"decoder.3"``; the option `last` is the share of them that are the last.
    """
    options = setting.options
    variant = VariantAt(setting.cohorts[0], options["model"], options["share"])
    rows = analysed(evidence.analyses, setting.tier, variant, "moved")
    between = weight_distances(rows, variant)["between"]
    place = [name.partition(".") for name in between.index]
    layers = sum(stack == "decoder" for stack, _, _ in place)
    first = layers - math.ceil(options["last"] * layers)
    last = np.array([stack == "decoder" and int(number) >= first for stack, _, number in place])
    late, rest = between[last].to_numpy(), between[~last].to_numpy()
    return {
        "all": {
            "ratio": Measure(value=float(late.mean() / rest.mean())),
            "share_below": Measure(value=float((rest < late.min()).mean())),
            "decoder_layers": Measure(value=layers),
        }
    }


def resources(evidence: Evidence, setting: Setting, variant: VariantAt) -> pd.Series:
    """Sampling weight of each direction of a variant: how large its text is."""
    frame = evidence.frame
    if "variant" in frame:
        rows = evidence.rows(setting, [variant.cohort])
        rows = rows[rows["variant"] == variant.name]
        if not rows.empty:
            return rows.groupby("pair")["p"].mean()
    raise NoRowsYet(f"{variant}: no rows, which tell each direction's share of the training text")
