"""Translate the test sets with the checkpoint of a finished run, and score the translations.

Training stores losses only. Scores of translations are made later, for the runs of which somebody
still has the checkpoint, and stored beside the run's own file (`results.decodings`).

The translations themselves stay in the run's folder, so that another scorer can read them; they are
third-party test sets in other words, and no part of the results.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mnmt_repro.atomic import write_bytes
from mnmt_repro.corpora.vocabulary import Vocabulary
from mnmt_repro.evaluation import learned_metrics
from mnmt_repro.evaluation.metrics import scores
from mnmt_repro.evaluation.search import SearchConfig, search_all
from mnmt_repro.runs.code_version import ROOMS
from mnmt_repro.runs.data import TestSet, load_test_sets, run_vocabulary, spread
from mnmt_repro.runs.environment import called_now
from mnmt_repro.runs.execute import hardware
from mnmt_repro.runs.finished import load_finished
from mnmt_repro.runs.spec import RunSpec, digest
from mnmt_repro.training.checkpoint import Checkpoint

Scores = Mapping[str, float | str]
Texts = dict[str, dict[str, list[str]]]
"""Pair to test set to translations, one a decoded sentence."""


SENTENCES = 500
"""Sentences of each test set that are decoded, unless one says otherwise.

They take a run of the mini tier 5 to 25 seconds on one thread, from its smallest size to its
largest.
"""
SEARCH = SearchConfig()


def settings_of(sentences: int) -> dict[str, Any]:
    """How so many sentences of each test set are decoded, as it is stored with the scores."""
    return {"sentences": sentences, **asdict(SEARCH)}


def decode(
    spec: RunSpec,
    folder: Path,
    run: Mapping[str, Any],
    sentences: int = SENTENCES,
    *,
    bleurt: Path | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Decode a finished run and score it.

    Parameters
    ----------
    folder
        The run's own, with its checkpoint. Gains `translations-HASH.json`; where that is there
        already, from these weights and settings, nothing is translated again.
    run
        What the store says of the run: its `steps` and `vocabulary_hash`.
    sentences
        Of each test set, spread evenly over it.
    bleurt
        Folder of BLEURT's weights: score with it in place of sacrebleu's metrics.

    Returns
    -------
    dict
        ``schema``, ``decoding`` and ``rows``, as `results.write_decoding` takes them. A row for
        each pair and test set, and for parts of one over which the run's loss is stored as a test
        set of its own; none by domain.

    Raises
    ------
    InputError
        When there is no checkpoint, it is another run's or not the finished one, or the text is
        not on this machine.
    """
    called, began = called_now(), time.monotonic()
    settings = settings_of(sentences)
    checkpoint = load_finished(spec, folder, run)
    vocabulary = run_vocabulary(spec)
    tests = {pair: load_test_sets(spec, pair) for pair in spec.mixture.pairs}
    assert checkpoint.file is not None
    weights = checkpoint.file.digest().hex()[:16]
    kept = folder / f"translations-{digest([weights, settings, ROOMS['evaluation']])}.json"
    texts: Texts
    if kept.exists():
        texts = json.loads(kept.read_text(encoding="utf-8"))
    else:
        texts = translate_tests(checkpoint, tests, vocabulary, sentences, device)
        write_bytes(kept, json.dumps(texts, ensure_ascii=False, indent=1).encode())

    def score(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
        if bleurt is not None:
            return learned_metrics.bleurt(hypotheses, references, bleurt, device=device)
        pieces = None if spec.conlang else vocabulary
        return scores(hypotheses, references, language, vocabulary=pieces)

    rows, signatures = score_tests(tests, texts, sentences, score)
    decoding = {
        "run_id": spec.run_id,
        "corpus": spec.corpus,
        "scorer": "sacrebleu" if bleurt is None else "bleurt",
        "settings": settings,
        "signatures": signatures,
        "checkpoint": weights,
        "steps": checkpoint.progress.step,
        "commit": called["commit"],
        "evaluation_version": ROOMS["evaluation"],
        "torch": torch.__version__,
        "hardware": hardware(device),
        "seconds": round(time.monotonic() - began, 1),
        "started": called["started"],
    }
    return {"decoding": decoding, "rows": rows}


def translate_tests(
    checkpoint: Checkpoint,
    tests: Mapping[str, Sequence[TestSet]],
    vocabulary: Vocabulary,
    sentences: int,
    device: str = "cpu",
) -> Texts:
    """Translate the chosen sentences of every test set."""
    model = checkpoint.model().to(device)
    texts: Texts = {}
    for pair, sets in tests.items():
        for test in sets:
            best = search_all(
                model,
                test.text.source.take(spread(test.text.size, sentences)),
                int(test.text.target.flat[0]),  # the start token, or the target language's tag
                SEARCH,
                forbidden=vocabulary.never,
            )
            lines = vocabulary.decode([hypothesis.tokens for hypothesis in best])
            texts.setdefault(pair, {})[test.name] = lines
    return texts


def score_tests(
    tests: Mapping[str, Sequence[TestSet]],
    texts: Texts,
    sentences: int,
    score: Callable[[Sequence[str], Sequence[str], str], Scores],
) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """Score every test set, whole and in its named parts.

    Parameters
    ----------
    score
        From hypotheses, references and the target language to metrics and signatures.

    Returns
    -------
    rows
        ``pair, test_set, domain, sentences`` and the metrics; a part of which no sentence was
        decoded has none.
    signatures
        Target language to metric to signature.
    """
    rows: list[dict[str, Any]] = []
    signatures: dict[str, dict[str, str]] = {}
    for pair, sets in tests.items():
        language = pair.partition("-")[2]
        for test in sets:
            chosen, translated = spread(test.text.size, sentences), texts[pair][test.name]
            for (name, domain), part in test.selections.items():
                inside = np.flatnonzero(part[chosen])
                if domain != "all" or not inside.size:
                    continue
                scored = score(
                    [translated[i] for i in inside],
                    [test.references[chosen[i]] for i in inside],
                    language,
                )
                values = {k: v for k, v in scored.items() if not k.endswith("_signature")}
                about = {"pair": pair, "test_set": name, "domain": "all", "sentences": inside.size}
                rows.append({**about, **values})
                signatures.setdefault(language, {}).update(
                    {metric: str(scored[f"{metric}_signature"]) for metric in values}
                )
    return rows, signatures
