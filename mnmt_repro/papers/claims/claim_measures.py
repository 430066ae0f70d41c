"""The numbers behind verdicts as one tidy frame, so that pages draw what was judged."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.schema import load_claims
from mnmt_repro.repository import ROOT

_OF_SETTING = ("test_set", "n", "tier")


def claim_measures(stored: pd.DataFrame, claim: str, measure: str = "") -> pd.DataFrame:
    """One measure of a claim, a row for each setting and pair that has it.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claim
        Its id, such as ``"A6"``.
    measure
        Its name, such as ``"error_ratio"``; by default that of the claim's effect.

    Returns
    -------
    DataFrame
        ``role, setting, kind, cohort, test_set, n, tier, pair, value, low, high`` (NaN without an
        interval).

    Raises
    ------
    InputError
        When there is no such claim.
    """
    known = {each.id: each for each in load_claims(ROOT / "data" / "claims")}
    if claim not in known:
        raise InputError(f"no claim {claim}; there are {', '.join(known)}")
    settings = known[claim].settings
    rows = stored[
        (stored["claim"] == claim) & (stored["measure"] == (measure or known[claim].measure))
    ]
    rows = rows[rows["value"].notna() & rows["role"].isin(list(settings))]
    about = pd.DataFrame(
        [
            {"cohort": "".join(settings[role].cohorts[:1])}
            | {name: getattr(settings[role], name) for name in _OF_SETTING}
            for role in rows["role"]
        ],
        index=rows.index,
        columns=["cohort", *_OF_SETTING],
    )
    columns = ["role", "setting", "kind", *about, "pair", "value", "low", "high"]
    return rows.join(about).rename(columns={"part": "pair"})[columns].reset_index(drop=True)
