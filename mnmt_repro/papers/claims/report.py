"""Verdicts of a whole checkout: computed, printed, stored, and compared with what is stored.

They are stored as one flat table: a row for each claim, setting, part and measure. The rows of the
effect itself have the verdict.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from mnmt_repro import results
from mnmt_repro.atomic import write_bytes
from mnmt_repro.disk_cache import (
    Recall,
    as_json,
    code_digest,
    files_digest,
    kept_values,
    text_digest,
)
from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims.history import History
from mnmt_repro.papers.claims.judging import Judge, Outcome, Result, Verdict, evaluate, judge
from mnmt_repro.papers.claims.schema import FOLDER, VERDICTS, Claim, claims_by_id, load_claims
from mnmt_repro.papers.effects.evidence import Evidence, Setting
from mnmt_repro.papers.effects.public_losses import load_external
from mnmt_repro.papers.effects.published import PAPERS
from mnmt_repro.repository import ROOT

STORED = FOLDER / "verdicts.csv"
COLUMNS = (
    *("claim", "role", "setting", "kind", "part", "measure", "value", "low", "high"),
    *("verdict", "resolution", "limit", "side", "unit", "seeds", "runs", "sizes", "post_hoc"),
    *("robust", "why"),
)
"""Of the stored table. Those from `verdict` on are empty but in rows of an effect."""
LATER_ROOMS = ("charts", "pages", "commands", "cli", "__main__.py")
"""Rooms of the package that no other room imports, so that no outcome depends on them."""
_RELATIVE, _ABSOLUTE, _OF_WIDTH = 0.02, 1e-3, 0.05


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
        Compute every outcome again, also where the cache has that of the same claim, rows and code.

    Raises
    ------
    InputError
        When a claims file or a stored run breaks its schema, or `only` names no claim.
    """
    root = Path(root)
    claims = load_claims(root / FOLDER)
    if only is not None:
        known = ", ".join(claim.id for claim in claims)
        claims = [claim for claim in claims if claim.id == only.upper()]
        if not claims:
            raise InputError(f"{only}: no such claim in {root / FOLDER}; there are {known}")
    evidence = evidence or stored_evidence(root, store)
    history = History(root, fresh=fresh)
    name = f"outcomes-{text_digest(str(root.resolve()))[:12]}"
    with kept_values(name, as_json(Outcome), fresh=fresh) as recall:
        judge = _recalling(recall)
        return [
            evaluate(claim, evidence, history, judge)
            for claim in tqdm(claims, desc="claims", disable=None, leave=False)
        ]


def _recalling(recall: Recall[Outcome]) -> Judge:
    """`judge`, whose outcomes are kept under a hash of claim, rows of the tier, and code."""
    code = text_digest(code_digest(without=LATER_ROOMS), files_digest(PAPERS, PAPERS.iterdir()))

    def judged(claim: Claim, setting: Setting, evidence: Evidence) -> Outcome:
        own = evidence.tiers.get(setting.tier, evidence)
        key = text_digest(code, own.digest, repr(claim), repr(setting))
        return recall(key, lambda: judge(claim, setting, own))

    return judged


def stored_evidence(root: Path, store: Path | None = None) -> Evidence:
    """All rows of a store (`results.results_root`), and the public losses beside them."""
    store = results.results_root(store, checkout=root)
    frame = results.load(root=store)
    return Evidence(
        frame=pd.concat([frame, load_external(root / "data" / "external")], ignore_index=True),
        analyses=results.load_analyses(frame, root=store),
    )


def to_table(verdicts: list[Verdict]) -> pd.DataFrame:
    """Verdicts as the flat table of `COLUMNS`; numbers have six digits."""
    records = (row for each in verdicts for row in _rows(each))
    table = pd.DataFrame(records, columns=list(COLUMNS))
    return table.fillna(dict.fromkeys(set(COLUMNS) - set(_NUMBERS), ""))


def _rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    claim = verdict.claim
    for result in verdict.results.values():
        outcome = result.outcome
        place = {"claim": claim.id, "role": result.role, "setting": result.setting.name}
        place |= {"kind": result.setting.kind}
        judged = result.setting in claim.judged
        yield {
            **place,
            "part": outcome.part,
            "measure": claim.measure,
            **_numbers(outcome.effect),
            "verdict": outcome.verdict if judged else "",
            "resolution": _rounded(outcome.resolution),
            "limit": " to ".join(f"{end:g}" for end in _as_tuple(claim.limit)),
            "side": claim.side,
            "unit": claim.unit,
            "seeds": result.seeds,
            "runs": result.runs,
            "sizes": result.sizes,
            "post_hoc": {True: "yes", False: "no", None: "not known"}[result.ancestry.post_hoc],
            "robust": verdict.robust if result is verdict.headline else "",
            "why": outcome.why,
        }
        for part, measures in outcome.units.items():
            for name, measure in measures.items():
                if (part, name) != (outcome.part, claim.measure):
                    yield {**place, "part": part, "measure": name, **_numbers(measure)}


def _as_tuple(limit: float | tuple[float, float]) -> tuple[float, ...]:
    return limit if isinstance(limit, tuple) else (limit,)


def _numbers(measure: Any) -> dict[str, float]:
    return {end: _rounded(getattr(measure, end)) for end in ("value", "low", "high")}


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def to_json(verdicts: list[Verdict]) -> str:
    """Verdicts as JSON for programs: a list with an object for each claim.

    It has `id`, `verdict`, `value`, `low`, `high`, `limit`, `side`, `unit`, `resolution`, `seeds`,
    `setting`, `kind`, `post_hoc`, `robust`, `why`, and the numbers of its `ways`. What is not
    known is null.
    """
    told = json.dumps([_as_object(each) for each in verdicts])
    known = json.loads(told, parse_constant=lambda _: None)  # no NaN, which JSON does not have
    return json.dumps(known, indent=1, ensure_ascii=False)


_OF_A_CLAIM = (
    *("verdict", "value", "low", "high", "limit", "side", "unit", "resolution", "seeds"),
    *("setting", "kind", "post_hoc", "robust", "why"),
)


def _as_object(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    row = next(_rows(verdict)) | {"limit": claim.limit}
    row["post_hoc"] = verdict.headline.ancestry.post_hoc
    ways = {way: _numbers(verdict.results[way].outcome.effect) for way in claim.robustness}
    return {"id": claim.id, **{name: row[name] for name in _OF_A_CLAIM}, "ways": ways}


def to_text(verdicts: list[Verdict]) -> str:
    """Verdicts for the terminal: a line a claim, and how many there are of each."""
    lines = [_line(each.claim.id, each.headline, each.claim) for each in verdicts]
    counts = Counter(each.headline.outcome.verdict for each in verdicts)
    lines.append(", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name]))
    return "\n".join(lines)


def _line(name: str, result: Result, claim: Claim) -> str:
    outcome = result.outcome
    late = ", post hoc" * (result.ancestry.post_hoc is True)
    known = math.isfinite(outcome.effect.value)
    effect = f"{_in_words(outcome.effect)}, limit {limit_in_words(claim)}" if known else outcome.why
    return f"{name:4} {outcome.verdict + late:24} {claim.title}: {effect}"


def limit_in_words(claim: Claim) -> str:
    """The limit of a claim and its side.

    >>> from types import SimpleNamespace
    >>> limit_in_words(SimpleNamespace(limit=3, side=">=")), limit_in_words(
    ...     SimpleNamespace(limit=(-0.1, 0.1), side="within")
    ... )
    ('at least 3', 'from -0.1 to 0.1')
    """
    if isinstance(claim.limit, tuple):
        return f"from {claim.limit[0]:g} to {claim.limit[1]:g}"
    return f"at {'least' if claim.side == '>=' else 'most'} {claim.limit:g}"


def to_detail(verdict: Verdict) -> str:
    """One claim for the terminal: the paper, the limit, and what each setting gave."""
    claim = verdict.claim
    lines = [
        f"{claim.id} {verdict.headline.outcome.verdict}: {claim.title}",
        f"the paper ({claim.where}): {claim.statement}",
        f"effect: {claim.measure} of {claim.effect}, in {claim.unit}",
        f"limit: {limit_in_words(claim)}. {claim.reason}",
        f"robust: {verdict.robust}",
    ]
    for result in verdict.results.values():
        outcome = result.outcome
        judged = f": {outcome.verdict}" if result.setting in claim.judged else ""
        lines += ["", f"{result.role}, {result.setting.name} ({result.setting.kind}){judged}"]
        if outcome.why:
            lines.append(f"  {outcome.why}")
        if outcome.units:
            lines.append(f"  {result.runs} runs, {result.seeds} seeds; {result.ancestry.note}")
        for part, measures in outcome.units.items():
            decides = " (this part decides)" * (part == outcome.part != "all")
            lines.append(f"  {part}{decides}")
            lines += [f"    {name} {_in_words(measure)}" for name, measure in measures.items()]
    if claim.note:
        lines += ["", f"{claim.note.strip()} (book/{claim.page}.ipynb)"]
    return "\n".join(lines)


def _in_words(measure: Any) -> str:
    known = math.isfinite(measure.low) and math.isfinite(measure.high)
    return f"{measure.value:.4g}" + f" [{measure.low:.4g}, {measure.high:.4g}]" * known


def write_stored(verdicts: list[Verdict], root: str | os.PathLike[str]) -> Path:
    """Store the verdicts in ``data/claims/verdicts.csv``, whole or not at all."""
    path = Path(root) / STORED
    write_bytes(path, to_table(verdicts).to_csv(index=False, lineterminator="\n").encode())
    return path


def read_stored(root: str | os.PathLike[str] = ROOT) -> pd.DataFrame:
    """Read the stored verdicts, as `to_table` made them; no rows where none are stored.

    Raises
    ------
    InputError
        When the file is torn.
    """
    path = Path(root) / STORED
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return _parsed(path.read_bytes(), path)


def _parsed(content: bytes, path: Path) -> pd.DataFrame:
    text = [name for name in COLUMNS if name not in _NUMBERS]
    try:
        types = dict.fromkeys(text, str) | dict.fromkeys(_NUMBERS, float)
        table = pd.read_csv(io.BytesIO(content), dtype=types)
    except ValueError as error:
        table = pd.DataFrame()
        why = f": {error}"
    else:
        why = ""
    if tuple(table.columns) != COLUMNS:
        raise InputError(
            f"{path}: no table of verdicts{why}; restore the file, or write it with verify --write"
        )
    return table.fillna(dict.fromkeys(text, ""))


_NUMBERS = ("value", "low", "high", "resolution", "seeds", "runs")


def headlines(stored: pd.DataFrame) -> pd.DataFrame:
    """The row of each claim that gives its verdict, by claim."""
    effects = stored[(stored["role"] == "headline") & (stored["verdict"] != "")]
    return effects.set_index("claim", drop=False)


def differences(verdicts: list[Verdict], stored: pd.DataFrame) -> dict[str, str]:
    """Where a stored verdict does not follow from the rows: claim id to what differs.

    Compared are all numbers (values to 2 %, ends of intervals to a twentieth of the width), and all
    words but those of `why`. A negative verdict is no difference. An empty dictionary means that
    all of them follow.
    """
    now = _parsed(to_table(verdicts).to_csv(index=False).encode(), STORED)
    wrong: dict[str, str] = {}
    for claim in dict.fromkeys([*now["claim"], *stored["claim"]]):
        old, new = (table[table["claim"] == claim] for table in (stored, now))
        if old.empty or new.empty:
            wrong[claim] = "no stored verdict" if old.empty else "stored, but no claim any more"
        elif first := next(_unlike(old, new), ""):
            wrong[claim] = first
    return wrong


_KEY = ["role", "setting", "part", "measure"]


def _unlike(old: pd.DataFrame, new: pd.DataFrame) -> Iterator[str]:
    """Each place where what is stored is not what the rows give, beyond rounding."""
    both = [
        {tuple(row[key] for key in _KEY): row for row in table.to_dict("records")}
        for table in (old, new)
    ]
    for key in dict.fromkeys([*both[1], *both[0]]):
        then, now = (rows.get(key) for rows in both)
        place = ", ".join(filter(None, key))
        if then is None or now is None:
            yield f"{place}: {'not stored' if then is None else 'stored, but not measured now'}"
            continue
        width = now["high"] - now["low"]
        for column in COLUMNS:
            if column in _NUMBERS:
                at_end = column in ("low", "high", "resolution") and math.isfinite(width)
                margin = max(_ABSOLUTE, _OF_WIDTH * width) if at_end else _ABSOLUTE
                same = _alike(then[column], now[column], margin)
            elif column == "post_hoc":  # not known without the history of the claims
                same = then[column] == now[column] or "not known" in (then[column], now[column])
            else:
                same = then[column] == now[column] or column == "why"
            if not same:
                yield f"{place}, {column}: stored {then[column]}, but the rows give {now[column]}"


def _alike(old: float, new: float, margin: float) -> bool:
    """Whether two numbers differ by less than rounding or a redrawn sample."""
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return math.isclose(old, new, rel_tol=_RELATIVE, abs_tol=margin)


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
    known = claims_by_id()
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
