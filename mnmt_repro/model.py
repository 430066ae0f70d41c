"""The encoder-decoder Transformer of both papers, in one file.

- Paper A: T5 v1.1 (`ModelConfig.t5`): no biases, RMSNorm, gated-GELU feed-forward, relative
  positions with 32 buckets a stack, one input embedding for both stacks, a separate output
  projection, attention scores not divided by sqrt(head_dim).
- Paper B: fairseq (`ModelConfig.fairseq`): LayerNorm, biases, two-matrix ReLU feed-forward,
  sinusoidal positions, one table for input and output.
- Pre-LN throughout; attention through `scaled_dot_product_attention`; keys and values are cached
  when decoding; on a CPU the loss never holds the logits of a whole batch at once.

Shapes: B sentences, S source tokens, T target tokens, d = d_model, H heads, V pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mnmt_repro.architecture import SLICE_TOKENS, ModelConfig
from mnmt_repro.corpora.vocabulary import PAD

TABLES = ("embedding.weight", "output.weight")
"""Tensors of a model that have a row for each piece."""


def _norm(config: ModelConfig) -> nn.Module:
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, eps=1e-6)  # T5's LayerNorm: no mean and no bias
    return nn.LayerNorm(config.d_model)


class FeedForward(nn.Module):
    """Gated GELU, `out(gelu(gate(x)) * up(x))`, or ReLU, `out(relu(up(x)))`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated = config.feed_forward == "gated-gelu"
        if self.gated:
            self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        if self.gated:
            hidden = F.gelu(self.gate(x), approximate="tanh") * self.up(x)
        else:
            hidden = F.relu(self.up(x))
        return self.out(F.dropout(hidden, self.dropout, self.training))


class Attention(nn.Module):
    """Multi-head attention; keys and values are projected apart, so that they can be cached."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, inner = config.d_model, config.attention_width
        self.heads = config.heads
        self.scale = config.head_dim**-0.5 if config.scale_attention else 1.0
        self.dropout = config.attention_dropout
        self.q = nn.Linear(d, inner, bias=config.bias)
        self.k = nn.Linear(d, inner, bias=config.bias)
        self.v = nn.Linear(d, inner, bias=config.bias)
        self.o = nn.Linear(inner, d, bias=config.bias)

    def _split(self, x: Tensor) -> Tensor:  # (B, T, H * w) -> (B, H, T, w)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Project `x` (B, S, d) to keys and values, each (B, H, S, head_dim)."""
        return self._split(self.k(x)), self._split(self.v(x))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend from `x` (B, T, d); `mask` is boolean or additive, broadcast to (B, H, T, S)."""
        mixed = F.scaled_dot_product_attention(
            self._split(self.q(x)),
            keys,
            values,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.scale,
        )
        return self.o(mixed.transpose(1, 2).flatten(-2))


class RelativePositions(nn.Module):
    """T5's relative-position bias: one learned number for each (bucket, head)."""

    def __init__(self, config: ModelConfig, *, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.buckets = config.relative_buckets
        self.max_distance = config.relative_max_distance
        self.table = nn.Embedding(config.relative_buckets, config.heads)

    def bucket(self, offset: Tensor) -> Tensor:
        """Bucket of `offset` = key position - query position: exact when near, log-spaced when far.

        >>> layer = RelativePositions(ModelConfig.t5(vocab_size=8, d_model=8, layers=1, heads=2),
        ...                           bidirectional=False)
        >>> layer.bucket(torch.tensor([3, 0, -1, -15, -16, -200])).tolist()
        [0, 0, 1, 15, 16, 31]
        """
        buckets, base = self.buckets, torch.zeros_like(offset)
        if self.bidirectional:
            buckets //= 2
            base = (offset > 0).long() * buckets
            distance = offset.abs()
        else:
            distance = (-offset).clamp_min(0)
        exact = buckets // 2
        spread = math.log(self.max_distance / exact)
        far = torch.log(distance.clamp_min(1).float() / exact) / spread * (buckets - exact)
        far = (exact + far.long()).clamp_max(buckets - 1)
        return base + torch.where(distance < exact, distance, far)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Bias (1, H, T, S) for query positions (T,) and key positions (S,)."""
        bias = self.table(self.bucket(keys[None, :] - queries[:, None]))
        return bias.permute(2, 0, 1)[None]


def sinusoidal_positions(positions: Tensor, width: int) -> Tensor:
    """fairseq's table: all sines, then all cosines; positions count from 2 (after padding's 1).

    Parameters
    ----------
    positions : (T,) of 0, 1, 2, ...

    Returns
    -------
    (T, width)
    """
    half = width // 2
    rates = torch.exp(
        torch.arange(half, dtype=torch.float32, device=positions.device)
        * -(math.log(10_000) / (half - 1))
    )
    angles = (positions.float() + 2)[:, None] * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each normed before and added to the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm, self.attention = _norm(config), Attention(config)
        self.feed_forward_norm, self.feed_forward = _norm(config), FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, *self.attention.keys_values(y), mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm, self.attention = _norm(config), Attention(config)
        self.cross_norm, self.cross = _norm(config), Attention(config)
        self.feed_forward_norm, self.feed_forward = _norm(config), FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory: tuple[Tensor, Tensor],
        memory_mask: Tensor,
        past: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the new stream, of the shape of `x`, and all keys and values so far.

        Where `x` has several prefixes of each source, they share its keys and values.
        """
        y = self.attention_norm(x)
        keys, values = self.attention.keys_values(y)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        x = x + self.dropout(self.attention(y, keys, values, mask))
        y = self.cross_norm(x).reshape(len(memory[0]), -1, x.shape[-1])
        x = x + self.dropout(self.cross(y, *memory, memory_mask).view_as(x))
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x, (keys, values)


@dataclass
class DecoderCache:
    """What step-by-step decoding keeps: the sources' keys and values, and the prefixes', a layer.

    Each of the B sources may have several prefixes, which lie side by side: B * k rows in all.
    """

    memory: list[tuple[Tensor, Tensor]]  # of B sources
    memory_mask: Tensor
    past: list[tuple[Tensor, Tensor] | None] = field(default_factory=list)  # of B * k prefixes
    length: int = 0

    def keep(self, prefixes: Tensor, sources: Tensor) -> None:
        """Keep the given rows, in that order: prefixes that survive, sources not finished."""
        if len(sources) < len(self.memory_mask):
            self.memory = [_rows(both, sources) for both in self.memory]
            self.memory_mask = self.memory_mask[sources]
        self.past = [None if both is None else _rows(both, prefixes) for both in self.past]


def _rows(both: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    return both[0].index_select(0, rows), both[1].index_select(0, rows)  # faster than indexing


class Transformer(nn.Module):
    """An encoder-decoder for translation.

    Parameters
    ----------
    config : ModelConfig
    seed : int
        Decides the initial weights, whatever the global random state.

    Attributes
    ----------
    recompute : bool
        Keep only the input of each layer for the backward pass, which computes the layer again:
        a third more work, less memory, and the same gradients to the bit.
    """

    def __init__(self, config: ModelConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config, self.recompute = config, False
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.encoder_norm, self.decoder_norm = _norm(config), _norm(config)
        if config.positions == "relative":
            self.encoder_positions = RelativePositions(config, bidirectional=True)
            self.decoder_positions = RelativePositions(config, bidirectional=False)
        if not config.tie_output:
            self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self._initialise(torch.Generator().manual_seed(seed))

    @property
    def output_weight(self) -> Tensor:
        """The output projection, (V, d); the input embedding where the two are tied."""
        return self.embedding.weight if self.config.tie_output else self.output.weight

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        """T5: normal, each map's std 1/sqrt(fan-in) (queries also over sqrt(head_dim)), tables 1.

        fairseq: Xavier-uniform maps, zero biases, tables of std 1/sqrt(d). Norms start at one.
        """
        t5 = not self.config.scale_attention
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            elif name == "embedding.weight":
                std = 1.0 if t5 else self.config.d_model**-0.5
                parameter.normal_(0.0, std, generator=generator)
            elif name.endswith("positions.table.weight"):
                parameter.normal_(0.0, self.config.d_model**-0.5, generator=generator)
            elif t5:
                std = parameter.shape[1] ** -0.5
                if name.endswith("q.weight"):
                    std *= self.config.head_dim**-0.5
                parameter.normal_(0.0, std, generator=generator)
            else:
                bound = math.sqrt(6.0 / sum(parameter.shape))
                parameter.uniform_(-bound, bound, generator=generator)

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:  # (B, T) -> (B, T, d)
        x = self.embedding(ids)
        if self.config.scale_embedding:
            x = x * math.sqrt(self.config.d_model)
        if self.config.positions == "sinusoidal":
            x = x + sinusoidal_positions(positions, self.config.d_model).to(x.dtype)
        return self.dropout(x)

    def _mask(self, allowed: Tensor, stack: str, queries: Tensor, keys: Tensor) -> Tensor:
        """Fold positions and what may be attended to, (B, 1, T or 1, S), into one mask."""
        if self.config.positions == "sinusoidal":
            return allowed
        bias = getattr(self, f"{stack}_positions")(queries, keys)
        return bias.masked_fill(~allowed, -math.inf)

    def _through(self, layer: nn.Module, *inputs: Any) -> Any:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encode `source` (B, S), padded with 0 at the end.

        Returns
        -------
        memory (B, S, d) and its mask (B, 1, 1, S), true at real tokens.
        """
        real = (source != PAD)[:, None, None, :]
        positions = torch.arange(source.shape[1], device=source.device)
        x = self._embed(source, positions)
        mask = self._mask(real, "encoder", positions, positions)
        for layer in self.encoder:
            x = self._through(layer, x, mask)
        return self.dropout(self.encoder_norm(x)), real

    def start(self, memory: Tensor, memory_mask: Tensor) -> DecoderCache:
        """Project the source once for all decoder layers, ready for `decode`."""
        return DecoderCache(
            memory=[cast(DecoderLayer, layer).cross.keys_values(memory) for layer in self.decoder],
            memory_mask=memory_mask,
            past=[None] * len(self.decoder),
        )

    def decode(self, target: Tensor, cache: DecoderCache) -> Tensor:
        """Run the decoder over the next tokens, `target` (B, T); `cache` grows by T positions.

        Returns
        -------
        hidden states (B, T, d); `logits` turns them into scores.
        """
        keys = torch.arange(cache.length + target.shape[1], device=target.device)
        queries = keys[cache.length :]
        causal = (keys[None, :] <= queries[:, None])[None, None]
        mask = self._mask(causal, "decoder", queries, keys)
        x = self._embed(target, queries)
        for i, layer in enumerate(self.decoder):
            context = (mask, cache.memory[i], cache.memory_mask, cache.past[i])
            x, cache.past[i] = self._through(layer, x, *context)
        cache.length += target.shape[1]
        return self.dropout(self.decoder_norm(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next piece, (B, T, V), from hidden states (B, T, d)."""
        return F.linear(hidden, self.output_weight)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Logits (B, T, V) for a whole batch; `target_in` (B, T) starts with the start token."""
        return self.logits(self.hidden(source, target_in))

    def hidden(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Decoder states (B, T, d) for a whole batch."""
        return self.decode(target_in, self.start(*self.encode(source)))

    def loss(
        self,
        source: Tensor,
        target_in: Tensor,
        target_out: Tensor,
        label_smoothing: float = 0.0,
        factors: Tensor | None = None,
    ) -> Tensor:
        """Summed cross-entropy in nats over the tokens of `target_out` (B, T) that are not 0.

        Each sentence's is multiplied by its factor, of `factors` (B,), where they are given.
        """
        hidden = self.hidden(source, target_in)

        def of_tokens(chosen: Tensor) -> Tensor:
            return linear_cross_entropy(
                hidden[chosen], self.output_weight, target_out[chosen], label_smoothing
            )

        return weighted_loss(of_tokens, target_out != PAD, factors)


def weighted_loss(
    of_tokens: Callable[[Tensor], Tensor], real: Tensor, factors: Tensor | None
) -> Tensor:
    """A batch's loss from that of chosen tokens, one call for each distinct factor.

    Parameters
    ----------
    of_tokens
        Gives the summed loss of the tokens that a mask (B, T) chooses.
    real
        Mask of the tokens that count.
    factors
        Factor of each sentence (B,), few of them distinct; None: all are 1.
    """
    if factors is None:
        return of_tokens(real)
    total = factors.new_zeros(())
    for factor in factors.unique():
        total = total + factor * of_tokens(real & (factors == factor)[:, None])
    return total


def autocast(device: str, precision: str) -> torch.autocast:
    """Context in which products are taken in a precision, ``float32`` or ``bfloat16``."""
    lower = precision == "bfloat16"
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=lower)


class LinearCrossEntropy(torch.autograd.Function):
    """Cross-entropy of `hidden @ weight.T`, a slice of tokens at a time.

    The logits of a whole batch are the largest tensor of a small model by far; taken in slices
    that stay in cache, with the gradient formed in the same pass, training is about twice as fast.
    Products are laid out with the vocabulary as the long last axis, which suits narrow models.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(
        ctx: Any,
        hidden: Tensor,  # (n, d)
        weight: Tensor,  # (V, d)
        targets: Tensor,  # (n,)
        label_smoothing: float,
    ) -> Tensor:
        total = hidden.new_zeros(())
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight.T)
        by_width = weight.T.contiguous()  # (d, V)
        vocab, keep = weight.shape[0], 1.0 - label_smoothing
        for start in range(0, hidden.shape[0], SLICE_TOKENS):
            h = hidden[start : start + SLICE_TOKENS]
            y = targets[start : start + SLICE_TOKENS, None]
            scores = h @ by_width
            gradient = scores.softmax(1)
            # The normaliser follows from the likeliest piece, so that exp is taken only once.
            log_norm = scores.amax(1, keepdim=True) - gradient.amax(1, keepdim=True).log()
            total = total + (log_norm - keep * scores.gather(1, y)).sum()
            if label_smoothing:
                total = total - label_smoothing / vocab * scores.sum()
                gradient.sub_(label_smoothing / vocab)
            gradient.scatter_add_(1, y, torch.full_like(y, -keep, dtype=scores.dtype))
            grad_hidden[start : start + SLICE_TOKENS] = (by_width @ gradient.T).T
            grad_weight.addmm_(h.T, gradient)
        ctx.save_for_backward(grad_hidden, grad_weight.T)
        return total

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grads[0] * grad_hidden, grads[0] * grad_weight, None, None


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Summed cross-entropy in nats of `softmax(hidden @ weight.T)` against `targets`.

    Parameters
    ----------
    hidden : (n, d)
    weight : (V, d)
    targets : (n,) piece ids
    label_smoothing
        Share of probability spread evenly over all V pieces, as in `F.cross_entropy`.

    Returns
    -------
    scalar tensor
    """
    if hidden.is_cuda:  # one large product is what a GPU wants
        scores = F.linear(hidden, weight).float()
        return F.cross_entropy(scores, targets, reduction="sum", label_smoothing=label_smoothing)
    return LinearCrossEntropy.apply(hidden, weight, targets, label_smoothing)
