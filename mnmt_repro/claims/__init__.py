"""What a paper claims, how we measure it, and whether the stored rows reproduce it.

`verify` evaluates every entry of ``data/claims/*.yml`` from the rows of the store; pages, badges
and tests take their verdicts from it.
"""

from mnmt_repro.analysis.intervals import Measure
from mnmt_repro.analysis.published import printed_values
from mnmt_repro.claims.evaluate import ScopeVerdict, Verdict, evaluate
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.exhibits import Exhibit, load_exhibits
from mnmt_repro.claims.external import load_external
from mnmt_repro.claims.history import Ancestry, History
from mnmt_repro.claims.judging import ESTIMANDS, decide, judge
from mnmt_repro.claims.report import (
    differences,
    read_stored,
    to_detail,
    to_json,
    to_text,
    verify,
    write_stored,
)
from mnmt_repro.claims.schema import (
    NO_ROWS,
    OUT_OF_REACH,
    UNDECIDED,
    VERDICTS,
    Claim,
    Condition,
    Scope,
    Step,
    load_claims,
)

__all__ = [
    "ESTIMANDS",
    "NO_ROWS",
    "OUT_OF_REACH",
    "UNDECIDED",
    "VERDICTS",
    "Ancestry",
    "Claim",
    "Condition",
    "Evidence",
    "Exhibit",
    "History",
    "Measure",
    "Scope",
    "ScopeVerdict",
    "Step",
    "Verdict",
    "decide",
    "differences",
    "evaluate",
    "judge",
    "load_claims",
    "load_exhibits",
    "load_external",
    "printed_values",
    "read_stored",
    "to_detail",
    "to_json",
    "to_text",
    "verify",
    "write_stored",
]
