"""The schema of claims, what is stored of verdicts, and whether rules came before their rows."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from synthetic import SIZES, rows

from mnmt_repro.claims import (
    differences,
    load_claims,
    read_stored,
    to_detail,
    to_json,
    to_text,
    verify,
    write_stored,
)
from mnmt_repro.claims.evaluate import Verdict, evaluate
from mnmt_repro.claims.evidence import Evidence
from mnmt_repro.claims.history import History
from mnmt_repro.claims.judging import ESTIMANDS
from mnmt_repro.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
PAPER_A = ROOT / "data" / "claims" / "paper_a.yml"

RULE: list[dict[str, Any]] = [
    {
        "verdict": "reproduced",
        "when": [{"measure": "log_ratio", "of": "low", "op": ">", "value": 0}],
    },
    {"verdict": "not reproduced"},
]


def entry(name: str = "Z1", **changes: Any) -> dict[str, Any]:
    """A small claim: beta rises as p falls."""
    return {
        "id": name,
        "title": "beta rises",
        "where": "Figure 4",
        "statement": "beta is larger at smaller weights",
        "published": [{"quantity": "order", "value": "decreasing"}],
        "estimand": {
            "function": "factor_rises",
            "headline": "log_ratio",
            "options": {"needs": {"sizes": 8, "weights": 8, "span": 25}},
            "description": "log of beta(0.05) / beta(1)",
        },
        "scopes": [{"name": "En→{De}", "cohorts": ["webtech-en-dezh"]}],
        "rule": copy.deepcopy(RULE),
        **changes,
    }


def write_claims(folder: Path, *entries: dict[str, Any], name: str = "test.yml") -> Path:
    path = folder / "data" / "claims" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump({"schema": 1, "paper": "Z", "claims": list(entries)}, allow_unicode=True)
    path.write_text(text, encoding="utf-8")
    return path


def evidence(commit: str = "c0ffee") -> Evidence:
    return Evidence(frame=rows("webtech-en-dezh", ("eng-deu",), commit=commit))


# ------------------------------------------------------------------ schema


def test_all_of_paper_a_is_in_the_claims_files() -> None:
    claims = load_claims(PAPER_A.parent)
    assert [claim.id for claim in claims if claim.paper == "A"] == [f"A{k}" for k in range(1, 22)]
    for claim in claims:
        assert claim.function in ESTIMANDS
        assert claim.published and claim.description
        assert "reproduced" in {step.verdict for step in claim.rule}
    # A claim that something is unchanged, or its power, needs the effect it could have seen; so
    # does a published cell without a mark.
    for claim in claims:
        asked = any(c.measure == "power" for step in claim.cells for c in step.when)
        assert asked == ("effect" in {**claim.options, **claim.options.get("table", {})})
        asks_power = any(c.measure == "power" for step in claim.rule for c in step.when)
        assert asks_power == (claim.alternative is not None), claim.id
        if claim.alternative is not None:
            assert claim.alternative.measure == claim.headline


def test_each_claim_leads_to_a_page_of_the_book_that_shows_its_verdict() -> None:
    for claim in load_claims(PAPER_A.parent):
        page = ROOT / "book" / f"{claim.page}.ipynb"
        assert page.is_file(), claim.id
        if claim.page != "paper-b/ablations":  # which takes its claims from a list
            text = page.read_text(encoding="utf-8")
            assert f'"{claim.id}\\"' in text, claim.id


def test_the_ledger_holds_published_numbers_and_no_measured_ones() -> None:
    for item in yaml.safe_load(PAPER_A.read_text(encoding="utf-8"))["claims"]:
        assert not {"measured", "verdict", "interval", "result"} & set(item)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda e: e.pop("where"), "claim Z1: where: Field required"),
        (lambda e: e.update(wher="x"), "claim Z1: wher: Unexpected"),
        (lambda e: e.update(title=3), "claim Z1: title: .*valid string, got 3"),
        (lambda e: e["estimand"].pop("headline"), "claim Z1: headline: Field required"),
        (
            lambda e: e["estimand"].update(options=[]),
            "Z1: options: .*dictionary",
        ),
        (lambda e: e["scopes"][0].update(n="n_all"), r"claim Z1: scopes.0.n: .*'n_non_emb"),
        (
            lambda e: e["scopes"][0].update(cohorts="x"),
            r"claim Z1: scopes.0.cohorts: .*tuple, got 'x'",
        ),
        (lambda e: e.update(scopes=[]), "claim Z1: scopes: .*at least 1"),
        (lambda e: e["rule"][0].update(verdict="yes"), r"claim Z1: rule.0.verdict: .*got 'yes'"),
        (
            lambda e: e["rule"][0]["when"][0].update(op="="),
            r"rule.0.when.0.op: .*got '='",
        ),
        (lambda e: e["rule"][0]["when"][0].update(value="0"), r"when.0.value.int: .*got '0'"),
        (lambda e: e["rule"][0]["when"][0].update(of="mid"), r"when.0.of: .*'value', 'low'"),
        (lambda e: e["rule"].pop(), "claim Z1: rule: .*the last step, and only it"),
        (lambda e: e["rule"].insert(0, {"verdict": "inconclusive"}), "claim Z1: rule: .*the last"),
        (lambda e: e["published"][0].pop("value"), r"claim Z1: published.0: .*needs a quantity"),
        (
            lambda e: e["published"][0].update(cells={"table": 1}),
            r"claim Z1: published.0: .*needs a quantity",
        ),
        (lambda e: e.update(cells=RULE[:1]), "claim Z1: cells: .*the last step, and only it"),
        (
            lambda e: e.update(alternative={"measure": "x", "effect": "big", "meaning": "m"}),
            "claim Z1: alternative.effect.int: .*got 'big'",
        ),
        (lambda e: e.update(page=["x"]), "claim Z1: page: .*string"),
        (lambda e: e.update(explained={"failed": "x"}), "Z1: explained.failed"),
        (
            lambda e: e.update(page="a/b", explained={"inconclusive": 3}),
            "claim Z1: explained.inconclusive: .*string, got 3",
        ),
        (lambda e: e.update(explained={"inconclusive": "x"}), "Z1: explained needs a page"),
    ],
)
def test_a_broken_entry_names_file_claim_and_field(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], message: str
) -> None:
    broken = entry()
    damage(broken)
    path = write_claims(tmp_path, entry("Z0"), broken)
    with pytest.raises(InputError, match=message) as caught:
        load_claims(path.parent)
    assert "test.yml" in str(caught.value)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = write_claims(tmp_path, entry())
    path.write_text("schema: 1\nclaims: [", encoding="utf-8")
    with pytest.raises(InputError, match=r"test\.yml: not YAML"):
        load_claims(path.parent)
    path.write_text("schema: 2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"test\.yml: needs schema: 1"):
        load_claims(path.parent)
    write_claims(tmp_path, entry(), entry())
    with pytest.raises(InputError, match="claim Z1 is given twice"):
        load_claims(path.parent)
    with pytest.raises(InputError, match="no claims"):
        load_claims(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e["estimand"].update(function="guess"), "claim Z1: estimand.function guess"),
        (lambda e: e["rule"][0]["when"][0].update(measure="luck"), "measures no 'luck'"),
        (lambda e: e["estimand"].update(options={}), "claim Z1: estimand.options lacks 'needs'"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_an_input_error(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    broken = entry()
    change(broken)
    write_claims(tmp_path, broken)
    with pytest.raises(InputError, match=message):
        verify(tmp_path, evidence=evidence())


# ------------------------------------------------------------------ stored verdicts


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    opposite = entry("Z2")
    opposite["rule"][0]["when"][0].update(of="high", op="<")
    write_claims(tmp_path, entry("Z1"), opposite)
    return tmp_path


def test_stored_verdicts_follow_until_the_rows_change(checkout: Path) -> None:
    verdicts = verify(checkout, evidence=evidence())
    assert [verdict.raw_verdict for verdict in verdicts] == ["reproduced", "not reproduced"]
    assert read_stored(checkout) == []
    assert set(differences(verdicts, [])) == {"Z1", "Z2"}
    write_stored(verdicts, checkout)
    assert differences(verify(checkout, evidence=evidence()), read_stored(checkout)) == {}

    def found(frame: pd.DataFrame) -> dict[str, str]:
        return differences(verify(checkout, evidence=Evidence(frame=frame)), read_stored(checkout))

    frame = evidence().frame
    fewer = found(frame[frame["n_non_embedding"] != SIZES[0]])
    assert "stored 'undecided here', but the rows give 'no rows yet'" in fewer["Z1"]
    # The same verdict with another number no longer follows either.
    steeper = frame.assign(cross_entropy=frame["cross_entropy"] * frame["p"] ** -0.05)
    assert "but the rows give" in found(steeper)["Z2"]
    assert "reproduced" not in found(steeper)["Z2"]


def test_a_tampered_stored_verdict_is_found(checkout: Path) -> None:
    verdicts = verify(checkout, evidence=evidence())
    path = write_stored(verdicts, checkout)
    stored = json.loads(path.read_text())
    stored[1]["verdict"] = stored[1]["scopes"][0]["verdict"] = "reproduced"
    path.write_text(json.dumps(stored))
    assert set(differences(verdicts, read_stored(checkout))) == {"Z2"}
    write_stored(verdicts, checkout)
    for change, told in (
        (lambda scope: scope["units"]["eng-deu"]["measures"]["log_ratio"].update(value=0.5), "0.5"),
        (
            lambda scope: scope["units"]["eng-deu"]["measures"]["log_ratio"].update(
                interval=[-9.0, 9.0]
            ),
            "-9.0",
        ),
        (lambda scope: scope["units"]["eng-deu"]["measures"].pop("kendall_tau"), "stored None"),
        (lambda scope: scope["units"]["eng-deu"].update(verdict="inconclusive"), "inconclusive"),
        (lambda scope: scope["units"].pop("eng-deu"), "stored None"),
    ):
        other = json.loads(to_json(verdicts))
        change(other[0]["scopes"][0])
        found = differences(verdicts, other)
        assert set(found) == {"Z1"} and told in found["Z1"]
    # What pages print is stored beside the units that it comes from, and is compared, too.
    for place in ("item", "scope"):
        for change, told in (
            ({"verdict": "inconclusive"}, "inconclusive"),
            ({"measured": 99.0}, "stored {'measured': 99.0"),
            ({"interval": [-9.0, 9.0]}, "-9.0"),
            ({"reason": "made up"}, "made up"),
        ):
            other = json.loads(to_json(verdicts))
            (other[0] if place == "item" else other[0]["scopes"][0]).update(change)
            found = differences(verdicts, other)
            assert set(found) == {"Z1"} and told in found["Z1"], (place, change)
    for field, where in (("title", 0), ("rule", 0), ("decided_by", 1), ("runs", 1)):
        other = json.loads(to_json(verdicts))
        (other[0]["scopes"][0] if where else other[0])[field] = "another"
        assert set(differences(verdicts, other)) == {"Z1"}, field
    dated = json.loads(to_json(verdicts))
    dated[0]["scopes"][0]["post_hoc"] = True
    assert differences(verdicts, dated) == {}  # a folder without a history cannot tell
    first = verdicts[0].deciding
    early = replace(first, ancestry=replace(first.ancestry, post_hoc=False))
    told = differences([replace(verdicts[0], scopes=(early,)), verdicts[1]], dated)
    assert "post_hoc" in told["Z1"]
    path.write_text(json.dumps([*stored, {"id": "Z9", "scopes": []}]))
    assert set(differences(verdicts, read_stored(checkout))) == {"Z2", "Z9"}
    path.write_text("[{")
    with pytest.raises(InputError, match=r"verdicts\.json: no list of verdicts"):
        read_stored(checkout)


def test_json_and_text_tell_verdict_number_interval_and_rule(checkout: Path) -> None:
    verdicts = verify(checkout, evidence=evidence(), only="Z1")
    (shown,) = json.loads(to_json(verdicts))
    assert shown["id"] == "Z1" and shown["raw_verdict"] == "reproduced"
    low, high = shown["interval"]
    assert low < shown["measured"] < high
    assert shown["rule"] == "reproduced: low end of log_ratio > 0; not reproduced: otherwise"
    assert shown["post_hoc"] is None and "not a git checkout" in shown["ancestry"]
    assert shown["scopes"][0]["units"]["eng-deu"]["measures"]["kendall_tau"]["interval"] is None
    assert shown["scopes"][0]["runs"] == 64
    text = to_text(verdicts)
    assert "Z1" in text and "1 undecided here" in text and "ancestry not checked" in text
    assert "(by the rule alone reproduced: not simulated)" in text
    with pytest.raises(InputError, match="Z7: no such claim"):
        verify(checkout, only="Z7")


def test_one_claim_is_told_with_its_rule_its_measures_and_why(checkout: Path) -> None:
    explained = {"reproduced": "Weights share what they share."}
    write_claims(checkout, entry(page="paper-z/page", explained=explained))
    (verdict,) = verify(checkout, evidence=evidence())
    told = to_detail(verdict)
    assert told.startswith("Z1 undecided here: beta rises\nthe paper (Figure 4): beta is larger")
    assert "the rule says reproduced, but it is not known how often chance alone" in told
    assert "rule 1. reproduced: low end of log_ratio > 0\nrule 2. not reproduced" in told
    found = verdict.deciding.units["eng-deu"]["log_ratio"]
    assert f"log_ratio {found.value:.4g} [{found.low:.4g}, {found.high:.4g}]" in told
    assert "why, we think: Weights share what they share. (book/paper-z/page.ipynb)" in told
    (failed,) = verify(checkout, evidence=Evidence(frame=evidence().frame.iloc[:3]))
    assert "why, we think" not in to_detail(failed)  # which explains another verdict


def test_verify_reads_the_store_of_the_checkout(checkout: Path) -> None:
    (checkout / "data" / "results").mkdir()
    assert {verdict.verdict for verdict in verify(checkout)} == {"no rows yet"}


def test_verify_reads_the_store_that_is_named(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torn run shows which store was read: the argument's, else that of the environment."""
    named, other = tmp_path / "named" / "corpus", tmp_path / "other" / "corpus"
    for folder in (named, other):
        folder.mkdir(parents=True)
        (folder / "torn.json").write_text("{")
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(named.parent))
    with pytest.raises(InputError, match="named/corpus/torn.json"):
        verify(checkout)
    with pytest.raises(InputError, match="other/corpus/torn.json"):
        verify(checkout, store=other.parent)


# ------------------------------------------------------------------ rules before rows


class Repository:
    """A git repository with claims files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, *entries: dict[str, Any]) -> str:
        if entries:
            write_claims(self.folder, *entries)
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", "step")
        return self.git("rev-parse", "HEAD")

    def verdict(self, commit: str, claim: str = "Z1") -> Verdict:
        (found,) = verify(self.folder, evidence=evidence(commit), only=claim)
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    return Repository(tmp_path)


def stricter(name: str = "Z1") -> dict[str, Any]:
    changed = entry(name)
    changed["rule"][0]["when"][0]["value"] = 0.1
    return changed


def test_a_rule_that_came_first_is_not_post_hoc(repository: Repository) -> None:
    first = repository.commit(entry())
    later = repository.commit()
    assert repository.verdict(first).post_hoc is False  # its own commit counts
    assert repository.verdict(later).post_hoc is False
    assert repository.verdict(f"{later}+changes").post_hoc is False
    assert repository.verdict(later[:12]).post_hoc is False


def test_a_rule_that_came_after_its_rows_is_post_hoc(repository: Repository) -> None:
    before = repository.commit()
    first = repository.commit(entry())
    verdict = repository.verdict(before)
    assert verdict.post_hoc is True and verdict.raw_verdict == "reproduced"
    assert f"rule of {first[:10]} is no ancestor of rows of {before[:10]}" in to_json([verdict])
    changed = repository.commit(stricter())
    assert repository.verdict(first).post_hoc is True
    assert repository.verdict(changed).post_hoc is False
    # Back to the old rule: it counts from its return, since in between another one stood.
    back = repository.commit(entry())
    assert repository.verdict(changed).post_hoc is True
    assert repository.verdict(back).post_hoc is False


def test_what_does_not_touch_the_rule_does_not_make_it_post_hoc(repository: Repository) -> None:
    first = repository.commit(entry())
    worded = entry(title="beta grows", gap_of_scale="an older field", statement="other words")
    worded["estimand"]["description"] = "told better"
    worded["scopes"][0]["name"] = "another name"
    beside = {"name": "beside", "cohorts": ["webtech-en-defr"]}
    worded["scopes"].append(beside)
    repository.commit(entry("Z0"), worded, stricter("Z2"))
    assert repository.verdict(first).post_hoc is False
    assert repository.verdict(first, "Z2").post_hoc is True
    claim = next(c for c in load_claims(repository.folder / "data/claims") if c.id == "Z1")
    history = History(repository.folder)
    assert history.check("Z1", claim.fingerprint(claim.scopes[1]), [first]).post_hoc is True
    for change in (
        {"scopes": [{"name": "En→{De}", "cohorts": ["webtech-en-dezh"], "n": "n_total"}]},
        {"alternative": {"measure": "log_ratio", "effect": 1, "meaning": "m"}},
    ):
        repository.commit(entry(**change))
        assert repository.verdict(first).post_hoc is True


def test_each_ledger_has_a_history_of_its_own(repository: Repository) -> None:
    first = repository.commit(entry())
    write_claims(repository.folder, entry("Y1"), name="other.yml")
    second = repository.commit()
    assert [verdict.post_hoc for verdict in verify_all(repository, first)] == [True, False]
    assert [verdict.post_hoc for verdict in verify_all(repository, second)] == [False, False]
    # A change of one ledger leaves the rules of the other where they were.
    third = repository.commit(stricter())
    assert [verdict.post_hoc for verdict in verify_all(repository, second)] == [False, True]
    assert [verdict.post_hoc for verdict in verify_all(repository, third)] == [False, False]


def verify_all(repository: Repository, commit: str) -> list[Verdict]:
    """Y1 of other.yml, then Z1 of test.yml."""
    return verify(repository.folder, evidence=evidence(commit))


def test_the_rule_of_cells_counts_too(repository: Repository) -> None:
    first = repository.commit(entry(cells=copy.deepcopy(RULE)))

    def post_hoc() -> bool | None:
        (claim,) = load_claims(repository.folder / "data" / "claims")
        fingerprint = claim.fingerprint(claim.scopes[0])
        return History(repository.folder).check("Z1", fingerprint, [first]).post_hoc

    assert post_hoc() is False
    cells = copy.deepcopy(RULE)
    cells[0]["when"][0]["value"] = 0.1
    repository.commit(entry(cells=cells))
    assert post_hoc() is True


def test_a_revision_makes_a_rule_post_hoc(repository: Repository) -> None:
    """The code of a measure is in no claims file, so the note that it was changed counts."""
    first = repository.commit(entry())
    assert repository.verdict(first).post_hoc is False
    repository.commit(entry(revised=["its noise is drawn for each run"]))
    assert repository.verdict(first).post_hoc is True


def test_a_claim_without_cells_keeps_its_fingerprint() -> None:
    """Worked out from the entry alone, so that rules committed long ago stay what they were."""
    claim = load_claims(PAPER_A.parent)[0]
    judged = {
        "function": "parameter_counts_agree",
        "options": {},
        "scope": {
            "cohorts": [],
            "test_set": "indomain",
            "other_test_set": "",
            "domain": "all",
            "n": "n_non_embedding",
            "tier": "mini",
        },
        "alternative": None,
        "rule": [
            ["reproduced", [{"measure": "agreeing", "op": ">=", "value": 16, "of": "value"}]],
            [
                "direction only",
                [
                    {
                        "measure": "max_relative_difference",
                        "op": "<=",
                        "value": 0.001,
                        "of": "value",
                    }
                ],
            ],
            ["not reproduced", []],
        ],
    }
    text = json.dumps(judged, sort_keys=True, ensure_ascii=False)
    assert claim.fingerprint(claim.scopes[0]) == hashlib.sha256(text.encode()).hexdigest()


def test_an_uncommitted_rule_is_post_hoc(repository: Repository) -> None:
    first = repository.commit(entry())
    write_claims(repository.folder, stricter())
    verdict = repository.verdict(first)
    assert verdict.post_hoc is True
    assert verdict.deciding.ancestry.note == "post hoc: the rule is not committed"


def test_rows_of_a_branch_that_forked_before_the_rule_are_post_hoc(repository: Repository) -> None:
    base = repository.commit()
    main = repository.git("rev-parse", "--abbrev-ref", "HEAD")
    repository.git("checkout", "--quiet", "-b", "runs")
    runs = repository.commit()
    repository.git("checkout", "--quiet", main)
    repository.commit(entry())
    repository.git("merge", "--quiet", "--no-edit", "runs")
    assert repository.verdict(base).post_hoc is True
    assert repository.verdict(runs).post_hoc is True


def test_a_repository_without_commits_is_not_judged(repository: Repository) -> None:
    write_claims(repository.folder, entry())
    verdict = repository.verdict("c0ffee")
    assert verdict.post_hoc is None
    assert verdict.deciding.ancestry.note == "ancestry not checked: no commit yet"


def test_unknown_commits_and_shallow_clones_are_not_judged(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository.commit(entry())
    head = repository.commit()
    for commit in ("unknown", "0" * 40):
        verdict = repository.verdict(commit)
        assert verdict.post_hoc is None
        assert "no commit" in verdict.deciding.ancestry.note
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    repository.git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), str(clone))
    (claim,) = load_claims(clone / "data" / "claims")
    ancestry = evaluate(claim, evidence(head), History(clone)).deciding.ancestry
    assert ancestry.post_hoc is None
    assert "ancestry not checked: a shallow clone holds no history" in ancestry.note


def test_without_git_it_says_so(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    verdict = verify(checkout, evidence=evidence(), only="Z1")[0]
    assert verdict.post_hoc is None
    assert "git is not installed" in verdict.deciding.ancestry.note
