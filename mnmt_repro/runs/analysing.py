"""Analyse a finished run from its checkpoint: what training on did to old weights.

`results.analyses` says what each analysis is, and the cohorts' `analysed` of which runs it is made.
They are stored beside the run's own file, for the runs of which somebody still has the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.runs.data import load_run_data, load_test_sets
from mnmt_repro.runs.environment import current_commit
from mnmt_repro.runs.finished import load_finished
from mnmt_repro.runs.spec import RunSpec
from mnmt_repro.runs.start import fisher_threshold, old_fisher, piece_map, upgrade_of
from mnmt_repro.training.checkpoint import Checkpoint, load_checkpoint
from mnmt_repro.training.config import LAST
from mnmt_repro.upgrading.analyses import (
    Row,
    fisher_histogram,
    half_distances,
    loss_rise,
    substitute_embeddings,
)
from mnmt_repro.upgrading.config import Normalisation, UpgradeConfig, WidthConfig
from mnmt_repro.upgrading.recipe import upgrade

WIDENED_PAIRS = 8
NOISES = (0.0, 0.01)  # none, and the published one
FISHER_EDGES = tuple(10 ** (k / 2) for k in range(-24, 1))  # 1e-12 to 1, two bins a decade


def analyse(
    spec: RunSpec,
    folder: Path,
    run: Mapping[str, Any],
    *,
    names: Mapping[str, Iterable[str]],
    device: str = "cpu",
) -> dict[str, Any]:
    """Make analyses of a finished run.

    Parameters
    ----------
    folder
        The run's own, with its checkpoint; that of the run it upgrades lies beside it.
    run
        What the store says of the run: its `steps` and `vocabulary_hash`.
    names
        Run id to some of `ANALYSES`.
    device
        For losses; all else is done on the CPU.

    Returns
    -------
    dict
        As `results.write_analyses` takes it.

    Raises
    ------
    InputError
        When a checkpoint is missing, another run's or unfinished, or the text is not on this
        machine.
    """
    commit = current_commit()
    checkpoint = load_finished(spec, folder, run)
    made = (ANALYSES[name](spec, folder.parent, checkpoint, device) for name in names[spec.run_id])
    rows = [row for each in made for row in each]
    return {"run_id": spec.run_id, "commit": commit, "rows": rows}


def _overlap(
    spec: RunSpec, runs_folder: Path, checkpoint: Checkpoint, device: str
) -> Iterator[Row]:
    pieces = piece_map(spec)
    for row in [] if pieces is None else pieces.overlap.rows():
        for part in ("kept", "added", "dropped"):
            yield _row("overlap", row[part], block=f"{row['kind']}, {part}")


def _substituted(
    spec: RunSpec, runs_folder: Path, checkpoint: Checkpoint, device: str
) -> Iterator[Row]:
    assert spec.upgrade is not None
    parent = spec.upgrade.parent
    old = load_checkpoint(runs_folder / parent.run_id / LAST).model().to(device)
    probe = substitute_embeddings(old, checkpoint.model(), piece_map(spec))
    text = _in_domain(parent, parent.mixture.pairs)
    for pair, rise in loss_rise(old, probe, text).items():
        yield _row("substituted", rise, pair=pair)


def _moved(spec: RunSpec, runs_folder: Path, checkpoint: Checkpoint, device: str) -> Iterator[Row]:
    placed = upgrade_of(spec, runs_folder).model.state_dict()
    for (layer, block), distance in half_distances(placed, checkpoint.weights).items():
        yield _row("moved", distance, layer=layer, block=block)


def _fisher(spec: RunSpec, runs_folder: Path, checkpoint: Checkpoint, device: str) -> Iterator[Row]:
    assert spec.upgrade is not None and spec.upgrade.fisher_share is not None
    upgraded, share = upgrade_of(spec, runs_folder), spec.upgrade.fisher_share
    fisher = old_fisher(spec, upgraded, load_run_data(spec))
    for bin_ in fisher_histogram(fisher, FISHER_EDGES, upgraded.groups):
        yield _row("fisher", bin_["share"], block=f"{bin_['low']:.3g}")
    threshold = fisher_threshold(fisher, upgraded.groups, share)
    yield _row("threshold", threshold, block=f"{share:g}")


def _widened(
    spec: RunSpec, runs_folder: Path, checkpoint: Checkpoint, device: str
) -> Iterator[Row]:
    """Widened by two, the vocabulary kept, on the test sets of the pairs of largest weight."""
    largest = sorted(spec.mixture.items, key=lambda item: (-item[1], item[0]))[:WIDENED_PAIRS]
    text = _in_domain(spec, [pair for pair, _ in largest])
    old = checkpoint.model().to(device)
    for normalisation in get_args(Normalisation):
        if normalisation == "function-shared" and spec.model.feed_forward == "gated-gelu":
            continue  # which it cannot be used with
        for noise in NOISES:
            width = WidthConfig(normalisation=normalisation, noise=noise)
            config = UpgradeConfig(wider=2.0, width=width, optimiser="reset", seed=spec.seed)
            wide = upgrade(checkpoint, config).model.to(device)
            for pair, rise in loss_rise(old, wide, text).items():
                yield _row("widened", rise, block=f"{normalisation}, noise {noise:g}", pair=pair)


ANALYSES: dict[str, Callable[[RunSpec, Path, Checkpoint, str], Iterator[Row]]] = {
    "overlap": _overlap,
    "substituted": _substituted,
    "moved": _moved,
    "fisher": _fisher,
    "widened": _widened,
}


def _in_domain(spec: RunSpec, pairs: list[str] | tuple[str, ...]) -> dict[str, EncodedPair]:
    return {pair: load_test_sets(spec, pair)[0].text for pair in pairs}


def _row(analysis: str, value: Any, *, layer: str = "", block: str = "", pair: str = "") -> Row:
    return {"analysis": analysis, "layer": layer, "block": block, "pair": pair, "value": value}
