"""The claims files: what a paper says, the effect that measures it, and the limit that decides.

``data/claims/<paper>.yml`` is read into frozen objects, and every field is checked. The head of
``data/claims/paper_a.yml`` explains the fields. What decides a claim in one setting has a
fingerprint, by which `mnmt_repro.papers.claims.history` finds the commit that fixed it.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)

from mnmt_repro.errors import InputError
from mnmt_repro.papers.effects.evidence import Setting
from mnmt_repro.repository import ROOT
from mnmt_repro.typed_config import shown

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C, where libyaml is installed
_ONLY = ConfigDict(extra="forbid")  # no entry has fields that its class has not
_Number = StrictInt | StrictFloat

Side = Literal[">=", "<=", "within"]
"""On which side of its limit a claim says that its effect lies; `within` has a pair as limit."""

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
UNDECIDED, OUT_OF_REACH = "undecided", "out of reach"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, UNDECIDED, OUT_OF_REACH)
"""What a claim may come to; see `judging.verdict_of`."""


class Options(dict[str, Any]):
    """Arguments of an effect. An argument that the claim omits raises `InputError`."""

    def __init__(self, options: Mapping[str, Any], where: str) -> None:
        super().__init__(options)
        self.where = where

    def __missing__(self, key: str) -> Any:
        raise InputError(f"{self.where}.options lacks {key!r}")


def _limit(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _usable(value: Any) -> Any:
    ends = value if isinstance(value, tuple) else (value,)
    if not all(-1e300 < end < 1e300 for end in ends):
        raise ValueError("must be finite")
    if len(ends) == 2 and not ends[0] < ends[1]:
        raise ValueError("the first end must be below the second")
    return value


FOLDER = Path("data", "claims")
"""Where the claims files lie in a checkout."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One entry of a claims file.

    Attributes
    ----------
    effect, measure, options
        A function of `judging.EFFECTS`, which of its measures is the effect, and its arguments.
    limit, side, unit, reason
        What decides, and why this limit.
    headline
        The setting whose verdict is the claim's.
    beside
        The setting of the other kind of text, which is judged likewise.
    robustness
        By way (`half`, `text-matched`, `equal-first`), the settings that show how robust it is.
    sensitivity
        Settings whose effects are shown and not judged.
    note
        What the page found about the reason, in two or three sentences.
    says_little
        Whether a verdict says less than its sign. The first sentence of the note says why.
    out_of_reach
        What the headline needs that cannot be had here.
    """

    id: str
    paper: str
    title: str
    where: str
    statement: str
    page: str
    effect: str
    measure: str
    limit: Annotated[
        _Number | tuple[_Number, _Number], BeforeValidator(_limit), AfterValidator(_usable)
    ]
    side: Side
    unit: str
    reason: str
    headline: Setting
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: Setting | None = None
    robustness: Mapping[Literal["half", "text-matched", "equal-first"], Setting] = field(
        default_factory=dict
    )
    sensitivity: tuple[Setting, ...] = ()
    note: str = ""
    says_little: bool = False
    out_of_reach: str = ""
    __pydantic_config__ = _ONLY

    @property
    def judged(self) -> tuple[Setting, ...]:
        """The settings that have a verdict."""
        return (self.headline,) if self.beside is None else (self.headline, self.beside)

    @property
    def settings(self) -> dict[str, Setting]:
        """All settings by their role: headline, beside, the ways, sensitivity 1, ..."""
        roles = {"headline": self.headline}
        roles |= {} if self.beside is None else {"beside": self.beside}
        roles |= {str(way): setting for way, setting in self.robustness.items()}
        return roles | {
            f"sensitivity {i}": each for i, each in enumerate(self.sensitivity, start=1)
        }

    def in_setting(self, setting: Setting) -> Setting:
        """A setting with all options that the claim has there."""
        return replace(setting, options=Options({**self.options, **setting.options}, self.id))

    def fingerprint(self, setting: Setting) -> str:
        """SHA-256 of everything that decides the verdict in a setting; prose is left out."""
        rows = {key: value for key, value in vars(setting).items() if key not in ("name", "kind")}
        decides = [self.effect, self.measure, self.limit, self.side, self.options, rows]
        text = json.dumps(decides, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


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


@functools.cache
def claims_by_id() -> dict[str, Claim]:
    """All claims of this project."""
    return {claim.id: claim for claim in load_claims(ROOT / FOLDER)}


@functools.lru_cache(maxsize=4)  # a page asks for them again and again
def parse_claims(text: str, where: str) -> tuple[Claim, ...]:
    """Claims of one YAML text; `where` names it in messages. Raises as `load_claims`."""
    try:
        content = yaml.load(text, Loader=_Loader)
        json.dumps(content, sort_keys=True)  # as fingerprints are made
    except yaml.YAMLError as error:
        raise InputError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: no plain data: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != 2:
        raise InputError(f"{where}: needs schema: 2, paper, settings and a list of claims")
    paper, settings, entries = (content.get(name) for name in ("paper", "settings", "claims"))
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: claims must be a list with at least one entry")
    if not isinstance(paper, str) or not isinstance(settings, dict):
        raise InputError(f"{where}: needs a paper, and settings as a mapping")
    return tuple(_claim(entry, paper, settings, where) for entry in entries)


_CLAIM = TypeAdapter(Claim)


def _claim(entry: Any, paper: str, settings: Mapping[str, Any], where: str) -> Claim:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise InputError(f"{where}: every claim needs an id, such as A2")
    where = f"{where}: claim {name}"
    whole = dict(entry) | {"paper": paper}
    for part in ("headline", "beside"):
        if part in whole:
            whole[part] = _setting(whole[part], settings, f"{where}: {part}")
    if isinstance(ways := whole.get("robustness"), dict):
        whole["robustness"] = {
            way: _setting(ways[way], settings, f"{where}: {way}") for way in ways
        }
    if isinstance(others := whole.get("sensitivity"), list):
        whole["sensitivity"] = [
            _setting(each, settings, f"{where}: sensitivity") for each in others
        ]
    try:
        claim = _CLAIM.validate_python(whole)
    except ValidationError as error:
        first = error.errors()[0]
        place, value = ".".join(map(str, first["loc"])), shown(first["input"])
        raise InputError(f"{where}: {place}: {first['msg']}, got {value}") from error
    if (claim.side == "within") != isinstance(claim.limit, tuple):
        raise InputError(f"{where}: limit: a pair of numbers goes with side: within, and only it")
    seen: set[str] = set()
    for role, setting in claim.settings.items():
        if setting.name in seen:
            raise InputError(f"{where}: {role}: the setting {setting.name!r} is named twice")
        seen.add(setting.name)
    return claim


def _setting(entry: Any, settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A setting by its name, or by the name of one and what differs from it.

    ``{like: software25, cohorts: [...]}`` keeps the name; with ``name`` it has another.
    """
    changes = dict(entry) if isinstance(entry, dict) else {"like": entry}
    base = changes.pop("like", None)
    known = {name: each for name, each in settings.items() if isinstance(each, dict)}
    if not isinstance(base, str) or base not in known:
        raise InputError(f"{where}: no setting {base!r}; there are {', '.join(map(str, known))}")
    return {"name": base, **known[base], **changes}


EXHIBITS_FILE = Path("data", "papers", "exhibits.yml")
ALL = (
    *(f"A Figure {number}" for number in range(1, 21)),
    "A Table of Appendix A",
    *(f"B Figure {number}" for number in range(1, 7)),
    *(f"B Table {number}" for number in range(1, 13)),
)
"""What the papers show, in their order."""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or table: what the paper shows, and our answer or why it has none or no claim.

    `claims` are those that judge it; the first one gives the verdict. `page` is the page that
    re-makes it, and `chart` the name of its chart that is shown. `answer` may contain the
    effect of a claim, as in ``"The law misses held-out sizes by {A14}"``, also in another setting:
    ``{A14 on 'conlang, related'}``, and another measure of its headline: ``{B8 five_added}``.
    """

    id: str
    shows: str
    claims: tuple[str, ...] = ()
    page: str = ""
    answer: str = ""
    reason: str = ""
    chart: str = ""


def load_exhibits(root: Path, claims: Iterable[Claim]) -> tuple[Exhibit, ...]:
    """Read the list of exhibits and check that it is complete.

    Raises
    ------
    InputError
        When an exhibit is missing, unknown or listed twice, names a claim or a page that is not
        there, or has neither a page with an answer nor a reason, or no claim and no reason.
    """
    path = root / EXHIBITS_FILE
    known = {claim.id for claim in claims}
    exhibits = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["exhibits"]:
        try:
            exhibit = Exhibit(**{**entry, "claims": tuple(entry.get("claims", ()))})
        except TypeError as error:
            raise InputError(f"{path}: {entry.get('id')}: {error}") from error
        where = f"{path}: {exhibit.id}"
        if unknown := set(exhibit.claims) - known:
            raise InputError(f"{where}: there is no claim {sorted(unknown)[0]}")
        if not exhibit.reason and not (exhibit.page and exhibit.chart and exhibit.answer):
            raise InputError(f"{where}: give a page with a chart and an answer, or a reason")
        if not (exhibit.claims or exhibit.reason):
            raise InputError(f"{where}: give a claim that judges it, or the reason for none")
        pages = [root / "book" / f"{exhibit.page}{suffix}" for suffix in (".ipynb", ".md")]
        if exhibit.page and not any(page.is_file() for page in pages):
            raise InputError(f"{where}: there is no page book/{exhibit.page}")
        exhibits.append(exhibit)
    listed = [exhibit.id for exhibit in exhibits]
    for name in (*ALL, *listed):
        if listed.count(name) != 1 or name not in ALL:
            raise InputError(f"{path}: {name} is listed {listed.count(name)} times; once is right")
    return tuple(exhibits)
