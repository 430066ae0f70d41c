"""Sweeps of upgraded runs: parents first, killed and resumed, and on a little real text."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import PAIRS, VARIED, adamw, fairseq
from test_sweep import InThisProcess, stored, sweep_into

from mnmt_repro import results
from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.conlang import Conlang
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.registry import split_pair
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.errors import InputError
from mnmt_repro.results import schema
from mnmt_repro.runs import data as data_module
from mnmt_repro.runs import execute as execute_module
from mnmt_repro.runs.data import load_run_data, run_vocabulary
from mnmt_repro.runs.order import is_trained, plan, with_parents
from mnmt_repro.runs.spec import RunSpec, Upgrade
from mnmt_repro.runs.start import untrained_pieces, upgrade_of
from mnmt_repro.runs.sweep import keep_repeat
from mnmt_repro.training import loop
from mnmt_repro.training.checkpoint import load_checkpoint
from mnmt_repro.training.config import LAST
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig

CONFIG = UpgradeConfig(
    wider=2.0, deeper=DepthConfig(encoder=1), gamma_old=Ramp(start=0.1, end=0.5, steps=6)
)


def generated(**changes) -> RunSpec:
    fields = {
        "tier": "smoke",
        "corpus": "conlang-test",
        "mixture": Mixture.of({PAIRS[0]: 1.0}),
        "model": fairseq(attention_dropout=0.1),
        "training": adamw(steps=5, curve_points=2, learning_rate=0.005),
        "tags": "source",
        "seed": 1,
        "conlang": VARIED,
    }
    return RunSpec(**{**fields, **changes})


def child_of(parent: RunSpec, config: UpgradeConfig = CONFIG, **changes) -> RunSpec:
    model = replace(
        parent.model,
        d_ff=round(parent.model.d_ff * config.wider),
        encoder_layers=parent.model.encoder_layers + config.deeper.encoder,
    )
    fields = {
        "mixture": Mixture.two(*PAIRS, 0.5),
        "model": model,
        "training": adamw(steps=8, curve_points=2, learning_rate=0.005),
        "upgrade": Upgrade(parent=parent, config=config),
    }
    return generated(**{**fields, **changes})


PARENT = generated()
CHILD = child_of(PARENT)


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Few test sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_module, "CONLANG_TEST_SENTENCES", 50)
        yield


@pytest.fixture(scope="module")
def family(quick, tmp_path_factory) -> Path:
    """`store` and `runs` after a sweep of the child alone."""
    folder = tmp_path_factory.mktemp("family")
    assert sweep_into(folder / "store", folder / "runs", [CHILD], InThisProcess()) == []
    return folder


@pytest.fixture
def runs(family: Path, tmp_path: Path) -> Path:
    """A folder with the parent's weights only."""
    shutil.copytree(family / "runs" / PARENT.run_id, tmp_path / "runs" / PARENT.run_id)
    return tmp_path / "runs"


def child_alone(store: Path) -> dict[str, Any]:
    [found] = [c for c in results.load_runs(store) if c["run"]["run_id"] == CHILD.run_id]
    return found


def test_a_parent_is_trained_first_and_its_child_goes_on_from_it(family: Path) -> None:
    store, runs = family / "store", family / "runs"
    assert stored(store) == {PARENT.run_id, CHILD.run_id}
    done = {content["run"]["run_id"]: content for content in results.load_runs(store)}
    run = done[CHILD.run_id]["run"]
    assert run["code_version"].endswith("-upgrading1")
    assert run["config"]["upgrade"]["parent"] == PARENT.config
    assert run["size"] == "d16x2ff128"
    assert {row["pair"] for row in done[CHILD.run_id]["rows"]} == set(PAIRS)
    assert done[PARENT.run_id]["run"]["code_version"] == PARENT.code_version
    # The schedule goes on behind the parent's 5 steps: the last rate is that of step 13.
    rates = [point["learning_rate"] for point in done[CHILD.run_id]["curve"]]
    assert rates[-1] == pytest.approx(0.005 * (10 / 13) ** 0.5)
    # The model began as the parent's: one that began at random is far away from it after 8 steps.
    old = load_checkpoint(runs / PARENT.run_id / LAST).weights["decoder.0.attention.q.weight"]
    new = load_checkpoint(runs / CHILD.run_id / LAST).weights["decoder.0.attention.q.weight"]
    apart = float((new - old).norm() / old.norm())
    assert 0 < apart < 0.2


def test_a_parent_that_is_trained_again_is_held_against_the_stored_one(
    family: Path, tmp_path: Path, capsys
) -> None:
    store = tmp_path / "store"
    path = store / PARENT.corpus / f"{PARENT.run_id}.json"
    path.parent.mkdir(parents=True)
    shutil.copy(family / "store" / PARENT.corpus / path.name, path)
    keep = partial(keep_repeat, root=store, required=True)
    runs = tmp_path / "runs"
    assert sweep_into(store, runs, [PARENT, CHILD], InThisProcess(), repeated=keep) == []
    assert f"trained again: {PARENT.run_id}: every loss" in capsys.readouterr().err
    assert len(results.load_repeats(root=store)) == 1

    # One that is not what is stored is no parent: nothing goes on from it.
    content = json.loads(path.read_text(encoding="utf-8"))
    content["run"]["vocabulary_hash"] = "another"
    path.write_text(json.dumps(content), encoding="utf-8")
    grandchild = child_of(PARENT, seed=2)
    failures = sweep_into(
        store, tmp_path / "other", [PARENT, grandchild], InThisProcess(), repeated=keep
    )
    assert "it is not the run that is stored" in failures[0]
    assert "vocabulary_hash differ(s)" in failures[0]
    assert f"the run to upgrade ({PARENT.run_id}) failed" in failures[1]
    assert stored(store) == {PARENT.run_id, CHILD.run_id}
    assert len(results.load_repeats(root=store)) == 1  # another run is no repeat


def test_a_failed_parent_fails_its_children_in_one_line_each(tmp_path: Path, capsys) -> None:
    store, runs = tmp_path / "store", tmp_path / "runs"
    broken = generated(mixture=Mixture.of({"src-zzz": 1.0}))
    child = child_of(broken)
    grandchild = child_of(child, UpgradeConfig(), model=child.model, seed=3)
    with ThreadPoolExecutor(2) as executor:
        failures = sweep_into(store, runs, [grandchild, child, PARENT], executor)
    assert len(failures) == 3 and all("\n" not in failure for failure in failures)
    assert "no pair 'src-zzz'" in failures[0]
    for failure, lost in ((failures[1], broken), (failures[2], child)):
        assert f"the run to upgrade ({lost.run_id}) failed" in failure
    assert capsys.readouterr().err.splitlines() == failures
    assert stored(store) == {PARENT.run_id}  # the others are not held up


class Killed(BaseException):
    """Stands for a signal that ends the process."""


def test_a_killed_upgraded_run_resumes_to_the_bit(family: Path, runs: Path, monkeypatch) -> None:
    folder = runs / CHILD.run_id
    monkeypatch.setattr(
        execute_module, "train", partial(execute_module.train, checkpoint_seconds=0.0)
    )
    step, calls = loop._Run.step, []

    def killed_at_the_fourth(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise Killed
        return step(*arguments)

    monkeypatch.setattr(loop._Run, "step", killed_at_the_fourth)
    with pytest.raises(Killed):
        execute_module.execute(CHILD, folder, progress_bar=False)
    assert load_checkpoint(folder / LAST).progress.step == 3
    assert not is_trained(CHILD, folder.parent) and is_trained(PARENT, folder.parent)

    resumed = execute_module.execute(CHILD, folder, progress_bar=False)
    assert len(calls) == 4 + 5  # steps 4 to 8, none again
    whole = load_checkpoint(family / "runs" / CHILD.run_id / LAST)
    ours = load_checkpoint(folder / LAST)
    for name, tensor in whole.weights.items():
        assert torch.equal(ours.weights[name], tensor), name
    assert resumed["rows"] == child_alone(family / "store")["rows"]
    schema.checked(schema.RUN, {"schema": schema.SCHEMA, **resumed}, "a run")


def test_generated_text_that_a_run_began_with_is_not_read_again() -> None:
    grandchild = child_of(CHILD, UpgradeConfig(), model=CHILD.model)
    seen: set[bytes] = set()
    for spec in (PARENT, CHILD, grandchild):
        source, _ = load_run_data(spec).training.sentences[PAIRS[0]].take(np.arange(20))
        read = {row.tobytes() for row in np.split(source.flat, source.offsets[1:-1])}
        assert len(read) == 20 and not read & seen
        seen |= read


def test_weights_of_another_run_or_of_half_a_run_are_no_parents(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{PARENT.run_id}: the run to upgrade .* is not trained"):
        upgrade_of(CHILD, tmp_path)
    folder = tmp_path / PARENT.run_id
    shorter = replace(PARENT, training=replace(PARENT.training, steps=2))
    data = load_run_data(PARENT)
    for identity, training in (("another", PARENT.training), (PARENT.run_id, shorter.training)):
        loop.train(
            PARENT.model, training, data.training, PARENT.mixture, folder,
            seed=1, identity=identity, progress_bar=False,
        )  # fmt: skip
        assert not is_trained(PARENT, tmp_path)
        (folder / LAST).unlink()
    (folder / LAST).write_bytes(b"\xff" * 64)  # damaged
    assert not is_trained(PARENT, tmp_path)


def test_an_upgrade_that_makes_another_model_than_declared_is_refused(runs: Path) -> None:
    wrong = replace(CHILD, model=replace(CHILD.model, d_ff=3 * PARENT.model.d_ff))
    with pytest.raises(InputError, match="declared is"):
        upgrade_of(wrong, runs)
    other = replace(CHILD, conlang=replace(VARIED, seed=3))
    with pytest.raises(InputError, match="keeps its parent's languages"):
        upgrade_of(other, runs)


def test_what_a_generated_language_brings_is_new(runs: Path) -> None:
    """The parent met src and aaa: bbb's tag and syllables begin as copies of <unk>, and are NEW."""
    conlang = Conlang(VARIED)
    first = 4 + 3  # special ids and tags
    spelled = {name: set(conlang.spellings[name].ravel().tolist()) for name in VARIED.languages}
    assert not spelled["bbb"] & (spelled["src"] | spelled["aaa"])  # nothing is shared here
    added = sorted({4 + 2} | {first + i for i in spelled["bbb"]})
    upgraded = upgrade_of(CHILD, runs)
    group = upgraded.groups["embedding.weight"].flatten()
    assert torch.nonzero(group == 0).flatten().tolist() == added
    table = upgraded.model.embedding.weight
    before = load_checkpoint(runs / PARENT.run_id / LAST).weights["embedding.weight"]
    assert torch.equal(table[added], before[2].expand(len(added), -1))
    kept = [i for i in range(len(table)) if i not in added]
    assert torch.equal(table[kept], before[kept])
    # A language of the same lexicon brings its tag only; one that was met, nothing.
    alike = replace(VARIED, similarity=1.0)
    found = untrained_pieces(alike, PAIRS[:1], len(table))
    assert found is not None and [piece.text for piece in found.overlap.added] == ["<2bbb>"]
    assert len(found.new) == len(table)  # rows that no piece has stay where they are
    assert untrained_pieces(VARIED, PAIRS, len(table)) is None


def test_runs_wait_for_parents_and_for_shorter_runs(tmp_path: Path) -> None:
    longer = replace(CHILD, training=replace(CHILD.training, steps=12))
    longest = replace(CHILD, training=replace(CHILD.training, steps=20))
    tasks = plan([longest, CHILD, longer, CHILD], frozenset({PARENT.run_id}), tmp_path)
    found = {t.spec.run_id: (t.needs, t.after, t.only_weights) for t in tasks}
    parent, ids = frozenset({PARENT.run_id}), [s.run_id for s in (CHILD, longer, longest)]
    assert found == {
        PARENT.run_id: (frozenset(), frozenset(), True),
        ids[0]: (parent, frozenset(), False),
        ids[1]: (parent, frozenset(ids[:1]), False),
        ids[2]: (parent, frozenset(ids[:2]), False),
    }
    assert tasks[0].spec == PARENT
    assert [s.run_id for s in with_parents([CHILD])] == [PARENT.run_id, CHILD.run_id]
    best = replace(CHILD.training, keep="best")
    kept = [replace(CHILD, training=replace(best, steps=steps)) for steps in (8, 12)]
    assert all(not task.after for task in plan(kept, frozenset(), tmp_path))


def software25(languages: tuple[str, ...], **changes) -> RunSpec:
    pairs = [pair for code in languages for pair in (f"eng-{code}", f"{code}-eng")]
    fields = {
        "tier": "smoke",
        "corpus": "software25",
        "mixture": Mixture.of({pair: 1 / len(pairs) for pair in pairs}),
        "model": ModelConfig.fairseq(vocab_size=600, d_model=8, layers=1, heads=2),
        "training": adamw(steps=3, curve_points=1, learning_rate=0.005),
        "tags": "both",
        "seed": 1,
        "vocabulary": VocabularyConfig(
            pieces=600, languages=("eng", *languages), sentences=1500, temperature=2.0,
            character_coverage=0.99,
        ),
    }  # fmt: skip
    return RunSpec(**{**fields, **changes})


def test_an_upgrade_on_real_text(corpora_dir: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MNMT_REPRO_DATA", str(corpora_dir))
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    parent = software25(("xho",))
    config = UpgradeConfig(gamma_old=0.5)
    child = software25(
        ("xho", "npi"), kept=(("npi", 120),), upgrade=Upgrade(parent=parent, config=config)
    )
    assert sweep_into(tmp_path / "store", tmp_path / "runs", [child], InThisProcess()) == []
    [run] = [c for c in results.load_runs(tmp_path / "store") if c["run"]["run_id"] == child.run_id]
    rows = {(row["pair"], row["test_set"]): row for row in run["rows"]}
    assert {test_set for _, test_set in rows} == {"indomain", "indomain-3words"}
    assert all(row["domain"] == "all" for row in run["rows"]) and len(rows) == 8
    for pair in ("eng-npi", "npi-eng", "eng-xho"):
        whole, long = rows[pair, "indomain"], rows[pair, "indomain-3words"]
        assert 0 < long["sentences"] < whole["sentences"]
    there = rows["eng-npi", "indomain-3words"], rows["npi-eng", "indomain-3words"]
    assert there[0]["sentences"] == there[1]["sentences"]  # by their English words

    data = load_run_data(child)
    assert data.training.sentences["eng-npi"].size <= 120 < 1000
    assert data.training.sentences["eng-xho"].size > 2500
    assert data.training.validation["eng-npi"].size == 250
    upgraded = upgrade_of(child, tmp_path / "runs")
    overlap = upgraded.report.overlap
    assert overlap is not None and 0.2 < overlap.share < 1
    # The old vocabulary never saw the new language, nor does the new one see all of it.
    old, new = run_vocabulary(parent), run_vocabulary(child)
    assert run["run"]["vocabulary_hash"] == new.hash != old.hash
    assert new.hash != run_vocabulary(replace(child, kept=())).hash
    assert {split_pair(pair)[0] for pair in child.mixture.pairs} == {"eng", "xho", "npi"}


def test_an_upgrade_with_an_extended_vocabulary(corpora_dir: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MNMT_REPRO_DATA", str(corpora_dir))
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    parent = software25(("xho",))
    config = UpgradeConfig(embeddings="centroid")
    child = software25(
        ("xho", "npi"),
        kept=(("npi", 120),),
        vocabulary=parent.vocabulary,
        model=replace(parent.model, vocab_size=600 + 1 + 3000),
        upgrade=Upgrade(parent=parent, config=config, new_pieces=3000),
    )
    assert sweep_into(tmp_path / "store", tmp_path / "runs", [child], InThisProcess()) == []
    old, new = run_vocabulary(parent), run_vocabulary(child)
    for at in (0, 300, len(old) - 1):
        assert new.processor.id_to_piece(at) == old.processor.id_to_piece(at)
    assert new.processor.id_to_piece(len(old)) == "<2npi>"
    assert len(old) + 30 < len(new) < child.model.vocab_size  # so little text has not so many
    table = upgrade_of(child, tmp_path / "runs").model.state_dict()["embedding.weight"]
    torch.testing.assert_close(table[len(old) :], table[: len(old)].mean(0).expand(3001, -1))
    fewer = replace(child, upgrade=Upgrade(parent=parent, config=config, new_pieces=9))
    assert len(run_vocabulary(fewer)) == len(old) + 1 + 9
    assert fewer.config_hash != child.config_hash
