"""Public losses of larger runs, as rows beside our own, and their laws.

The tables lie in ``data/external/``; ``data/external/README.md`` says where they come from. They
are no runs of ours: they have no commit, and every rule that reads them is post hoc. A law has one
exponent per domain and one multiplier per mixture.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.laws import JointLawFit, fit_joint_law
from mnmt_repro.papers.effects.cells import Rows, framed

EXTERNAL = "external"
"""The tier of these rows."""


def load_external(folder: Path) -> pd.DataFrame:
    """The tables of ``data/external``, with those columns of `results.load` that claims read.

    A domain stands for a pair, where its weight is above 0; `mixture` names what it was trained
    with. Empty where there are no tables.
    """
    if not folder.is_dir():
        return pd.DataFrame()
    parts = [
        pd.DataFrame(
            {
                "cohort": wide["cohort"],
                "pair": domain,
                "mixture": wide["mixture"].map("mixture {}".format),
                "p": wide[f"weight_{domain}"],
                "n_non_embedding": wide["model_size"],
                "cross_entropy": wide[f"{domain}_loss"],
            }
        )
        for name in ("slimpajama.csv", "pile.csv")
        for wide in [pd.read_csv(folder / name)]
        for domain in wide.filter(regex="_loss$").columns.str.removesuffix("_loss")
    ]
    translation = pd.read_csv(folder / "translation.csv").rename(
        columns={"parameters": "n_non_embedding", "loss": "cross_entropy"}
    )
    parts.append(translation.assign(mixture="alone", p=1.0))
    frame = pd.concat(parts, ignore_index=True, join="inner")
    frame = frame.query("p > 0").reset_index(drop=True)
    cells = zip(frame["cohort"], frame["mixture"], frame["n_non_embedding"], strict=True)
    return frame.assign(
        run_id=[f"{cohort} {mixture} {n}" for cohort, mixture, n in cells],
        commit="",
        tier=EXTERNAL,
        test_set="indomain",
        domain="all",
        n_total=frame["n_non_embedding"],
        seed=1,
        variant="",
    )


_CURVE_POINTS = 12
_PARTNERS = {"fra": "deu", "deu": "fra", "zho": "fra"}


def domain_laws(rows: pd.DataFrame) -> dict[str, JointLawFit]:
    """Fit Eq. 7 to each domain, with a multiplier for each mixture.

    Parameters
    ----------
    rows : DataFrame
        Of one cohort of `load_external`.
    """
    return {str(name): fit_joint_law(part, by="mixture") for name, part in rows.groupby("pair")}


@framed()
def law_curves(rows: pd.DataFrame, laws: Mapping[str, JointLawFit]) -> Rows:
    """Laws over all sizes: ``domain, p, n, loss``, the mean over mixtures of one weight."""
    for name, part in rows.groupby("pair"):
        sizes = part["n_non_embedding"]
        n = np.geomspace(sizes.min(), sizes.max(), _CURVE_POINTS)
        for p, own in part.groupby(part["p"].round(3)):
            losses = [
                laws[str(name)].predict([mixture] * len(n), n) for mixture in set(own["mixture"])
            ]
            yield pd.DataFrame({"domain": name, "p": p, "n": n, "loss": np.mean(losses, axis=0)})


@framed()
def relative_fractions(rows: pd.DataFrame, laws: Mapping[str, JointLawFit]) -> Rows:
    """Effective parameters of a domain in each mixture, relative to its highest weight.

    By Eq. 10 the ratio of two effective fractions is (beta / beta_0) ** (-1 / alpha). Only such
    ratios can be read without models of one domain alone. Where several mixtures have the highest
    weight, the reference is their geometric mean.

    Returns
    -------
    DataFrame
        ``domain, mixture, p, weight_ratio, fraction_ratio``; a neutral domain has two equal ratios.
    """
    for name, law in laws.items():
        p = rows[rows["pair"] == name].groupby("mixture")["p"].first().reindex(list(law.law.keys))
        log_beta = np.log(list(law.beta.values()))
        highest = log_beta[np.isclose(p, p.max())].mean()
        yield pd.DataFrame(
            {
                "domain": name,
                "mixture": law.law.keys,
                "p": p.to_numpy(),
                "weight_ratio": (p / p.max()).to_numpy(),
                "fraction_ratio": np.exp(-(log_beta - highest) / law.alpha),
            }
        )


def lowest_weights(fractions: pd.DataFrame) -> pd.DataFrame:
    """Of each domain the mean over the mixtures of its lowest weight, and their ratio.

    Returns
    -------
    DataFrame
        ``domain, weight_ratio, fraction_ratio, gain``: `gain` is the second over the first, 1 where
        a domain gets the share of its weight.
    """
    lowest = fractions[fractions["p"] == fractions.groupby("domain")["p"].transform("min")]
    means = lowest.groupby("domain")[["weight_ratio", "fraction_ratio"]]
    ratios = means.agg(stats.gmean)
    table = ratios.assign(gain=ratios["fraction_ratio"] / ratios["weight_ratio"])
    return table.sort_values("gain").reset_index()


@framed()
def forecasts(rows: pd.DataFrame, size: float) -> Rows:
    """Losses at one size, forecast from the smaller sizes of the same mixtures.

    The law is Eq. 7 with a multiplier for each mixture, and its relative squared errors are least.
    It is fitted to all mixtures of a test set, also to those without the size to forecast.

    Parameters
    ----------
    rows
        ``pair, mixture, n_non_embedding, cross_entropy`` of one corpus; a test set is a pair.

    Returns
    -------
    DataFrame
        ``pair, mixture, loss, law, naive``: the loss at the size, and two forecasts of it. The
        naive one is the loss of the largest smaller size.
    """
    for pair, part in rows.groupby("pair"):
        smaller = part[part["n_non_embedding"] < size].sort_values("n_non_embedding")
        naive = smaller.groupby("mixture")["cross_entropy"].last()
        wanted = part[(part["n_non_embedding"] == size) & part["mixture"].isin(naive.index)]
        law = fit_joint_law(smaller, by="mixture", errors="relative")
        mixtures = wanted["mixture"].to_numpy()
        yield pd.DataFrame(
            {
                "pair": pair,
                "mixture": mixtures,
                "loss": wanted["cross_entropy"].to_numpy(),
                "law": law.predict(mixtures, size),
                "naive": naive[mixtures].to_numpy(),
            }
        )


def forecast_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Root mean square relative error of both `forecasts` over mixtures: ``pair, law, naive``."""
    errors = table[["law", "naive"]].div(table["loss"], axis=0) - 1
    return ((errors**2).groupby(table["pair"]).mean() ** 0.5).reset_index()


@framed()
def by_own_weight(table: pd.DataFrame) -> Rows:
    """Losses of each language where its weight is known: ``language, p, partner, company, loss``.

    Parameters
    ----------
    table
        ``data/external/translation_mixtures.csv``.

    Returns
    -------
    DataFrame
        `company` is the weight of one other language, `partner`: German for French, and French for
        German and Chinese. It is missing where the table does not have it.
    """
    for own, partner in _PARTNERS.items():
        yield pd.DataFrame(
            {
                "language": own,
                "p": table[f"weight_{own}"],
                "partner": partner,
                "company": table[f"weight_{partner}"],
                "loss": table[f"loss_{own}"],
            }
        ).dropna(subset="p")
