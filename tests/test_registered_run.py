"""A declared run on a registered corpus, counted by hand: what it reads, scores and stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_runs import adamw
from small_text import small_bitext
from test_selected_corpus import card_of

from mnmt_repro.architecture import ModelConfig, flops_per_target_token
from mnmt_repro.corpora import registry
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.results import schema
from mnmt_repro.runs import data as data_module
from mnmt_repro.runs.data import load_run_data, run_vocabulary
from mnmt_repro.runs.execute import execute
from mnmt_repro.runs.spec import RunSpec

SIZES = {"train": 60, "valid": 9, "test": 8}
LONG = 5  # sentences of the test set with three English words or more
MAX_LENGTH = 33  # tokens; some of the training sentences have more
PAIRS = ("eng-deu", "deu-eng")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    """A run on both directions of a made-up corpus of short segments."""
    text = small_bitext(count=sum(SIZES.values()))
    splits = [split for split, count in SIZES.items() for _ in range(count)]
    rows = [list(row) for row in zip(splits, text.source, text.target, strict=True)]
    for row in rows[-(SIZES["test"] - LONG) :]:
        row[1] = " ".join(row[1].split()[:2])
    card = card_of(tmp_path, {"deu": [(split, "gnome", *sides) for split, *sides in rows]})
    cards = (*registry.list_cards(), card)
    monkeypatch.setattr(registry, "list_cards", lambda: cards)
    monkeypatch.setattr(data_module, "SHORT_SEGMENTS", ("three",))
    monkeypatch.setattr(data_module, "MOST_VALIDATION_SENTENCES", 14)  # of two pairs: 7 each
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path))
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    return RunSpec(
        tier="smoke",
        corpus="three",
        mixture=Mixture.two(*PAIRS, 0.25),
        model=ModelConfig.fairseq(vocab_size=330, d_model=16, layers=1, heads=2),
        training=adamw(steps=12, curve_points=2, max_length=MAX_LENGTH),
        tags="both",
        seed=1,
        vocabulary=VocabularyConfig(pieces=330, languages=("eng", "deu")),
    )


def lengths(spec: RunSpec, pair: str) -> np.ndarray:
    """Tokens to read and to predict of each training sentence, tag and end counted by hand."""
    vocabulary, text = run_vocabulary(spec), small_bitext(pair, sum(SIZES.values()))
    train = slice(0, SIZES["train"])
    source, target = (vocabulary.encode(side[train]) for side in (text.source, text.target))
    return np.stack([source.lengths + 2, target.lengths + 1])  # <2eng> ... </s>; ... </s>


def test_what_is_read(spec: RunSpec) -> None:
    data = load_run_data(spec)
    vocabulary = run_vocabulary(spec)
    assert data.vocabulary.hash == vocabulary.hash
    for pair in PAIRS:
        fits = (lengths(spec, pair) <= MAX_LENGTH).all(axis=0)
        assert 0 < fits.sum() < SIZES["train"]
        read = data.training.sentences[pair]
        assert isinstance(read, EncodedPair) and read.size == fits.sum()
        mean = (read.source.lengths.mean(), (read.target.lengths - 1).mean())
        assert mean == pytest.approx(lengths(spec, pair)[:, fits].mean(axis=1))
        # Validation text is cut, test text is whole; neither is of the training split.
        whole = small_bitext(pair, sum(SIZES.values()))
        valid = data.training.validation[pair]
        assert valid.size == 7
        first = vocabulary.encode([whole.source[SIZES["train"]]])
        assert valid.source.flat[1 : 1 + len(first.flat)].tolist() == first.flat.tolist()
        (test,) = data.tests[pair]
        assert test.text.size == SIZES["test"] == len(test.references)
        assert {k: int(rows.sum()) for k, rows in test.parts.items()} == {"indomain-3words": LONG}
    german = small_bitext(count=sum(SIZES.values())).target
    assert list(data.tests[PAIRS[0]][0].references) == german[-SIZES["test"] :]


def test_what_is_stored(spec: RunSpec, tmp_path: Path) -> None:
    done = execute(spec, tmp_path / "run", progress_bar=False)
    schema.checked(schema.RUN, {"schema": schema.SCHEMA, **done}, "a run")
    run = done["run"]
    rows = {(row["pair"], row["test_set"]): row for row in done["rows"]}
    assert set(rows) == {(pair, name) for pair in PAIRS for name in ("indomain", "indomain-3words")}
    assert all(rows[pair, "indomain"]["sentences"] == SIZES["test"] for pair in PAIRS)
    assert all(rows[pair, "indomain-3words"]["sentences"] == LONG for pair in PAIRS)
    tokens = {pair: rows[pair, "indomain"]["pair_target_tokens"] for pair in PAIRS}
    assert sum(tokens.values()) == run["target_tokens"]
    flops = 0.0
    for pair in PAIRS:
        row, fits = rows[pair, "indomain"], (lengths(spec, pair) <= MAX_LENGTH).all(axis=0)
        source, target = lengths(spec, pair)[:, fits].mean(axis=1)
        assert row["token_share"] == pytest.approx(tokens[pair] / run["target_tokens"])
        # Sentences seen are nearly tokens seen over a sentence's mean length.
        assert row["passes"] == pytest.approx(tokens[pair] / target / fits.sum(), rel=0.1)
        cost = flops_per_target_token(spec.model, source_length=source, target_length=target)
        flops += tokens[pair] * cost
    assert run["flops"] == pytest.approx(flops)
    # A quarter of the sentences are of the first pair; its targets are longer or shorter.
    seen = {pair: rows[pair, "indomain"]["passes"] for pair in PAIRS}
    sizes = {pair: load_run_data(spec).training.sentences[pair].size for pair in PAIRS}
    sentences = {pair: seen[pair] * sizes[pair] for pair in PAIRS}
    assert all(count == pytest.approx(round(count)) for count in sentences.values())
    assert sentences[PAIRS[0]] / sum(sentences.values()) == pytest.approx(0.25, abs=0.12)
    assert {point["pair"] for point in done["curve"]} == set(PAIRS)
