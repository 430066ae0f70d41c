"""Verdicts of a whole checkout: computed, printed, stored, and compared with what is stored."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from mnmt_repro import results
from mnmt_repro.analysis.intervals import Measure
from mnmt_repro.analysis.published import PAPERS
from mnmt_repro.atomic import write_bytes
from mnmt_repro.claims.evaluate import Judge, ScopeVerdict, Verdict, evaluate
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.external import load_external
from mnmt_repro.claims.history import History
from mnmt_repro.claims.judging import Outcome, judge
from mnmt_repro.claims.schema import NO_ROWS, OUT_OF_REACH, Claim, Scope, load_claims
from mnmt_repro.claims.simulations import read_simulations
from mnmt_repro.claims.standing import EVIDENCE_KINDS
from mnmt_repro.disk_cache import Recall, code_digest, files_digest, kept_values, text_digest
from mnmt_repro.errors import InputError

CLAIMS = Path("data", "claims")
STORED = CLAIMS / "verdicts.json"
LATER_ROOMS = ("figures", "publishing", "companion", "cli")
"""Rooms of the package that no other room imports, so that no outcome depends on them."""
_RELATIVE, _ABSOLUTE, _OF_WIDTH = 0.02, 1e-3, 0.05
_FLIPPED = 0.01  # of simulations, where a machine rounds otherwise


def verify(
    root: str | os.PathLike[str],
    *,
    evidence: Evidence | None = None,
    store: Path | None = None,
    only: str | None = None,
    fresh: bool = False,
) -> list[Verdict]:
    """Evaluate every claim of a checkout from its stored rows.

    Parameters
    ----------
    root : path
        Top folder of the checkout: claims in ``data/claims``, rows in ``data/results``.
    evidence : Evidence, optional
        Rows to judge in place of the stored ones.
    store : path, optional
        Folder of the stored rows, as for `stored_evidence`.
    only : str, optional
        Id of the one claim to evaluate.
    fresh : bool
        Compute every outcome again, also where the cache has that of the same rule, rows and code.

    Raises
    ------
    InputError
        When a claims file or a stored run breaks its schema, or `only` names no claim.
    """
    root = Path(root)
    claims = load_claims(root / CLAIMS)
    if only is not None:
        known = ", ".join(claim.id for claim in claims)
        claims = [claim for claim in claims if claim.id == only.upper()]
        if not claims:
            raise InputError(f"{only}: no such claim in {root / CLAIMS}; there are {known}")
    evidence = evidence or stored_evidence(root, store)
    history, simulations = History(root, fresh=fresh), read_simulations(root, claims, evidence)
    with kept_values(f"outcomes-{text_digest(str(root.resolve()))[:12]}", fresh=fresh) as recall:
        judge = _recalling(recall)
        return [
            evaluate(claim, evidence, history, simulations, judge)
            for claim in tqdm(claims, desc="claims", disable=None, leave=False)
        ]


def _recalling(recall: Recall) -> Judge:
    """`judge`, whose outcomes are kept under a hash of claim, rows of the tier, and code."""
    code = text_digest(code_digest(without=LATER_ROOMS), files_digest(PAPERS, PAPERS.iterdir()))

    def judged(claim: Claim, scope: Scope, evidence: Evidence) -> Outcome:
        own = evidence.tiers.get(scope.tier, evidence)
        key = text_digest(code, own.digest, repr(claim), repr(scope))
        return recall(key, lambda: judge(claim, scope, own))

    return judged


def stored_evidence(root: Path, store: Path | None = None) -> Evidence:
    """All rows of a store (`results.results_root`), and the public losses beside them."""
    store = results.results_root(store, checkout=root)
    frame = results.load(root=store)
    return Evidence(
        frame=pd.concat([frame, load_external(root / "data" / "external")], ignore_index=True),
        curves=results.load_curves(root=store),
        analyses=results.load_analyses(frame, root=store),
    )


def to_json(verdicts: list[Verdict]) -> str:
    """Verdicts as JSON: a list of objects with `id`, `verdict`, `measured`, `interval` and `rule`.

    Beside these stand `post_hoc`, the reasons, and every scope and pair with all its measures.
    Numbers that cannot be given are null; all are rounded to six digits.
    """
    return json.dumps([_as_dict(verdict) for verdict in verdicts], indent=1, ensure_ascii=False)


def to_text(verdicts: list[Verdict], settings: bool = False) -> str:
    """Verdicts for the terminal: a line a claim, and if asked one for each other setting."""
    lines = []
    for verdict in verdicts:
        lines.append(_line(verdict.id, verdict.claim.title, verdict.deciding, verdict))
        lines += [
            _line("", f"  {scope.name}", scope, verdict)
            for scope in verdict.scopes
            if settings and scope is not verdict.deciding and scope.verdict != NO_ROWS
        ]
    counts = Counter(verdict.verdict for verdict in verdicts)
    lines.append(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return "\n".join(lines)


def to_detail(verdict: Verdict) -> str:
    """One claim for the terminal: what the paper says, the rule, and all that each setting gave."""
    claim = verdict.claim
    lines = [
        f"{claim.id} {verdict.verdict}: {claim.title}",
        f"the paper ({claim.where}): {claim.statement}",
        f"measured: {' '.join(claim.description.split())}",
        *(f"rule {i}. {step}" for i, step in enumerate(claim.rule, start=1)),
        *(f"rule of a cell {i}. {step}" for i, step in enumerate(claim.cells, start=1)),
        *(f"revised: {' '.join(text.split())}" for text in claim.revised),
    ]
    for scope in sorted(verdict.scopes, key=lambda scope: scope is not verdict.deciding):
        outcome = scope.outcome
        by = f" (decided by {outcome.unit})" if outcome.unit not in ("", "all") else ""
        which = "the setting that decides" if scope is verdict.deciding else "another setting"
        lines += ["", f"{which}, {scope.name} ({scope.kind}): {scope.verdict}{by}"]
        lines += [f"  its own rule {i}. {step}" for i, step in enumerate(scope.scope.rule, start=1)]
        if scope.standing.why:
            lines.append(f"  the rule says {scope.raw_verdict}, but {scope.standing.because}")
        lines.append(f"  says of the paper: {scope.standing.says}")
        if outcome.reason:
            lines.append(f"  {outcome.reason}")
        if simulated := scope.simulated:
            lines.append(f"  in {simulated.draws} simulations: {simulated}")
        if worlds := verdict.claim.in_scope(scope.scope).worlds:
            lines += [f"  {title}: {text}" for title, text in worlds.described().items()]
        if scope.units:
            lines.append(f"  {scope.runs} runs; {scope.ancestry.note}")
        for unit, measures in scope.units.items():
            lines.append(f"  {unit}: {outcome.verdicts[unit]}")
            lines += [f"    {name} {_in_words(found)}" for name, found in measures.items()]
    if found_out := claim.explained.get(verdict.raw_verdict):
        lines += ["", f"why, we think: {found_out.strip()} (book/{claim.page}.ipynb)"]
    return "\n".join(lines)


def write_stored(verdicts: list[Verdict], root: str | os.PathLike[str]) -> Path:
    """Store the verdicts in ``data/claims/verdicts.json``, whole or not at all."""
    path = Path(root) / STORED
    write_bytes(path, (to_json(verdicts) + "\n").encode())
    return path


def read_stored(root: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the stored verdicts, as `to_json` wrote them; an empty list where there are none.

    Raises
    ------
    InputError
        When the file is torn.
    """
    path = Path(root) / STORED
    if not path.is_file():
        return []
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(stored, list) and all(isinstance(item["id"], str) for item in stored)
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InputError(
            f"{path}: no list of verdicts; restore the file, or write it with verify --write"
        ) from error
    return stored


def stored_verdict(stored: Sequence[Mapping[str, Any]], claim: str) -> Mapping[str, Any]:
    """A claim's verdict among those of `read_stored`.

    Raises
    ------
    InputError
        When it has none.
    """
    for verdict in stored:
        if verdict["id"] == claim:
            return verdict
    raise InputError(f"claim {claim} has no stored verdict: run `mnmt-repro verify --write`")


def differences(verdicts: list[Verdict], stored: list[dict[str, Any]]) -> dict[str, str]:
    """Where a stored verdict does not follow from the rows: claim id to what differs.

    Compared are, of each scope, the verdicts, every measure (to 2 %) with its interval (to a
    twentieth of its width), whether the rule came first, and all that pages show of these; in
    reasons, the words. A negative verdict is no difference.
    An empty dictionary means that all of them follow.
    """
    known = {item["id"]: item for item in stored}
    found = {}
    for verdict in verdicts:
        then = known.pop(verdict.id, None)
        if then is None:
            found[verdict.id] = "no stored verdict"
        elif first := next(_unlike("", _by_scope(then), _by_scope(_as_dict(verdict))), ""):
            found[verdict.id] = first
    return found | dict.fromkeys(known, "stored, but no claim any more")


def _by_scope(verdict: dict[str, Any]) -> dict[str, Any]:
    return verdict | {"scopes": {each["scope"]: each for each in verdict.get("scopes", [])}}


_NUMBER = ("value", "measured", "interval")  # which have tolerances


def _unlike(place: str, then: Any, now: Any) -> Iterator[str]:
    """Each place where what is stored is not what the rows give, beyond rounding."""

    def told(old: Any, new: Any) -> str:
        return f"{place}stored {old}, but the rows give {new}"

    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*now, *then]):
            if key not in (*_NUMBER, "ancestry"):
                yield from _unlike(f"{place}{key}: ", then.get(key), now.get(key))
        if "interval" in now:
            old, new = ({n: each[n] for n in _NUMBER if n in each} for each in (then, now))
            if not _alike(old, new, _FLIPPED if place.endswith("power: ") else _ABSOLUTE):
                yield told(old, new)
    elif place.endswith("post_hoc: "):  # None: the history is not there to tell
        if {then, now} == {True, False}:
            yield told(then, now)
    elif isinstance(then, float) and isinstance(now, float):  # shares of simulated data
        if abs(then - now) > _FLIPPED:
            yield told(then, now)
    elif _words(then) != _words(now):
        yield told(repr(then), repr(now))


def _words(value: Any) -> Any:
    """A text without its numbers, which are compared with tolerances elsewhere."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", value) if isinstance(value, str) else value


def _alike(old: dict[str, Any], new: dict[str, Any], absolute: float) -> bool:
    """Whether two numbers with their intervals differ by less than rounding or a redrawn sample."""
    values = [each.get("value", each.get("measured")) for each in (old, new)]
    ends = [each.get("interval") or [] for each in (old, new)]
    if len(ends[0]) != len(ends[1]):
        return False
    pairs = [values, *zip(*ends, strict=True)]
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    known = [a for a in ends[0] if a is not None]
    of_width = _OF_WIDTH * (max(known) - min(known)) if known else 0.0
    tolerances = [absolute, *(max(absolute, of_width) for _ in ends[0])]
    return all(
        a is None or math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=tolerance)
        for (a, b), tolerance in zip(pairs, tolerances, strict=True)
    )


def _as_dict(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    scopes = [_scope_as_dict(scope, claim.headline) for scope in verdict.scopes]
    first = next(scope for scope in scopes if scope["scope"] == verdict.deciding.name)
    own = {kind: scope for kind in EVIDENCE_KINDS if (scope := verdict.by_kind(kind))}
    return {
        "id": claim.id,
        "paper": claim.paper,
        "title": claim.title,
        **{name: first[name] for name in _OF_DECIDING},
        "kinds": {
            kind: {"verdict": scope.verdict, "scope": scope.name} for kind, scope in own.items()
        },
        "measure": claim.headline,
        "measured": first["measured"],
        "interval": first["interval"],
        "rule": verdict.rule,
        "post_hoc": first["post_hoc"],
        "ancestry": first["ancestry"],
        "reason": first["reason"],
        "decided_in": first["scope"],
        "scopes": scopes,
    }


_OF_DECIDING = (
    "verdict", "raw_verdict", "undecided", "says", "because", "attainability", "false_fail",
    "false_pass", "kind",
)  # fmt: skip


def _scope_as_dict(scope: ScopeVerdict, headline: str) -> dict[str, Any]:
    outcome, simulated = scope.outcome, scope.simulated
    deciding = outcome.units.get(outcome.unit, {}).get(headline)
    return {
        "scope": scope.name,
        "kind": scope.kind,
        "verdict": scope.verdict,
        "raw_verdict": scope.raw_verdict,
        "undecided": scope.standing.why,
        "says": scope.standing.says,
        "because": scope.standing.because,
        **{
            name: _number(getattr(simulated, name)) if simulated else None
            for name in ("attainability", "false_fail", "false_pass")
        },
        "decided_by": outcome.unit,
        "measured": _number(deciding.value) if deciding else None,
        "interval": _interval(deciding) if deciding else None,
        "reason": outcome.reason,
        "runs": scope.runs,
        "post_hoc": scope.ancestry.post_hoc,
        "ancestry": scope.ancestry.note,
        "units": {
            unit: {
                "verdict": outcome.verdicts[unit],
                "measures": {
                    name: {"value": _number(found.value), "interval": _interval(found)}
                    for name, found in measures.items()
                },
            }
            for unit, measures in scope.units.items()
        },
    }


def _in_words(found: Measure) -> str:
    known = math.isfinite(found.low) and math.isfinite(found.high)
    return f"{found.value:.4g}" + f" [{found.low:.4g}, {found.high:.4g}]" * known


def _interval(found: Measure) -> list[float | None] | None:
    if math.isnan(found.low) and math.isnan(found.high):
        return None
    return [_number(found.low), _number(found.high)]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _line(label: str, title: str, scope: ScopeVerdict, verdict: Verdict) -> str:
    found = _scope_as_dict(scope, verdict.claim.headline)
    number = scope.outcome.reason if scope.verdict in (NO_ROWS, OUT_OF_REACH) else ""
    if found["measured"] is not None:
        deciding = scope.units[scope.outcome.unit][verdict.claim.headline]
        number = f"{verdict.claim.headline} {_in_words(deciding)}"
    hoc = {True: "post hoc", None: "ancestry not checked", False: ""}[scope.ancestry.post_hoc]
    raw = f"(by the rule alone {scope.raw_verdict}: {scope.standing.why})"
    parts = (f"{label:<4}{scope.verdict:<18}", title, number, raw * bool(scope.standing.why), hoc)
    return "  ".join(part for part in parts if part)
