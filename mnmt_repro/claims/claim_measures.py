"""The numbers behind verdicts as one tidy frame, so that pages draw what the rules judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mnmt_repro.analysis.framed import Rows, framed
from mnmt_repro.claims import load_claims
from mnmt_repro.claims.report import stored_verdict
from mnmt_repro.repository import ROOT

_COLUMNS = ("setting", "kind", "cohort", "test_set", "n", "tier", "verdict", "pair")


@framed(*_COLUMNS, "value", "low", "high")
def claim_measures(stored: Sequence[Mapping[str, Any]], claim: str, measure: str) -> Rows:
    """One measure of a claim, a row for each setting and pair that has it.

    Parameters
    ----------
    stored
        From `claims.read_stored`.
    claim
        Its id, such as ``"A6"``.
    measure
        Its name in the claim's rule, such as ``"error_ratio"``.

    Returns
    -------
    DataFrame
        `_COLUMNS`, then ``value, low, high`` (NaN without an interval); `kind` is that of evidence.

    Raises
    ------
    InputError
        When the claim has no stored verdict.
    """
    verdict = stored_verdict(stored, claim)
    declared = next(known for known in load_claims(ROOT / "data" / "claims") if known.id == claim)
    scopes = {scope.name: scope for scope in declared.scopes}
    for found in verdict["scopes"]:
        scope = scopes[found["scope"]]
        for pair, unit in found["units"].items():
            number = unit["measures"].get(measure, {"value": None, "interval": None})
            if number["value"] is None:
                continue
            low, high = number.get("interval") or (float("nan"), float("nan"))
            yield {
                "setting": scope.name,
                "kind": found["kind"],
                "cohort": scope.cohorts[0] if scope.cohorts else "",
                "test_set": scope.test_set,
                "n": scope.n,
                "tier": scope.tier,
                "verdict": found["verdict"],
                "pair": pair,
                "value": number["value"],
                "low": low,
                "high": high,
            }
