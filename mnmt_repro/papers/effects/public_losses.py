"""Laws of public losses of larger runs: one exponent per domain, one multiplier per mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.laws import JointLawFit, PowerLawFit, fit_joint_law, fit_per_weight_laws
from mnmt_repro.laws.checks import Array
from mnmt_repro.papers.effects.framed import Rows, framed

_CURVE_POINTS = 12
_PARTNERS = {"fra": "deu", "deu": "fra", "zho": "fra"}


def domain_laws(rows: pd.DataFrame) -> dict[str, JointLawFit]:
    """Fit Eq. 7 to each domain, with a multiplier for each mixture.

    Parameters
    ----------
    rows : DataFrame
        Of one cohort of `mnmt_repro.papers.claims.external.load_external`.
    """
    return {str(name): fit_joint_law(part, by="mixture") for name, part in rows.groupby("pair")}


@framed()
def laws_by_domain(laws: Mapping[str, JointLawFit]) -> Rows:
    """Coefficients of each domain's law: ``domain, alpha, L_inf, R², mixtures, losses``."""
    for name, law in laws.items():
        yield {
            "domain": name,
            "alpha": law.alpha,
            "L_inf": law.l_inf,
            "R²": law.r2,
            "mixtures": len(law.law.keys),
            "losses": law.observations,
        }


def separate_laws(rows: pd.DataFrame) -> dict[str, dict[str, PowerLawFit]]:
    """Fit Eq. 6 to each mixture of each domain; rows as in `domain_laws`."""
    return {
        str(name): fit_per_weight_laws(part, by="mixture") for name, part in rows.groupby("pair")
    }


@framed()
def separate_coefficients(
    rows: pd.DataFrame, separate: Mapping[str, Mapping[str, PowerLawFit]]
) -> Rows:
    """Exponent and irreducible loss of `separate_laws`: ``domain, mixture, p, alpha, L_inf``."""
    for name, laws in separate.items():
        p = rows[rows["pair"] == name].groupby("mixture")["p"].first()
        for mixture, law in laws.items():
            yield {
                "domain": name,
                "mixture": mixture,
                "p": p[mixture],
                "alpha": law.alpha,
                "L_inf": law.l_inf,
            }


@framed()
def law_curves(rows: pd.DataFrame, predict: Callable[[str, str, Array], Array]) -> Rows:
    """Laws over the range of sizes: ``pair, mixture, p, n, loss``.

    `predict` gives the losses of a domain in a mixture at sizes (m,).
    """
    for (name, mixture), part in rows.groupby(["pair", "mixture"]):
        sizes = part["n_non_embedding"]
        n = np.geomspace(sizes.min(), sizes.max(), _CURVE_POINTS)
        loss = predict(str(name), str(mixture), n)
        p = part["p"].iloc[0]
        yield pd.DataFrame({"pair": name, "mixture": mixture, "p": p, "n": n, "loss": loss})


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
    found = ratios.assign(gain=ratios["fraction_ratio"] / ratios["weight_ratio"])
    return found.sort_values("gain").reset_index()


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
