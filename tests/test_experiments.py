"""Declared runs: grids, identities, what a run stores, and scores by domain."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from small_runs import PAIRS, VARIED, adamw, sentences, t5

from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.papers.cohorts.catalogue import RUN_TIERS, runs_of
from mnmt_repro.results import load_runs, schema
from mnmt_repro.runs import spec as spec_module
from mnmt_repro.runs.data import TestSet
from mnmt_repro.runs.execute import execute, score
from mnmt_repro.runs.spec import RunSpec, digest
from mnmt_repro.scoring import sentence_losses


def tiny_spec(**changes) -> RunSpec:
    conlang = ConlangConfig(concepts=64, syllables=24, min_concepts=4)
    fields = {
        "tier": "smoke",
        "corpus": "conlang-test",
        "mixture": Mixture.two(*PAIRS, 0.25),
        "model": t5(conlang, d_model=8),
        "training": adamw(steps=5, curve_points=2),
        "tags": "source",
        "seed": 1,
        "conlang": conlang,
    }
    return RunSpec(**{**fields, **changes})


def test_labels_do_not_change_what_a_run_is_and_settings_do() -> None:
    spec = tiny_spec()
    same = [tiny_spec(tier="mini"), tiny_spec(corpus="conlang-other")]
    assert {each.run_id for each in same} == {spec.run_id}
    others = [
        tiny_spec(seed=2),
        tiny_spec(tags="both"),
        tiny_spec(mixture=Mixture.two(*PAIRS, 0.5)),
        tiny_spec(training=adamw(steps=6, curve_points=2)),
        tiny_spec(model=t5(spec.conlang, d_model=16)),
        tiny_spec(conlang=dataclasses.replace(spec.conlang, similarity=0.5)),
    ]
    assert len({each.run_id for each in [spec, *others]}) == 7
    assert len({each.config_hash for each in [spec, *others]}) == 7


def test_a_run_is_another_one_under_another_code_version(monkeypatch) -> None:
    before = tiny_spec()
    first = before.run_id
    monkeypatch.setattr(spec_module, "code_version", lambda **_: "corpora2-model1")
    after = tiny_spec()
    assert after.config_hash == before.config_hash
    assert after.run_id != first


def test_scores_by_domain_equal_a_count_by_hand() -> None:
    model, text = Transformer(t5(), seed=2), sentences(VARIED, "src-aaa", 9)
    domains = ("b", "a", "b", "c", "a", "b", "c", "c", "b")
    nats, tokens = sentence_losses(model, text)
    assert len(set(tokens.tolist())) > 2  # means over sentences and over tokens differ

    def by_hand(names: str) -> dict:
        rows = [i for i, domain in enumerate(domains) if domain in names]
        total = sum(int(tokens[i]) for i in rows)
        return {
            "cross_entropy": pytest.approx(sum(float(nats[i]) for i in rows) / total, rel=1e-9),
            "test_tokens": total,
            "sentences": len(rows),
        }

    found = list(
        score(model, TestSet(name="own", text=text, domains=domains, shared=("a", "c")), "")
    )
    assert found == [
        {"test_set": "own", "domain": "all", **by_hand("abc")},
        {"test_set": "own", "domain": "a", **by_hand("a")},
        {"test_set": "own", "domain": "b", **by_hand("b")},
        {"test_set": "own", "domain": "c", **by_hand("c")},
        {"test_set": "shared", "domain": "all", **by_hand("ac")},
    ]
    plain = list(score(model, TestSet(name="news", text=text), ""))
    assert [(row["test_set"], row["domain"]) for row in plain] == [("news", "all")]


def test_a_declared_run_from_end_to_end(tmp_path: Path) -> None:
    spec = tiny_spec()
    done = execute(spec, tmp_path, progress_bar=False)
    schema.checked(schema.RUN, {"schema": schema.SCHEMA, **done}, "a run")
    assert json.loads(json.dumps(done)) == done  # as the store will read it
    run, rows = done["run"], done["rows"]
    assert run["run_id"] == spec.run_id
    assert run["steps"] == 5
    assert run["config"]["mixture"] == {"src-aaa": 0.25, "src-bbb": 0.75}
    assert [(row["pair"], row["p"], row["test_set"]) for row in rows] == [
        ("src-aaa", 0.25, "indomain"), ("src-bbb", 0.75, "indomain"),
    ]  # fmt: skip
    assert sum(row["pair_target_tokens"] for row in rows) == run["target_tokens"]
    assert sum(row["token_share"] for row in rows) == pytest.approx(1.0)
    assert all(row["passes"] == 0 for row in rows)  # the text never ends
    # Untrained, a model is about as sure as one that knows nothing: ln of 79 pieces.
    assert all(abs(row["cross_entropy"] - np.log(79)) < 1.0 for row in rows)
    assert {point["pair"] for point in done["curve"]} == set(PAIRS)

    again = execute(spec, tmp_path, progress_bar=False)  # nothing is trained twice
    assert again["rows"] == rows and again["curve"] == done["curve"]


def test_a_pair_that_is_not_in_the_corpus_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pair 'src-zzz'"):
        execute(tiny_spec(mixture=Mixture.of({"src-zzz": 1.0})), tmp_path)


def test_every_stored_run_keeps_its_identity() -> None:
    """New fields of a configuration must not change the hash of runs that are already stored.

    A field that is newer than they are is left out of the hash where it has its default.
    """
    stored = [content["run"] for content in load_runs()]
    assert len(stored) >= 2215
    for run in stored:
        assert digest(run["config"]) == run["config_hash"]
        parts = [run["config_hash"], run["data_hash"], run["code_version"]]
        assert digest(parts, 12) == run["run_id"]
    declared = {spec.run_id: spec for spec in runs_of(*RUN_TIERS)}
    pilots = [run for run in stored if run["run_id"] not in declared]
    assert len(pilots) < 100
    assert {run["corpus"] for run in pilots} <= {
        "conlang-pilot", "conlang-settled-pilot", "webtech"
    }  # fmt: skip
    for run in stored:
        if spec := declared.get(run["run_id"]):
            assert (spec.config, spec.tier) == (run["config"], run["tier"])
