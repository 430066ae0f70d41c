"""Claims and verdicts made by hand, and those of the checkout."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from synthetic import rows

from mnmt_repro.papers.claims import load_claims, read_stored, write_stored
from mnmt_repro.papers.claims.history import Ancestry, History
from mnmt_repro.papers.claims.judging import Outcome, Result, Verdict, verdict_of
from mnmt_repro.papers.claims.schema import Claim
from mnmt_repro.papers.effects.evidence import Evidence, Setting, Units
from mnmt_repro.papers.effects.noise import Measure, NoRowsYet

ROOT = Path(__file__).resolve().parents[1]
NAN = math.nan


class NoHistory(History):
    """Rules that are older than all rows."""

    def check(self, claim: str, fingerprint: str, commits: object) -> Ancestry:
        return Ancestry(post_hoc=False, note="")


@cache
def declared_claims() -> dict[str, Claim]:
    """Every claim by its id."""
    return {claim.id: claim for claim in load_claims(ROOT / "data" / "claims")}


def setting(name: str = "here", **changes: Any) -> Setting:
    return Setting(**{"name": name, "kind": "real text", "cohorts": ("c",)} | changes)


def made_claim(**changes: Any) -> Claim:
    """A claim that asks for an effect of at least 3."""
    usual: dict[str, Any] = dict.fromkeys(
        ("title", "where", "statement", "page", "unit", "reason"), "x"
    )
    usual |= {
        "id": "Z1",
        "paper": "Z",
        "effect": "made",
        "measure": "capacity",
        "limit": 3,
        "side": ">=",
    }
    return Claim(**usual | {"headline": setting()} | changes)


def outcome(claim: Claim, value: float, low: float = NAN, high: float = NAN) -> Outcome:
    """What rows with this effect give."""
    effect = Measure(value=value, low=low, high=high)
    return Outcome(
        verdict=verdict_of(effect, claim.limit, claim.side),
        effect=effect,
        part="all",
        units={"all": {claim.measure: effect, "beside": Measure(value=0.5)}},
        why="" if math.isfinite(low) else "no rows yet",
    )


def made_verdict(
    claim: Claim, *, post_hoc: bool | None = False, **of_role: tuple[float, ...]
) -> Verdict:
    """Effects (value, low, high) by role; other roles of the claim have none."""
    results = {
        role: Result(
            role=role,
            setting=each,
            outcome=outcome(claim, *of_role.get(role.replace("-", "_"), (NAN,))),
            seeds=4,
            runs=8,
            sizes="732 to 37,216",
            ancestry=Ancestry(post_hoc=post_hoc, note=""),
        )
        for role, each in claim.settings.items()
    }
    return Verdict(claim=claim, results=results)


def stored_table(folder: Path, *verdicts: Verdict) -> pd.DataFrame:
    """Verdicts as pages read them."""
    (folder / "data" / "claims").mkdir(parents=True, exist_ok=True)
    write_stored(list(verdicts), folder)
    return read_stored(folder)


def entry(name: str = "Z1", **changes: Any) -> dict[str, Any]:
    """A claim as a file has it: the mean loss is at least 3."""
    usual: dict[str, Any] = dict.fromkeys(
        ("title", "where", "statement", "page", "unit", "reason"), "x"
    )
    usual |= {"effect": "made", "measure": "capacity", "limit": 3, "side": ">=", "headline": "here"}
    return {"id": name, **usual, **changes}


def write_claims(folder: Path, *entries: dict[str, Any], name: str = "test.yml") -> Path:
    """A claims file of a checkout, with two settings."""
    path = folder / "data" / "claims" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "here": {"kind": "real text", "cohorts": ["webtech-en-dezh"]},
        "there": {"kind": "generated languages", "cohorts": ["webtech-en-defr"]},
    }
    content = {"schema": 2, "paper": "Z", "settings": settings, "claims": list(entries)}
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def mean_loss(evidence: Evidence, setting: Setting) -> Units:
    """The effect `made` of `entry`."""
    rows = evidence.rows(setting)
    if rows.empty:
        raise NoRowsYet("no rows yet")
    mean = float(rows["cross_entropy"].mean())
    return {
        "all": {
            "capacity": Measure(value=mean, low=mean - 0.1, high=mean + 0.1),
            "r2": Measure(value=float(rows["cross_entropy"].min())),
        }
    }


def made_evidence(commit: str = "c0ffee") -> Evidence:
    """Rows with a mean loss of 3.3."""
    frame = rows("webtech-en-dezh", ("eng-deu",), loss=lambda p, n: 3.3, noise=0, commit=commit)
    columns = {"seed": 1, "variant": "", "updates_share": 1.0, "mixture": ""}
    return Evidence(frame=frame.assign(**columns))
