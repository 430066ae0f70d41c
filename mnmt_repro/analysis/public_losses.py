"""Laws of public losses of larger runs: one exponent per domain, one multiplier per mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.laws import JointLawFit, PowerLawFit, fit_joint_law, fit_per_weight_laws
from mnmt_repro.laws.checks import Array

_CURVE_POINTS = 12


def domain_laws(rows: pd.DataFrame) -> dict[str, JointLawFit]:
    """Fit Eq. 7 to each domain, with a multiplier for each mixture.

    Parameters
    ----------
    rows : DataFrame
        Of one cohort of `mnmt_repro.claims.external.load_external`.
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
            "mixtures": len(law.groups),
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
        p = rows[rows["pair"] == name].groupby("mixture")["p"].first().reindex(list(law.groups))
        log_beta = np.log(list(law.beta.values()))
        highest = log_beta[np.isclose(p, p.max())].mean()
        yield pd.DataFrame(
            {
                "domain": name,
                "mixture": law.groups,
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
