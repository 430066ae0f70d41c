"""The cache never gives what other code, rules, rows or options decided."""

from __future__ import annotations

import pickle
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from stored_claims import made_claim, setting
from test_rooms import PACKAGE, imported

from mnmt_repro import disk_cache as kept_module
from mnmt_repro.disk_cache import code_digest, files_digest, kept_values
from mnmt_repro.papers.claims import report, verify
from mnmt_repro.papers.claims.judging import Outcome
from mnmt_repro.papers.effects.evidence import Evidence
from mnmt_repro.papers.pages.executed import LIBRARIES


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path))
    return tmp_path / "kept"


def computed(key: str, **options: bool | int) -> bool:
    """Whether a value had to be computed."""
    calls: list[str] = []
    with kept_values("test", str, **options) as recall:  # type: ignore[arg-type]
        assert recall(key, lambda: calls.append(key) or key) == key
    return bool(calls)


def test_a_value_is_computed_once_for_each_key() -> None:
    assert [computed(key) for key in ("a", "b", "a", "b")] == [True, True, False, False]
    assert computed("a", fresh=True) and not computed("a") and not computed("b")


def test_the_values_used_last_stay() -> None:
    assert computed("a", most=2) and computed("b", most=2) and computed("c", most=2)
    assert not computed("c") and not computed("b") and computed("a")


def test_what_was_computed_before_an_interruption_stays() -> None:
    with pytest.raises(KeyboardInterrupt), kept_values("test", str) as recall:
        recall("a", lambda: "a")
        raise KeyboardInterrupt
    assert not computed("a")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_torn_file_counts_as_empty(cache: Path, share: float) -> None:
    assert computed("a")
    (path,) = cache.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert computed("a") and not computed("a")


class Attack:
    """Runs code where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("the cache ran code",)


def test_no_file_of_the_cache_is_run(cache: Path) -> None:
    assert computed("a")
    (path,) = cache.iterdir()
    path.write_bytes(pickle.dumps(Attack()))
    assert computed("a")


def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.write_text("no folder", encoding="utf-8")
    assert computed("a") and computed("a")


def test_code_and_names_are_in_the_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    for name in ("laws/solve.py", "figures/chart.py"):
        (package / name).parent.mkdir(parents=True)
        (package / name).write_text("x = 1", encoding="utf-8")
    monkeypatch.setattr(kept_module, "PACKAGE", package)
    whole, part = code_digest(), code_digest(without=["figures"])
    (package / "figures" / "chart.py").write_text("x = 2", encoding="utf-8")
    assert code_digest() != whole and code_digest(without=["figures"]) == part
    (package / "laws" / "solve.py").write_text("x = 2", encoding="utf-8")
    assert code_digest(without=["figures"]) != part
    before = files_digest(package, package.rglob("*.py"))
    (package / "laws" / "solve.py").rename(package / "laws" / "minimise.py")
    assert files_digest(package, package.rglob("*.py")) != before


def test_only_libraries_that_decide_numbers_or_pages_are_in_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = code_digest()
    for name in ("another", "scipy"):
        (tmp_path / f"{name}-0.0.1.dist-info").mkdir()
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\n"
        (tmp_path / f"{name}-0.0.1.dist-info/METADATA").write_text(about, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        assert (code_digest() == before) == (name == "another")
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {re.split("[<>=]", each)[0] for each in project["project"]["dependencies"]}
    assert needed == set(LIBRARIES)


# Verdicts

ROWS = pd.DataFrame(
    {
        "tier": ["mini", "steady"], "cohort": "c", "test_set": "indomain", "domain": "all",
        "p": 0.5, "n_non_embedding": 9, "cross_entropy": [2.0, 3.0], "run_id": ["a", "b"],
        "seed": 1, "commit": "c0ffee", "variant": "", "mixture": "a", "pair": "a",
        "updates_share": 1.0,
    }
)  # fmt: skip


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """One claim, with one setting."""
    monkeypatch.setattr(report, "load_claims", lambda folder: [made_claim()])


def outcomes_judged(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    rows: pd.DataFrame = ROWS,
    fresh: bool = False,
) -> int:
    """How many outcomes are judged."""
    calls: list[object] = []
    with monkeypatch.context() as patch:
        nothing = Outcome(verdict="undecided")
        patch.setattr(report, "judge", lambda *given: calls.append(given) or nothing)
        verify(folder, evidence=Evidence(frame=rows), fresh=fresh)
    return len(calls)


def test_an_outcome_is_recalled_while_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert outcomes_judged(monkeypatch, tmp_path) == 1
    assert outcomes_judged(monkeypatch, tmp_path) == 0
    assert outcomes_judged(monkeypatch, tmp_path, fresh=True) == 1
    other_tier = ROWS.assign(cross_entropy=[2.0, 4.0])
    assert outcomes_judged(monkeypatch, tmp_path, other_tier) == 0


def test_no_outcome_depends_on_the_rooms_whose_code_is_not_hashed() -> None:
    later = set(report.LATER_ROOMS)
    parts = {path: set(path.relative_to(PACKAGE).parts) for path in PACKAGE.rglob("*.py")}
    assert later <= set.union(*parts.values())
    for path, names in parts.items():
        if not names & later:
            assert not imported(path) & {room.removesuffix(".py") for room in later}, path


@pytest.mark.parametrize("what", ["rows", "limit", "setting", "code", "published"])
def test_an_outcome_is_judged_again_when_its_inputs_change(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert outcomes_judged(monkeypatch, tmp_path) == 1
    rows = ROWS
    if what == "rows":
        rows = ROWS.assign(cross_entropy=[2.1, 3.0])
    elif what in ("limit", "setting"):
        other = made_claim(**{"limit": {"limit": 2}, "setting": {"headline": setting("x")}}[what])
        monkeypatch.setattr(report, "load_claims", lambda folder: [other])
    elif what == "code":
        monkeypatch.setattr(report, "code_digest", lambda **options: "other code")
    else:
        (tmp_path / "papers").mkdir()
        (tmp_path / "papers" / "table.csv").write_text("1", encoding="utf-8")
        monkeypatch.setattr(report, "PAPERS", tmp_path / "papers")
    assert outcomes_judged(monkeypatch, tmp_path, rows) == 1
