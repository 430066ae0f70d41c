"""Shapes of the models: their configuration, parameter counts and FLOPs. No torch is needed here.

`ModelConfig.t5` is Paper A's model (T5 v1.1), `ModelConfig.fairseq` is Paper B's (the standard
fairseq Transformer); `mnmt_repro.model` builds either.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import Count, Few, Part, check

SLICE_TOKENS = 256  # tokens whose scores over the vocabulary are held at one time


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Every choice that decides a model's parameters and what it computes.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.
    """

    vocab_size: Count  # pieces, special ids and language tags included
    d_model: Count  # width of the residual stream
    d_ff: Count  # width of the feed-forward layer
    heads: Few  # attention heads in each attention
    head_dim: Count  # width of one head; heads * head_dim need not equal d_model
    encoder_layers: Few
    decoder_layers: Few
    feed_forward: Literal["gated-gelu", "relu"] = "gated-gelu"  # three matrices, or two
    norm: Literal["rms", "layer"] = "rms"  # always before each block (pre-LN), and at the end
    positions: Literal["relative", "sinusoidal"] = "relative"
    relative_buckets: Count = 32  # one table of (buckets, heads) for each stack
    relative_max_distance: Count = 128
    bias: bool = False  # biases in the linear maps
    scale_attention: bool = False  # divide scores by sqrt(head_dim); T5 does not
    scale_embedding: bool = False  # multiply embeddings by sqrt(d_model)
    tie_output: bool = False  # output projection = input embedding
    dropout: Part = 0.0
    attention_dropout: Part = 0.0

    def __post_init__(self) -> None:
        check(self, "model")
        if self.positions == "sinusoidal" and (self.d_model % 2 or self.d_model < 4):
            raise InputError(
                f"sinusoidal positions need an even model d_model of at least 4, got {self.d_model}"
            )
        if self.relative_buckets < 4 or self.relative_max_distance <= self.relative_buckets / 2:
            raise InputError(
                "model relative_buckets must be at least 4, and relative_max_distance above half "
                f"of it, got {self.relative_buckets} and {self.relative_max_distance}"
            )

    @classmethod
    def t5(
        cls,
        *,
        vocab_size: int,
        d_model: int,
        layers: int,
        heads: int,
        d_ff: int | None = None,
        head_dim: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> ModelConfig:
        """Paper A's shape: T5 v1.1 with `layers` in the encoder and as many in the decoder."""
        return cls(
            vocab_size=vocab_size,
            d_model=d_model,
            d_ff=4 * d_model if d_ff is None else d_ff,
            heads=heads,
            head_dim=d_model // heads if head_dim is None else head_dim,
            encoder_layers=layers,
            decoder_layers=layers,
            dropout=dropout,
            attention_dropout=attention_dropout,
        )

    @classmethod
    def fairseq(cls, **settings: Any) -> ModelConfig:
        """Paper B's shape: a fairseq Transformer, pre-LN, one table for input and output.

        Parameters
        ----------
        settings
            As of `t5`.
        """
        return replace(
            cls.t5(**settings),
            feed_forward="relu",
            norm="layer",
            positions="sinusoidal",
            bias=True,
            scale_attention=True,
            scale_embedding=True,
            tie_output=True,
        )

    @property
    def attention_width(self) -> int:
        """The width of queries, keys and values together, which is heads * head_dim."""
        return self.heads * self.head_dim


def parameter_counts(config: ModelConfig) -> dict[str, int]:
    """Count parameters by group, from the shapes alone.

    Returns
    -------
    dict
        `encoder` and `decoder` (layers, final norm and relative-position table of each stack),
        `input_embedding`, `output_projection` (0 when tied), `non_embedding` = encoder + decoder
        (the N of Paper A's laws) and `total`.

    Examples
    --------
    >>> first = parameter_counts(PAPER_A[0].config)
    >>> first["non_embedding"], first["total"] - first["non_embedding"] == 2 * 128_000 * 512
    (18881024, True)
    """
    d, inner, ff = config.d_model, config.attention_width, config.d_ff
    bias = int(config.bias)
    norm = d if config.norm == "rms" else 2 * d
    attention = 4 * d * inner + bias * (3 * inner + d)
    matrices = 3 if config.feed_forward == "gated-gelu" else 2
    feed_forward = matrices * d * ff + bias * ((matrices - 1) * ff + d)
    positions = config.relative_buckets * config.heads if config.positions == "relative" else 0
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    encoder = config.encoder_layers * encoder_layer + norm + positions
    decoder = config.decoder_layers * decoder_layer + norm + positions
    embedding = config.vocab_size * d
    output = 0 if config.tie_output else embedding
    return {
        "encoder": encoder,
        "decoder": decoder,
        "input_embedding": embedding,
        "output_projection": output,
        "non_embedding": encoder + decoder,
        "total": encoder + decoder + embedding + output,
    }


def flops_per_target_token(
    config: ModelConfig, *, source_length: float, target_length: float
) -> float:
    """Training FLOPs per target token (forward and backward).

    Convention: a multiply and an add are 2 FLOPs, the backward pass costs twice the forward one, so
    each weight that a token meets costs 6, also scales of norms and tables of relative positions;
    embedding look-ups cost nothing, the output projection does count; attention scores and mixing
    cost 2 * 2 * width * keys a query and layer, counted in full (causal masking is not credited);
    softmax and activations are left out.

    Parameters
    ----------
    source_length, target_length
        Mean tokens a sentence, end-of-sentence included.
    """
    counts = parameter_counts(config)
    d, inner = config.d_model, config.attention_width
    # Cross-attention's keys and values are computed once a source token, not once a target token.
    cross_kv = config.decoder_layers * 2 * d * inner
    per_sentence = source_length * (counts["encoder"] + cross_kv)
    per_sentence += target_length * (counts["decoder"] - cross_kv + config.vocab_size * d)
    scores = config.encoder_layers * source_length**2
    scores += config.decoder_layers * (target_length**2 + target_length * source_length)
    per_sentence += 2 * inner * scores
    return 6.0 * per_sentence / target_length


@dataclass(frozen=True, kw_only=True)
class PublishedSize:
    """One row of Paper A's Appendix A: a shape and the two counts printed beside it."""

    config: ModelConfig
    published_total: int
    published_non_embedding: int


PAPER_A = tuple(
    PublishedSize(
        config=ModelConfig.t5(vocab_size=128_000, layers=layers, d_model=d_model, heads=heads),
        published_total=total,
        published_non_embedding=corrected,
    )
    for layers, d_model, heads, total, corrected in (
        (2, 512, 8, 149_953_024, 18_881_024),
        (3, 768, 12, 260_322_816, 63_714_816),
        (6, 768, 12, 324_035_328, 127_427_328),
        (9, 768, 12, 387_747_840, 191_139_840),
        (9, 1024, 16, 601_931_776, 339_787_776),
        (12, 1024, 16, 715_193_344, 453_049_344),
        (12, 1280, 16, 1_035_876_864, 707_869_184),
        (12, 1536, 16, 1_412_528_128, 1_019_312_128),
    )
)
"""The eight sizes of Paper A, Appendix A. There, d_ff is 4 d_model and head_dim d_model / heads."""


def training_memory(
    config: ModelConfig,
    *,
    batch_tokens: int,
    sentence_tokens: int,
    optimiser: str,
    sliced: bool = True,
    recompute: bool = False,
    shards: int = 1,
) -> int:
    """Bytes that training takes, about: what stays and what one step's gradient needs.

    Weights, gradients and the update are three numbers a parameter, AdamW's moments two more.
    What the backward pass needs of the forward one grows with the tokens of a step. Programs and
    text come on top.

    Parameters
    ----------
    batch_tokens
        Target tokens of a step, and about as many source tokens.
    sentence_tokens
        Of the longest sentence, to which a batch may be padded.
    sliced
        Whether scores over the vocabulary are held of a slice of tokens at a time, as on a CPU, or
        of all of them, as on a GPU.
    recompute
        Whether layers are computed again in the backward pass, one at a time.
    shards
        Processes that the model is split over.

    Examples
    --------
    Paper A's first size on a 32nd of its batches of 500k tokens, on a CPU and on a GPU:

    >>> step = {"batch_tokens": 500_000 // 32, "sentence_tokens": 64, "optimiser": "adafactor"}
    >>> for sliced in (True, False):
    ...     needed = training_memory(PAPER_A[0].config, **step, sliced=sliced)
    ...     print(f"{needed / 2**30:.1f} GiB")
    6.6 GiB
    28.6 GiB
    """
    d, inner, heads = config.d_model, config.attention_width, config.heads
    hidden = (6 if config.feed_forward == "gated-gelu" else 3) * config.d_ff
    scores = 2 * heads * sentence_tokens * (config.positions == "relative")  # else never held
    encoder = 4 * d + 4 * inner + hidden + scores
    decoder = 6 * d + 8 * inner + hidden + 2 * scores
    if recompute:  # the inputs of layers, of which attention to the source has its keys and values
        layers = (config.encoder_layers + config.decoder_layers) * d
        layers += config.decoder_layers * 2 * inner + max(encoder, decoder)
    else:
        layers = config.encoder_layers * encoder + config.decoder_layers * decoder
    parameters = parameter_counts(config)["total"] * (5 if optimiser == "adamw" else 3) // shards
    slices = 3 * min(batch_tokens, SLICE_TOKENS if sliced else batch_tokens) * config.vocab_size
    return 4 * (parameters + batch_tokens * layers + slices)


def machine_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or the least of its limits."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([there, *memory_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def memory_limits(groups: Path, tree: Path) -> Iterator[int]:
    """Limits in bytes that a container or a cluster job sets by Linux's control groups (version 2).

    A group is bounded by those around it, too. What cannot be read sets no limit.

    Parameters
    ----------
    groups
        Says ``0::/PATH`` of the process's group.
    tree
        Holds a folder a group, with `memory.max`.
    """
    with contextlib.suppress(OSError):
        own = Path(groups.read_text(encoding="utf-8").partition("0::/")[2].strip())
        for group in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):  # such as "max"
                yield int((tree / group / "memory.max").read_text(encoding="utf-8"))
