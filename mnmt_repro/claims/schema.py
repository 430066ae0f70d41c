"""The claims files: what a paper says, how we measure it, and what counts as reproducing it.

``data/claims/<paper>.yml`` is read into frozen objects, and every field is checked. The
machine-readable part of a claim (estimand, options, scope, alternative, rule) has a fingerprint.
`mnmt_repro.claims.history` uses it to find the commit that fixed this part.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from mnmt_repro.errors import InputError
from mnmt_repro.reading import shown

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C, where libyaml is installed

VERDICTS = ("reproduced", "direction only", "inconclusive", "not reproduced")
"""What a rule may conclude. Other verdicts are `OUT_OF_REACH`, `NO_ROWS` and `UNDECIDED`."""
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
    op: str
    value: float
    of: str = "value"  # or "low", "high"

    def __str__(self) -> str:
        part = "" if self.of == "value" else f"{self.of} end of "
        return f"{part}{self.measure} {self.op} {self.value:g}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A verdict, given where all of its conditions are met. The last step has no conditions."""

    verdict: str
    when: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        conditions = " and ".join(str(condition) for condition in self.when)
        return f"{self.verdict}: {conditions or 'otherwise'}"


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
    n: str = "n_non_embedding"
    tier: str = "mini"
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: tuple[Step, ...] = ()
    worlds: Worlds | None = None
    half: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Worlds:
    """Truths from which data are simulated, to see which verdicts a rule would give.

    In the world `right` the paper is right. In the worlds `wrong` it is not.
    `claims.attainability` explains the fields of a world.
    """

    right: Mapping[str, Any]
    wrong: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """The effect that the test of an "unchanged" claim must see with a power of 80 %."""

    measure: str
    effect: float
    meaning: str
    sides: int = 2


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
    about the reason, for each verdict of the first scope that it discusses. `revised` says what was
    changed after the first commit, and why: the rule, or how its measures are computed.
    `converged` is given for a claim about models that have converged. It is the tolerance by which
    the headline measure may move between half the budget and all of it.
    """

    id: str
    paper: str
    title: str
    where: str
    statement: str
    published: tuple[Mapping[str, Any], ...]
    function: str
    headline: str
    description: str
    options: Mapping[str, Any]
    scopes: tuple[Scope, ...]
    rule: tuple[Step, ...]
    tier: str
    alternative: Alternative | None = None
    cells: tuple[Step, ...] = ()
    out_of_reach: str = ""
    page: str = ""
    explained: Mapping[str, str] = field(default_factory=dict)
    revised: tuple[str, ...] = ()
    worlds: Worlds | None = None
    converged: float | None = None

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


def _as_data(rule: Sequence[Step]) -> list[Any]:
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


def parse_claims(text: str, where: str) -> list[Claim]:
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
    return [_claim(entry, paper, where) for entry in entries]


def _claim(entry: Any, paper: str, where: str) -> Claim:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise InputError(f"{where}: every claim needs an id, such as A1")
    where = f"{where}: claim {name}"
    texts = ("id", "title", "where", "statement", "tier")
    required = (*texts, "published", "estimand", "scopes", "rule")
    optional = ("out_of_reach", "page")
    older = ("gap_of_scale",)  # a field of earlier versions, whose rules `claims.history` reads
    more = ("alternative", "cells", "explained", "revised", "worlds", "converged")
    _fields(entry, required, (*more, *optional, *older), where)
    for key in (*texts, *(key for key in optional if key in entry)):
        _kind(entry[key], str, f"{where}: {key}", "text")
    if "converged" in entry:
        _kind(entry["converged"], (int, float), f"{where}: converged", "a number")
    explained = entry.get("explained", {})
    _fields(explained, (), VERDICTS, f"{where}: explained")
    if explained and not entry.get("page"):
        raise InputError(f"{where}: explained needs a page, where the explanation is borne out")
    for verdict, text in explained.items():
        _kind(text, str, f"{where}: explained.{verdict}", "text")
    revised = _list(entry["revised"], f"{where}: revised") if "revised" in entry else []
    for text in revised:
        _kind(text, str, f"{where}: revised", "a list of texts")
    estimand = entry["estimand"]
    keys = ("function", "headline", "options", "description")
    _fields(estimand, keys, (), f"{where}: estimand")
    for key in ("function", "headline", "description"):
        _kind(estimand[key], str, f"{where}: estimand.{key}", "text")
    _kind(estimand["options"], dict, f"{where}: estimand.options", "a mapping")
    published = _list(entry["published"], f"{where}: published")
    for i, item in enumerate(published):
        number = "cells" if isinstance(item, dict) and "cells" in item else "value"
        _fields(item, ("quantity", number), ("unit", "note"), f"{where}: published[{i}]")
    alternative = None
    if "alternative" in entry:
        given, at = entry["alternative"], f"{where}: alternative"
        _fields(given, ("measure", "effect", "meaning"), ("sides",), at)
        _kind(given["effect"], (int, float), f"{at}.effect", "a number")
        if given.get("sides", 2) not in (1, 2):
            raise InputError(f"{at}.sides must be 1 or 2, got {given['sides']!r}")
        alternative = Alternative(**given)
    return Claim(
        **{key: entry[key] for key in texts},
        paper=paper,
        published=tuple(published),
        **{**estimand, "options": Options(estimand["options"], f"{where}: estimand")},
        scopes=tuple(
            _scope(item, f"{where}: scopes[{i}]")
            for i, item in enumerate(_list(entry["scopes"], f"{where}: scopes"))
        ),
        rule=_rule(entry["rule"], f"{where}: rule"),
        alternative=alternative,
        cells=_rule(entry["cells"], f"{where}: cells") if "cells" in entry else (),
        explained=explained,
        revised=tuple(revised),
        worlds=_worlds(entry["worlds"], f"{where}: worlds") if "worlds" in entry else None,
        converged=entry.get("converged"),
        **{key: entry.get(key, "") for key in optional},
    )


def _worlds(value: Any, where: str) -> Worlds:
    _fields(value, ("right", "wrong"), (), where)
    _kind(value["right"], dict, f"{where}.right", "a mapping")
    wrong = _list(value["wrong"], f"{where}.wrong")
    for i, world in enumerate(wrong):
        _kind(world, dict, f"{where}.wrong[{i}]", "a mapping")
    return Worlds(right=value["right"], wrong=tuple(wrong))


def _rule(value: Any, where: str) -> tuple[Step, ...]:
    steps = [_step(item, f"{where}[{i}]") for i, item in enumerate(_list(value, where))]
    if steps[-1].when or any(not step.when for step in steps[:-1]):
        raise InputError(f"{where}: the last step, and only it, has no conditions")
    return tuple(steps)


def _step(item: Any, where: str) -> Step:
    _fields(item, ("verdict",), ("when",), where)
    if item["verdict"] not in VERDICTS:
        raise InputError(f"{where}.verdict must be one of {', '.join(VERDICTS)}")
    conditions = []
    listed = item.get("when", [])
    _kind(listed, list, f"{where}.when", "a list")
    for i, given in enumerate(listed):
        at = f"{where}.when[{i}]"
        _fields(given, ("measure", "op", "value"), ("of",), at)
        _kind(given["value"], (int, float), f"{at}.value", "a number")
        _kind(given["op"], str, f"{at}.op", "text")
        if given["op"] not in OPERATORS:
            raise InputError(f"{at}.op must be one of {', '.join(OPERATORS)}, got {given['op']!r}")
        if given.get("of", "value") not in ("value", "low", "high"):
            raise InputError(f"{at}.of must be value, low or high, got {given['of']!r}")
        conditions.append(Condition(**given))
    return Step(verdict=item["verdict"], when=tuple(conditions))


def _scope(item: Any, where: str) -> Scope:
    texts = ("test_set", "other_test_set", "domain", "n", "tier")
    _fields(item, ("name", "cohorts"), (*texts, "options", "rule", "worlds", "half"), where)
    for key, value in item.items():
        if key in ("name", *texts):
            _kind(value, str, f"{where}.{key}", "text")
    _kind(item["cohorts"], list, f"{where}.cohorts", "a list")
    _kind(item.get("half", []), list, f"{where}.half", "a list")
    _kind(item.get("options", {}), dict, f"{where}.options", "a mapping")
    if item.get("n", "n_total") not in ("n_non_embedding", "n_total"):
        raise InputError(f"{where}.n must be n_non_embedding or n_total, got {item['n']!r}")
    given = dict(item)
    if "rule" in item:
        given["rule"] = _rule(item["rule"], f"{where}.rule")
    if "worlds" in item:
        given["worlds"] = _worlds(item["worlds"], f"{where}.worlds")
    lists = {key: tuple(item.get(key, ())) for key in ("cohorts", "half")}
    return Scope(**{**given, **lists})


def _fields(value: Any, required: Sequence[str], optional: Sequence[str], where: str) -> None:
    _kind(value, dict, where, "a mapping")
    for key in required:
        if key not in value:
            raise InputError(f"{where}: {key} is missing")
    for key in value:
        if key not in (*required, *optional):
            raise InputError(f"{where}: {key} is not a field of a claim")


def _list(value: Any, where: str) -> list[Any]:
    _kind(value, list, where, "a list")
    if not value:
        raise InputError(f"{where} is empty")
    return value


def _kind(value: Any, kind: type | tuple[type, ...], where: str, words: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{where} must be {words}, got {shown(value)}")
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        raise InputError(f"{where} has a key that is no text; write it in quotes")
