"""One run from beginning to end: text, start, training, evaluation, and the row to store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from mnmt_repro.architecture import flops_per_target_token, parameter_counts
from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.model import Transformer
from mnmt_repro.runs.data import RunData, TestSet, load_run_data, make_vocabulary
from mnmt_repro.runs.environment import called_now, processor
from mnmt_repro.runs.folder import describe
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.start import begin_from_shorter, beginning
from mnmt_repro.runs.training_text import TextSource
from mnmt_repro.scoring import check_finite, sentence_losses
from mnmt_repro.training.checkpoint import Progress
from mnmt_repro.training.distributed import processes
from mnmt_repro.training.loop import finished, train
from mnmt_repro.upgrading.start import Start


def execute(
    spec: RunSpec,
    folder: Path,
    *,
    among: Iterable[RunSpec] = (),
    source: TextSource | None = None,
    data: RunData | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
    start: Start | None = None,
    device: str = "cpu",
    **how: Any,
) -> dict[str, Any]:
    """Train and evaluate `spec`; go on where an earlier call in `folder` stopped.

    Parameters
    ----------
    among
        Runs of which it may go on from a shorter one, where that lies beside `folder`.
    source
        Where the text of a user's run comes from; None: it is a declared one.
    data, about
        The text itself, where it is read already, and what `run.json` says of it.
    start
        The upgraded model that it begins with, where `spec` does not say how that is made.
    device
        ``cpu``, ``cuda``, ``cuda:1``, ...
    **how
        What decides no weight: `recompute`, `shard`, `progress_bar`, `checkpoint_seconds`, `label`
        and `stop` of `training.loop.train`.

    Returns
    -------
    dict
        `run`, `rows` and `curve`, as `results.write_run` takes them. Empty where the run was asked
        to stop, and in all but the first of several processes.

    Raises
    ------
    InputError, TrainingDiverged
        See `training.loop.train` and `runs.data.load_run_data`.
    """
    called, group = called_now(), processes()
    if data is None and source is not None:
        text = source.read()
        data = load_run_data(spec, text, make_vocabulary(text, source))
        about = source.described(text)
    data = data or load_run_data(spec)
    begin_from_shorter(spec, folder, among)
    start = start or beginning(spec, folder, data)
    if group.first:
        folder.mkdir(parents=True, exist_ok=True)
        describe(folder, spec, data.vocabulary, about)
    model, progress = train(
        spec.model if start is None else start.model,
        spec.training,
        data.training,
        spec.mixture,
        folder,
        seed=spec.seed,
        identity=spec.identity,
        device=device,
        prepare=None if start is None else start.prepare,
        schedule_start=0 if start is None else start.schedule_start,
        **{"label": spec.label, **how},
    )
    if not (group.first and finished(progress, spec.training)):
        return {}
    return record(spec, data, model, progress, called=called, device=device)


def record(
    spec: RunSpec,
    data: RunData,
    model: Transformer,
    progress: Progress,
    *,
    called: Mapping[str, str],
    device: str,
) -> dict[str, Any]:
    """Score a trained run: its `run`, `rows` and `curve`, as `results.write_run` takes them.

    Parameters
    ----------
    called
        From `environment.called_now`, before the training.
    """
    counts = parameter_counts(spec.model)
    run = {
        "run_id": spec.run_id,
        "config_hash": spec.config_hash,
        "data_hash": spec.data_hash,
        "commit": called["commit"],
        "code_version": spec.code_version,
        "tier": spec.tier,
        "corpus": spec.corpus,
        "mixture": spec.mixture.weights,
        "size": spec.size,
        "n_non_embedding": counts["non_embedding"],
        "n_total": counts["total"],
        "steps": progress.step,
        "target_tokens": progress.target_tokens,
        "batch_tokens": spec.training.batch_tokens,
        "seed": spec.seed,
        "learning_rate": spec.training.learning_rate,
        "wall_seconds": round(progress.seconds, 1),
        "hardware": hardware(device),
        "flops": _flops(spec, data, progress),
        "torch": torch.__version__,
        "vocabulary_hash": data.vocabulary.hash,
        "started": called["started"],
        "config": spec.config,
    }
    return {"run": run, "rows": list(_rows(spec, data, progress, model)), "curve": progress.curve}


def _flops(spec: RunSpec, data: RunData, progress: Progress) -> float:
    total = 0.0
    for pair, tokens in zip(spec.mixture.pairs, progress.pair_tokens, strict=True):
        text = data.training.sentences[pair]
        if not isinstance(text, EncodedPair):  # endless, with the lengths of its test set
            text = data.tests[pair][0].text
        total += tokens * flops_per_target_token(
            spec.model,
            source_length=float(text.source.lengths.mean()),
            target_length=float((text.target.lengths - 1).mean()),
        )
    return total


def _rows(
    spec: RunSpec, data: RunData, progress: Progress, model: Transformer
) -> Iterator[dict[str, Any]]:
    for k, pair in enumerate(spec.mixture.pairs):
        size = data.training.sentences[pair].size
        about = {
            "pair": pair,
            "p": spec.weights[pair],
            "token_share": progress.pair_tokens[k] / progress.target_tokens,
            "pair_target_tokens": progress.pair_tokens[k],
            "passes": 0.0 if size is None else progress.pair_sentences[k] / size,
        }
        for test in data.tests.get(pair, ()):
            for scores in score(model, test, pair):
                yield {**about, **scores}


def score(model: Transformer, test: TestSet, where: str) -> Iterator[dict[str, Any]]:
    """Cross-entropy of a test set: whole, by domain, over shared domains, and of named parts.

    Raises
    ------
    InputError
        When it is not a number; `where` names the direction.
    """
    nats, tokens = sentence_losses(model, test.text)
    check_finite(nats, where)
    for (name, domain), rows in test.selections.items():
        yield {
            "test_set": name,
            "domain": domain,
            "cross_entropy": float(nats[rows].sum() / tokens[rows].sum()),
            "test_tokens": int(tokens[rows].sum()),
            "sentences": int(rows.sum()),
        }


def hardware(device: str) -> str:
    """Name and generation of the processor that trained, and how many threads it used.

    Two of one name may round differently, so that a run repeated on the other is not the same to
    the last bit; its generation (family, model) and the vector instructions in use tell them apart.
    """
    if device != "cpu":
        return torch.cuda.get_device_name(device)
    vectors = torch.backends.cpu.get_cpu_capability()
    return f"{processor()}, {vectors}, {torch.get_num_threads()} thread(s)"
