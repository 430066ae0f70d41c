"""The claims files: what a paper says, how we measure it, and what counts as reproducing it.

``data/claims/<paper>.yml`` is read into frozen objects, and every field is checked. The
machine-readable part of a claim (estimand, options, scope, alternative, rule) has a fingerprint.
`mnmt_repro.claims.history` uses it to find the commit that fixed this part.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)

from mnmt_repro.claims.worlds import described
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import shown

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C, where libyaml is installed

_ONLY = ConfigDict(extra="forbid")  # no entry has fields that its class has not
_Number = StrictInt | StrictFloat

VERDICTS = ("reproduced", "direction only", "inconclusive", "not reproduced")
"""What a rule may conclude. Other verdicts are `OUT_OF_REACH`, `NO_ROWS` and `UNDECIDED`."""
RuleVerdict = Annotated[str, Field(pattern=f"^({'|'.join(VERDICTS)})$")]
OUT_OF_REACH = "out of reach here"
NO_ROWS = "no rows yet"
UNDECIDED = "undecided here"
"""The verdict of a claim whose runs could not have decided it; see `claims.standing`."""

OPERATORS = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One comparison of a measure, or of an end of its interval, with a number."""

    measure: str
    op: Literal[">=", ">", "<=", "<", "=="]
    value: _Number
    of: Literal["value", "low", "high"] = "value"
    __pydantic_config__ = _ONLY

    def __str__(self) -> str:
        part = "" if self.of == "value" else f"{self.of} end of "
        return f"{part}{self.measure} {self.op} {self.value:g}"


@dataclass(frozen=True, kw_only=True)
class RuleStep:
    """A verdict, given where all of its conditions are met. The last step has no conditions."""

    verdict: RuleVerdict
    when: tuple[Condition, ...] = ()
    __pydantic_config__ = _ONLY

    def __str__(self) -> str:
        conditions = " and ".join(str(condition) for condition in self.when)
        return f"{self.verdict}: {conditions or 'otherwise'}"


def _ends(rule: tuple[RuleStep, ...]) -> tuple[RuleStep, ...]:
    if not rule or rule[-1].when or any(not step.when for step in rule[:-1]):
        raise ValueError("the last step, and only it, has no conditions")
    return rule


Rule = Annotated[tuple[RuleStep, ...], AfterValidator(_ends)]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where a claim is evaluated: which rows, and against which parameter count.

    `options` replace the claim's options of the same names. `rule` and `worlds`, where they are
    given, replace the claim's. `half` names the cohorts that contain the same runs at half the
    budget, in the order of `cohorts`. They show whether the runs have converged.
    """

    name: str
    cohorts: tuple[str, ...]
    test_set: str = "indomain"
    other_test_set: str = ""
    domain: str = "all"
    n: Literal["n_non_embedding", "n_total"] = "n_non_embedding"
    tier: str = "mini"
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: Rule = ()
    worlds: Worlds | None = None
    half: tuple[str, ...] = ()
    __pydantic_config__ = _ONLY


@dataclass(frozen=True, kw_only=True)
class Worlds:
    """Truths from which data are simulated, to see which verdicts a rule would give.

    In the world `right` the paper is right. In the worlds `wrong` it is not.
    `claims.attainability` explains the fields of a world.
    """

    right: Mapping[str, Any]
    wrong: Annotated[tuple[Mapping[str, Any], ...], Field(min_length=1)]
    __pydantic_config__ = _ONLY

    def described(self) -> dict[str, str]:
        """What is true in these worlds, in words."""
        return {
            "If right": described(self.right),
            "If wrong": "; or ".join(map(described, self.wrong)),
        }


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """The effect that the test of an "unchanged" claim must see with a power of 80 %."""

    measure: str
    effect: _Number
    meaning: str
    sides: Literal[1, 2] = 2
    __pydantic_config__ = _ONLY


def _of_paper(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A published number is a value, or the cells of a table."""
    number = "cells" if "cells" in item else "value"
    if not {"quantity", number} <= item.keys() <= {"quantity", number, "unit", "note"}:
        raise ValueError("needs a quantity, a value or cells, and perhaps a unit and a note")
    return item


class Options(dict[str, Any]):
    """Arguments of an estimand. An argument that the claim omits raises `InputError`."""

    def __init__(self, given: Mapping[str, Any], where: str) -> None:
        super().__init__(given)
        self.where = where

    def __missing__(self, key: str) -> Any:
        raise InputError(f"{self.where}.options lacks {key!r}")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One entry of a claims file. See the head of ``data/claims/paper_a.yml`` for its fields.

    A claim about a table has sub-claims, one for each published cell, and `cells` is their rule.
    `page` is the page of the book that examines the claim. `explained` is what that page found
    about the reason, for each verdict of the first scope that it discusses. `suspected` is what may
    explain that the claim is not reproduced, besides that it is wrong. `missing` is what would
    decide it, where that is more than its kind of doubt tells. `revised` says what was
    changed after the first commit, and why: the rule, or how its measures are computed.
    `converged` is given for a claim about models that have converged. It is the tolerance by which
    the headline measure may move between half the budget and all of it.
    """

    id: str
    paper: str
    title: str
    where: str
    statement: str
    published: Annotated[
        tuple[Annotated[Mapping[str, Any], AfterValidator(_of_paper)], ...], Field(min_length=1)
    ]
    function: str
    headline: str
    description: str
    options: Mapping[str, Any]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    rule: Rule
    alternative: Alternative | None = None
    cells: Rule = ()
    out_of_reach: str = ""
    page: str = ""
    explained: Mapping[RuleVerdict, str] = field(default_factory=dict)
    suspected: str = ""
    missing: str = ""
    revised: tuple[str, ...] = ()
    worlds: Worlds | None = None
    converged: _Number | None = None
    __pydantic_config__ = _ONLY

    @property
    def own_scopes(self) -> tuple[Scope, ...]:
        """Scopes that may give the headline: with the test set and the count of the first one.

        The others show how much the outcome depends on these choices.
        """
        first = self.scopes[0]
        return tuple(
            scope
            for scope in self.scopes
            if (scope.test_set, scope.domain, scope.n) == (first.test_set, first.domain, first.n)
        )

    def in_scope(self, scope: Scope) -> Claim:
        """The claim with the options, the rule and the worlds that it has in one of its scopes."""
        where = getattr(self.options, "where", self.id)
        return replace(
            self,
            options=Options({**self.options, **scope.options}, where),
            rule=scope.rule or self.rule,
            worlds=scope.worlds or self.worlds,
        )

    def fingerprint(self, scope: Scope) -> str:
        """SHA-256 of everything that can change the verdict in `scope`; prose is left out.

        The code behind a measure is in no claims file, so the number of `revised` entries counts.
        """
        judged: dict[str, Any] = {
            "function": self.function,
            "options": self.options,
            "scope": {
                key: value
                for key, value in vars(scope).items()
                if key not in ("name", "rule", "worlds")
                and (value or key not in ("options", "half"))
            },
            "alternative": self.alternative
            and [self.alternative.measure, self.alternative.effect, self.alternative.sides],
            "rule": _as_data(scope.rule or self.rule),
        }
        if scope.worlds:  # the claim's worlds came after the rows of its first scopes
            judged["worlds"] = [scope.worlds.right, scope.worlds.wrong]
        if self.cells:
            judged["cells"] = _as_data(self.cells)
        if self.revised:
            judged["revisions"] = len(self.revised)
        text = json.dumps(judged, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _as_data(rule: Sequence[RuleStep]) -> list[Any]:
    return [[step.verdict, [vars(condition) for condition in step.when]] for step in rule]


def load_claims(folder: Path | str) -> list[Claim]:
    """All claims of a folder of YAML files, in the order of the files and their entries.

    Raises
    ------
    InputError
        Naming file, claim and field, when an entry is incomplete, misspelt or repeated.
    """
    paths = sorted(Path(folder).glob("*.yml"))
    if not paths:
        raise InputError(f"{folder}: no claims (*.yml) here; point to data/claims of a checkout")
    claims: list[Claim] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8: {error}") from error
        claims += parse_claims(text, str(path))
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise InputError(f"{folder}: claim {claim.id} is given twice")
        seen.add(claim.id)
    return claims


@functools.lru_cache(maxsize=4)  # a page asks for them again and again
def parse_claims(text: str, where: str) -> tuple[Claim, ...]:
    """Claims of one YAML text; `where` names it in messages. Raises as `load_claims`."""
    try:
        content = yaml.load(text, Loader=_Loader)
        json.dumps(content, sort_keys=True)  # as fingerprints are made
    except yaml.YAMLError as error:
        raise InputError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except TypeError as error:
        raise InputError(f"{where}: no plain data: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != 1:
        raise InputError(f"{where}: needs schema: 1, paper and a list of claims")
    entries = content.get("claims")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: claims must be a list with at least one entry")
    paper = content.get("paper")
    if not isinstance(paper, str):
        raise InputError(f"{where}: paper is missing")
    return tuple(_claim(entry, paper, where) for entry in entries)


_CLAIM = TypeAdapter(Claim)
_FORMER = ("gap_of_scale", "tier")
"""Fields of a claim in earlier versions, which `history` reads."""


def _claim(entry: Any, paper: str, where: str) -> Claim:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise InputError(f"{where}: every claim needs an id, such as A1")
    where = f"{where}: claim {name}"
    given = {key: value for key, value in entry.items() if key not in ("estimand", *_FORMER)}
    estimand = entry.get("estimand")
    if not isinstance(estimand, dict) or given.keys() & {*estimand, "paper"}:
        raise InputError(f"{where}: estimand must be a mapping with fields of its own")
    try:
        claim = _CLAIM.validate_python({**given, **estimand, "paper": paper})
    except ValidationError as error:
        first = error.errors()[0]
        place, found = ".".join(map(str, first["loc"])), shown(first["input"])
        raise InputError(f"{where}: {place}: {first['msg']}, got {found}") from error
    if claim.explained and not claim.page:
        raise InputError(f"{where}: explained needs a page, where the explanation is borne out")
    return replace(claim, options=Options(estimand["options"], f"{where}: estimand"))
