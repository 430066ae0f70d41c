"""Cross-entropy of given translations under a model."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mnmt_repro.architecture import SLICE_TOKENS
from mnmt_repro.corpora.batches import EncodedPair, evaluation_batches
from mnmt_repro.corpora.vocabulary import PAD
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer


@torch.no_grad()
def sentence_losses(
    model: Transformer, pair: EncodedPair, *, batch_tokens: int = 4096
) -> tuple[np.ndarray, np.ndarray]:
    """Nats and target tokens of every sentence of `pair`, end-of-sentence included.

    Returns
    -------
    nats : (sentences,) float64
    tokens : (sentences,) int64
        The cross-entropy per target token of any group of sentences is the sum of its nats over
        the sum of its tokens.
    """
    device = model.output_weight.device
    nats = np.zeros(pair.size)
    was_training = model.training
    model.eval()
    for rows, batch in evaluation_batches(pair.source, pair.target, batch_tokens):
        source = torch.from_numpy(batch.source).to(device)
        target = torch.from_numpy(batch.target).to(device)
        hidden, real = model.hidden(source, target[:, :-1]), target[:, 1:] != PAD
        losses = _token_losses(hidden[real], model.output_weight, target[:, 1:][real])
        owner = torch.arange(len(rows), device=device)[:, None].expand_as(real)[real]
        summed = torch.zeros(len(rows), dtype=torch.float64, device=device)
        nats[rows] = summed.index_add_(0, owner, losses.double()).cpu().numpy()
    model.train(was_training)
    return nats, pair.target.lengths - 1


def check_finite(losses: np.ndarray | float, where: str) -> None:
    """Refuse losses that are not numbers: no table may hold them, and no test would notice.

    Raises
    ------
    InputError
        With `where`, which names the model or the direction.
    """
    if not np.isfinite(losses).all():
        raise InputError(
            f"{where}: the loss is not a number, as weights overflow; take an earlier checkpoint"
        )


def _token_losses(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    parts = []
    for h, y in zip(hidden.split(SLICE_TOKENS), targets.split(SLICE_TOKENS), strict=True):
        scores = h @ weight.T
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        parts.append(scores.logsumexp(1) - scores.gather(1, y[:, None])[:, 0])
    return torch.cat(parts)


def cross_entropy(model: Transformer, pair: EncodedPair) -> float:
    """Mean nats per target token over all of `pair`."""
    nats, tokens = sentence_losses(model, pair)
    return float(nats.sum() / tokens.sum())
