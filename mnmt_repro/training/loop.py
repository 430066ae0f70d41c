"""The training loop: resumable to the bit, loud when it diverges, in one process or several."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.atomic import write_bytes
from mnmt_repro.corpora.batches import PAD_TO, Batch, BatchStream, EncodedPair, Position, Sentences
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.vocabulary import PAD
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer, autocast
from mnmt_repro.scoring import cross_entropy
from mnmt_repro.training.checkpoint import (
    Checkpoint,
    Progress,
    damaged,
    load_checkpoint,
    save_checkpoint,
    weights_file,
)
from mnmt_repro.training.compiled import GroupedAdafactor, can_compile, compiled_loss
from mnmt_repro.training.config import BEST, LAST, LOG, STEM, TrainingConfig
from mnmt_repro.training.distributed import Processes, held, placed, processes


class TrainingDiverged(RuntimeError):
    """The loss is no longer a number; the message names the last good checkpoint."""


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """What a run trains on and validates on, encoded.

    A pair of the mixture without validation sentences has no learning curve.
    """

    sentences: Mapping[str, Sentences]
    validation: Mapping[str, EncodedPair] = field(default_factory=dict)


def make_optimiser(model: Transformer, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adafactor or AdamW over all parameters.

    `torch.optim.Adafactor` already multiplies each step by the parameter's root mean square (not
    below 1e-3) and caps the relative step at 1/sqrt(t). It differs from Shazeer & Stern in having
    no first moment and in decaying the second one by 1 - t^-0.8. The schedule sets its `lr`.
    """
    parameters = list(model.parameters())
    if config.optimiser == "adafactor":
        kind = GroupedAdafactor if config.compile else torch.optim.Adafactor
        return kind(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    return torch.optim.AdamW(
        parameters,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        fused=config.compile or None,
    )


def make_loss(model: Transformer, config: TrainingConfig) -> Callable[..., Tensor]:
    """`model.loss`, or its compiled form."""
    return compiled_loss(model) if config.compile else model.loss


def batch_stream(
    data: TrainingData,
    mixture: Mixture,
    config: TrainingConfig,
    seed: int,
    changed: int | None = None,
) -> BatchStream:
    """Return the batches that a run trains on; see `Progress.changed`."""
    weights = config.first_weights
    first = None if weights is None else mixture.like(weights, "training first_weights")
    return BatchStream(
        data.sentences,
        mixture,
        batch_tokens=config.batch_tokens,
        seed=seed,
        pad_to=1 if config.compile else PAD_TO,  # one compiled program serves all shapes
        first=first,
        changed=math.inf if changed is None else changed,
    )


def loss_factors(mixture: Mixture, config: TrainingConfig) -> np.ndarray | None:
    """Factor of the loss of each pair of the mixture, (pairs,) float32; None: all are 1.

    The loss weight over the mixture weight, so that the expected gradient is that of drawing
    sentences by the loss weights (Paper A, Eq. 4).

    Raises
    ------
    InputError
        When the loss weights are not of the mixture's pairs.
    """
    if config.loss_weights is None:
        return None
    wanted = mixture.like(config.loss_weights, "training loss_weights")
    return np.array([wanted.weights[pair] / p for pair, p in mixture.items], dtype=np.float32)


def train(
    model: ModelConfig | Transformer,
    config: TrainingConfig,
    data: TrainingData,
    mixture: Mixture,
    folder: Path,
    *,
    seed: int,
    identity: str = "",
    device: str = "cpu",
    checkpoint_seconds: float = 60.0,
    recompute: bool = False,
    shard: bool = False,
    progress_bar: bool | None = None,
    label: str = "train",
    prepare: Callable[[Transformer, torch.optim.Optimizer], None] | None = None,
    schedule_start: int | None = 0,
    stop: Callable[[], bool] | None = None,
) -> tuple[Transformer, Progress]:
    """Train a model, or go on where `folder` says that an earlier call stopped.

    On a CPU with a fixed number of threads (one thread, where it is compiled), a run that was
    killed at any moment and called again ends with the same weights, bit for bit, as one that was
    not. Processes that have joined in a
    group train the one model together; see `training.distributed`.

    Parameters
    ----------
    model
        The shape of a new model, or a model to go on from (fine-tuning, upgrading).
    folder
        Holds `last.safetensors`, `best.safetensors` (with `keep="best"`), `stem.safetensors` (with
        a decay: the checkpoint at which it began) and `log.jsonl`.
    seed
        Decides initial weights, dropout and the order of the data.
    identity
        A hash of whatever defines the run; a folder with another identity is refused.
    recompute
        See `model.Transformer`. It is no setting of `config`, for it decides no weight.
    shard
        Of several processes, each holds a part of the model only. Likewise no setting. Needs
        AdamW, for torch's Adafactor does not work on split tensors.
    progress_bar
        None: on a terminal; elsewhere a line at each validation in its place, for a log.
    prepare
        Called with the model and its fresh optimiser before anything else, on a resumed call too
        (`upgrading.Start.prepare`: learning-rate scaling, and the state that is carried over). What
        it puts into the optimiser's state, a checkpoint of this run replaces.
    schedule_start
        Steps of the learning-rate schedule that lie behind: step t has the rate of step
        `schedule_start` + t. None: no schedule, but `config.learning_rate` at every step. The
        final decay follows this run's own budget in every case.
    stop
        Asked after every step; where it says so, the run is saved and left unfinished. Only for
        one process alone.

    Returns
    -------
    The trained model (best or last, as `keep` says) and where the run stood at its end; its
    learning curve in the first process only.

    Raises
    ------
    InputError
        When `folder` belongs to another run, or what should be compiled cannot be.
    TrainingDiverged
        At the first loss that is not finite; the last good checkpoint stays.
    """
    if config.compile and (shard or recompute):
        raise InputError("training compile goes with neither shard nor recompute; leave one out")
    if config.compile and not can_compile(device):
        raise InputError(
            "training compile needs a C++ compiler: install one, or begin another run with --exact"
        )
    group = processes(shard=shard)
    if config.stop_after is not None and group.count > 1:
        raise InputError("training stop_after is for one process alone; leave it out")
    torch.manual_seed(seed)
    network = Transformer(model, seed=seed) if isinstance(model, ModelConfig) else model
    network.recompute = recompute
    last = folder / LAST
    checkpoint = _own_checkpoint(last, network, identity) if last.exists() else None
    network = group.place(network, device)
    optimiser = make_optimiser(network, config)
    if prepare is not None:
        prepare(network, optimiser)
    if checkpoint is None:
        progress = Progress(
            pair_tokens=[0] * len(mixture.pairs), pair_sentences=[0] * len(mixture.pairs)
        )
    else:
        progress = checkpoint.progress
        _resume(last, checkpoint, optimiser)
        del checkpoint
    progress.behind = schedule_start
    run = _Run(
        network=network, optimiser=optimiser, config=config, progress=progress, folder=folder,
        identity=identity, device=device, group=group,
        objective=group.objective(network, make_loss(network, config)),
        factors=loss_factors(mixture, config),
    )  # fmt: skip
    if group.first:
        _restore_log(folder / LOG, progress)

    points = [t for t in config.curve_tokens() if t > progress.target_tokens]
    called = saved = time.monotonic()
    began, before = called - progress.seconds, (progress.step, progress.target_tokens)
    network.train()
    bar = tqdm(
        total=config.planned_tokens,
        initial=min(progress.target_tokens, config.planned_tokens),
        unit="tok",
        unit_scale=True,
        desc=label,
        disable=not group.first or (None if progress_bar is None else not progress_bar),
        leave=False,
    )
    lines = group.first and bar.disable and progress_bar is None
    stopped, decaying = False, _decays(progress, config)
    if lines and progress.step and not finished(progress, config):
        _tell(label, f"going on at {how_far(progress, config)}")
    with bar:
        batches = None
        while not (stopped or finished(progress, config)):
            changes = _change_weights(progress, config)
            if batches is None or changes:
                stream = batch_stream(data, mixture, config, seed, progress.changed)
                batches = stream.batches(progress.position)
            position, batch = next(batches)
            rate = _rate(config, schedule_start, progress)
            group.seed_dropout(seed, progress.step, device)
            loss = run.step(batch, position, rate)
            bar.update(min(progress.target_tokens, config.planned_tokens) - bar.n)
            bar.set_postfix_str(f"step {progress.step} loss {loss:.3f}", refresh=False)
            if group.joins and not decaying and _decays(progress, config):
                decaying = True
                run.save(STEM)
            ended = finished(progress, config)
            stopped = stop is not None and stop()
            if not group.joins:
                continue
            if ended or (points and progress.target_tokens >= points[0]):
                points = [t for t in points if t > progress.target_tokens]
                progress.seconds = time.monotonic() - began
                losses = run.validate(data.validation, loss, rate)
                ended = finished(progress, config)  # it may have brought no gain
                if lines:
                    shown = "".join(f", {pair} {value:.3f}" for pair, value in losses.items())
                    pace = _pace(config, progress, before, time.monotonic() - called)
                    _tell(
                        label,
                        f"{how_far(progress, config)}: training loss {loss:.3f}{shown}; {pace}",
                    )
            if group.of_first(ended or stopped or time.monotonic() - saved > checkpoint_seconds):
                run.check_finite()
                progress.seconds = time.monotonic() - began
                run.save(LAST)
                saved = time.monotonic()
    group.wait()  # for the best weights to be written
    kept = weights_file(folder, config.keep)
    if kept != last or group.shard:
        network = load_checkpoint(kept).model().to(device)
    network.eval()
    return network, progress


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A run while it trains: what its steps, validations and checkpoints share."""

    network: Transformer
    optimiser: torch.optim.Optimizer
    objective: Callable[..., Tensor]
    config: TrainingConfig
    factors: np.ndarray | None
    progress: Progress
    folder: Path
    identity: str
    device: str
    group: Processes

    def step(self, batch: Batch, position: Position, rate: float) -> float:
        """Take one optimiser step; return the mean loss per target token before it."""
        progress, group, config = self.progress, self.group, self.config
        tokens = (batch.target[:, 1:] != PAD).sum(1)
        for settings in self.optimiser.param_groups:
            settings["lr"] = rate
        total = float(tokens.sum()) / group.count  # what follows is averaged over processes
        value = 0.0
        for share in group.shares(batch, config.accumulate):
            source = torch.from_numpy(share.source).to(self.device)
            target = torch.from_numpy(share.target).to(self.device)
            inputs = source, target[:, :-1], target[:, 1:], config.label_smoothing
            factors: tuple[Tensor, ...] = ()
            if self.factors is not None:
                factors = (torch.from_numpy(self.factors[share.pair]).to(self.device),)
            with autocast(self.device, config.precision):
                loss = self.objective(*inputs, *factors)
            loss = loss / total
            value += group.mean(loss.detach())
            loss.backward()
        if not math.isfinite(value):
            raise self.diverged(
                f"the loss became {value} at step {progress.step + 1} (learning rate {rate:.3g})"
            )
        if config.clip_norm is not None:
            parameters = [p for s in self.optimiser.param_groups for p in s["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, config.clip_norm)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

        progress.step += 1
        progress.target_tokens += int(tokens.sum())
        for k in range(len(progress.pair_tokens)):
            here = batch.pair == k
            progress.pair_tokens[k] += int(tokens[here].sum())
            progress.pair_sentences[k] += int(here.sum())
        progress.window, progress.index = position.window, position.index
        return value

    def validate(
        self, validation: Mapping[str, EncodedPair], loss: float, rate: float
    ) -> dict[str, float]:
        """Add a point a pair to the learning curve, log it, and keep the weights if best."""
        progress = self.progress
        losses = {pair: cross_entropy(self.network, text) for pair, text in validation.items()}
        losses = self.group.of_first(losses)
        for pair, value in losses.items():
            if not math.isfinite(value):
                if self.group.count > 1 and not self.group.shard:
                    continue  # only this process validates; the next step's loss stops them all
                at = f"at step {progress.step}"
                raise self.diverged(f"the validation loss of {pair} became {value} {at}")
            point = {
                "step": progress.step,
                "target_tokens": progress.target_tokens,
                "pair": pair,
                "cross_entropy": value,
                "train_loss": loss,
                "seconds": round(progress.seconds, 1),
                "learning_rate": rate,
            }
            progress.curve.append(point)
            if self.group.first:
                self.folder.mkdir(parents=True, exist_ok=True)
                with (self.folder / LOG).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(point) + "\n")
        if self.config.keep == "best" and losses:
            mean = sum(losses.values()) / len(losses)
            if progress.best is None or mean < progress.best:
                progress.best = mean
                self.save(BEST, state=False)
        return losses

    def save(self, name: str, *, state: bool = True) -> None:
        """Write a checkpoint, with the optimiser's state or without."""
        save_checkpoint(
            self.folder / name, self.network, self.progress, identity=self.identity,
            optimiser=self.optimiser if state else None,
        )  # fmt: skip

    def check_finite(self) -> None:
        """Refuse to save weights that an overflowing gradient has ruined under a finite loss."""
        parts = [held(parameter) for parameter in self.network.parameters()]
        ruined = 1.0 - torch.stack([part.isfinite().all() for part in parts]).all().float()
        if self.group.mean(ruined) if self.group.shard else float(ruined):
            raise self.diverged(f"weights are no longer numbers after step {self.progress.step}")

    def diverged(self, what: str) -> TrainingDiverged:
        """What happened, what is left of the run, and what helps."""
        last = self.folder / LAST
        where = f"the last good checkpoint is {last}" if last.exists() else "none was saved yet"
        return TrainingDiverged(
            f"{what}; {where}; lower learning_rate, lengthen warmup_steps or set clip_norm"
        )


def _rate(config: TrainingConfig, schedule_start: int | None, progress: Progress) -> float:
    """Learning rate of the step that follows."""
    decay = config.decay(config.share_spent(progress.step, progress.target_tokens))
    if schedule_start is None:
        return decay * config.learning_rate
    return decay * config.rate(schedule_start + progress.step + 1)


def _decays(progress: Progress, config: TrainingConfig) -> bool:
    return config.decays(progress.step, progress.target_tokens)


def _change_weights(progress: Progress, config: TrainingConfig) -> bool:
    """Where the first weights have had their share, go to the next window, drawn by the mixture."""
    held = config.first_weights is not None and progress.changed is None
    if not held or config.draws_first(progress.step, progress.target_tokens):
        return False
    progress.window, progress.index = progress.window + (progress.index > 0), 0
    progress.changed = progress.window
    return True


def finished(progress: Progress, config: TrainingConfig) -> bool:
    """Whether the budget is spent, or as many validations as `stop_after` brought no gain."""
    return config.is_spent(progress.step, progress.target_tokens, progress.curve)


def how_far(progress: Progress, config: TrainingConfig) -> str:
    """How far a run is.

    >>> config = TrainingConfig(learning_rate=1, warmup_steps=1, batch_tokens=9, target_tokens=9000)
    >>> how_far(Progress(step=80, target_tokens=720), config)
    'step 80, 720 of 9,000 target tokens'
    """
    if config.steps is not None:
        return f"step {progress.step:,} of {config.steps:,}"
    return (
        f"step {progress.step:,}, {progress.target_tokens:,} of {config.target_tokens:,} "
        "target tokens"
    )


def _pace(
    config: TrainingConfig, progress: Progress, before: tuple[int, int], seconds: float
) -> str:
    """Target tokens a second since this call began at `before`, and how long the rest takes.

    >>> config = TrainingConfig(learning_rate=1, warmup_steps=1, batch_tokens=9, target_tokens=9000)
    >>> _pace(config, Progress(step=800, target_tokens=7000), (200, 1000), 60.0)
    '100 tokens/s, 00:20 left'
    """
    share = config.share_spent(progress.step, progress.target_tokens)
    left = max(0.0, 1 - share) * seconds / (share - config.share_spent(*before))
    rate = (progress.target_tokens - before[1]) / seconds
    return f"{rate:,.0f} tokens/s, {tqdm.format_interval(round(left))} left"


def _tell(label: str, line: str) -> None:
    print(f"{label}: {line}", file=sys.stderr, flush=True)


def _own_checkpoint(path: Path, network: Transformer, identity: str) -> Checkpoint:
    """The run's checkpoint, when the network has its weights."""
    checkpoint = load_checkpoint(path)
    if checkpoint.identity != identity or checkpoint.config != network.config:
        raise InputError(
            f"{path} belongs to another run (model, data or settings); choose another folder"
        )
    network.load_state_dict(checkpoint.weights)
    return checkpoint


def _resume(path: Path, checkpoint: Checkpoint, optimiser: torch.optim.Optimizer) -> None:
    """Give the optimiser, and what draws dropout, the states of the checkpoint."""
    groups = optimiser.state_dict()["param_groups"]
    missing = {i for group in groups for i in group["params"]} - checkpoint.optimiser.keys()
    if missing:
        raise damaged(path, f"lacks the optimiser's state of parameter {min(missing)}")
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state = {
        i: {k: placed(v, parameters[i]) if i >= 0 else v for k, v in saved.items()}
        for i, saved in checkpoint.optimiser.items()
    }
    optimiser.load_state_dict({"state": state, "param_groups": groups})
    if checkpoint.random_state is not None:
        torch.set_rng_state(checkpoint.random_state)


def _restore_log(path: Path, progress: Progress) -> None:
    """Cut the log to the points of the checkpoint: a resumed run writes the later ones again."""
    content = "".join(json.dumps(point) + "\n" for point in progress.curve).encode()
    if path.exists() and path.read_bytes() != content:
        write_bytes(path, content)
