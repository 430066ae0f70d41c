"""Simulated outcomes, stored in ``data/claims/attainability.json``.

Each record has a key: a hash of the rule, its worlds and the runs that the scope reads. A record
whose key is no longer the scope's own counts as missing, and so does one of fewer data sets than
`WORLD_DRAWS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mnmt_repro.atomic import write_bytes
from mnmt_repro.claims.attainability import SIMULATORS, WORLD_DRAWS, Attainability
from mnmt_repro.claims.evaluate import Simulations
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.schema import Claim, Scope
from mnmt_repro.errors import InputError

SIMULATIONS_FILE = Path("data", "claims", "attainability.json")


def simulation_key(claim: Claim, scope: Scope, evidence: Evidence) -> str:
    """Hash of all that decides a simulation but the code."""
    worlds = claim.in_scope(scope).worlds
    judged = [
        claim.fingerprint(scope),
        None if worlds is None else [worlds.right, worlds.wrong],
        sorted(set(evidence.rows(scope)["run_id"])),
    ]
    return hashlib.sha256(json.dumps(judged, sort_keys=True).encode()).hexdigest()[:16]


def simulable(claims: Iterable[Claim]) -> list[tuple[Claim, Scope]]:
    """Claims and scopes that state worlds, and whose estimand has a simulator.

    Those that may give a claim's headline come first.
    """
    found = [
        (claim, scope)
        for claim in claims
        for scope in claim.scopes
        if claim.function in SIMULATORS and claim.in_scope(scope).worlds is not None
    ]
    return sorted(found, key=lambda pair: pair[1] not in pair[0].own_scopes)


def read_simulations(root: Path, claims: Iterable[Claim], evidence: Evidence) -> Simulations:
    """The stored simulations that are current.

    Raises
    ------
    InputError
        When the file is torn.
    """
    stored = _read(root / SIMULATIONS_FILE)
    found = {}
    for claim, scope in simulable(claims):
        record = stored.get(f"{claim.id}, {scope.name}")
        if (
            record
            and record["draws"] >= WORLD_DRAWS
            and record["key"] == simulation_key(claim, scope, evidence)
        ):
            found[claim.id, scope.name] = Attainability(
                right=record["right"], wrong=tuple(record["wrong"]), draws=record["draws"]
            )
    return found


def write_simulation(
    root: Path, claim: Claim, scope: Scope, evidence: Evidence, found: Attainability
) -> None:
    """Add a simulation to the stored ones, or replace it; the file is written whole."""
    stored = _read(root / SIMULATIONS_FILE)
    stored[f"{claim.id}, {scope.name}"] = {
        "key": simulation_key(claim, scope, evidence),
        "draws": found.draws,
        "right": found.right,
        "wrong": list(found.wrong),
    }
    text = json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False)
    write_bytes(root / SIMULATIONS_FILE, (text + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert all(
            {"key", "draws", "right", "wrong"} <= record.keys() for record in stored.values()
        )
    except (ValueError, AttributeError, AssertionError) as error:
        raise InputError(
            f"{path}: not a list of simulations; remove it and run: mnmt-repro attainability"
        ) from error
    return stored
