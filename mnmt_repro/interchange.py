"""Weights of Hugging Face models in our model: T5 v1.1 (Paper A's shape), M2M-100 (Paper B's).

`transformers` is not needed: the functions take what its models can give, `config.to_dict()` and
`state_dict()`. `training.checkpoint.Checkpoint.of` makes of a model what `upgrading.recipe` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer

M2M100_SPECIAL = (1, 2, 3, 0)
"""M2M-100's ids of padding, end, unknown and start, which are our ids 0, 1, 2 and 3."""

_T5_BLOCKS = {  # in the order of a decoder layer: our name, then theirs with the names of its maps
    "attention": ("SelfAttention", {"q": "q", "k": "k", "v": "v", "o": "o"}),
    "cross": ("EncDecAttention", {"q": "q", "k": "k", "v": "v", "o": "o"}),
    "feed_forward": ("DenseReluDense", {"gate": "wi_0", "up": "wi_1", "out": "wo"}),
}


def from_t5(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Transformer:
    """Our model with the weights of a `T5ForConditionalGeneration` of version 1.1.

    Ids are the same in both (padding 0, end 1); T5 starts its decoder with padding, id 0.

    Raises
    ------
    InputError
        When the model is not T5 v1.1, or a weight is missing or of another shape.
    """
    _require(config, "feed_forward_proj", "gated-gelu")
    _require(config, "layer_norm_epsilon", 1e-6)
    # transformers >= 5 says that every T5 is tied, and keeps what v1.1 differs in under this name.
    if config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True)):
        raise InputError("this is the first T5, which scales its outputs; only v1.1 can be loaded")
    shape = ModelConfig(
        vocab_size=config["vocab_size"],
        d_model=config["d_model"],
        d_ff=config["d_ff"],
        heads=config["num_heads"],
        head_dim=config["d_kv"],
        encoder_layers=config["num_layers"],
        decoder_layers=config.get("num_decoder_layers") or config["num_layers"],
        relative_buckets=config.get("relative_attention_num_buckets", 32),
        relative_max_distance=config.get("relative_attention_max_distance", 128),
        dropout=config["dropout_rate"],
        attention_dropout=config["dropout_rate"],
    )
    names = {"embedding": "shared", "output": "lm_head"}
    for stack, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        names[f"{stack}_norm"] = f"{stack}.final_layer_norm"
        names[f"{stack}_positions.table"] = (
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"
        )
        blocks = [block for block in _T5_BLOCKS if (stack, block) != ("encoder", "cross")]
        for i in range(layers):
            for j, block in enumerate(blocks):
                ours, theirs = f"{stack}.{i}.{block}", f"{stack}.block.{i}.layer.{j}"
                names[f"{ours}_norm"] = f"{theirs}.layer_norm"
                called, maps = _T5_BLOCKS[block]
                names |= {f"{ours}.{a}": f"{theirs}.{called}.{b}" for a, b in maps.items()}
    if "lm_head.weight" not in weights:  # saved without, as equal to the input embedding
        names["output"] = "shared"
    return _fill(shape, {f"{a}.weight": f"{b}.weight" for a, b in names.items()}, weights)


def from_m2m100(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Transformer:
    """Our model with the weights of an `M2M100ForConditionalGeneration`.

    The two number their special pieces differently; the embedding's first four rows are put in our
    order, and `m2m100_ids` turns our ids into theirs. M2M-100 starts its decoder with the end of
    sentence; the target's language tag follows.

    Raises
    ------
    InputError
        When the model computes something else, or a weight is missing or of another shape.
    """
    _require(config, "activation_function", "relu")
    _require(config, "tie_word_embeddings", True)
    _require(config, "pad_token_id", M2M100_SPECIAL[0])
    _require(config, "eos_token_id", M2M100_SPECIAL[1])
    _require(config, "bos_token_id", M2M100_SPECIAL[3])
    for same in ("ffn_dim", "attention_heads"):
        _require(config, f"decoder_{same}", config[f"encoder_{same}"])
    width, heads = config["d_model"], config["encoder_attention_heads"]
    shape = ModelConfig(
        vocab_size=config["vocab_size"],
        d_model=width,
        d_ff=config["encoder_ffn_dim"],
        heads=heads,
        head_dim=width // heads,
        encoder_layers=config["encoder_layers"],
        decoder_layers=config["decoder_layers"],
        feed_forward="relu",
        norm="layer",
        positions="sinusoidal",
        bias=True,
        scale_attention=True,
        scale_embedding=config["scale_embedding"],
        tie_output=True,
        dropout=config["dropout"],
        attention_dropout=config["attention_dropout"],
    )
    names = {"embedding.weight": "model.shared.weight"}
    maps = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    for stack, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        pairs = {f"{stack}_norm": "layer_norm"}
        blocks = {"attention": "self_attn"}
        if stack == "decoder":
            blocks["cross"] = "encoder_attn"
        for i in range(layers):
            ours, theirs = f"{stack}.{i}", f"layers.{i}"
            for a, b in blocks.items():
                pairs[f"{ours}.{a}_norm"] = f"{theirs}.{b}_layer_norm"
                pairs |= {f"{ours}.{a}.{m}": f"{theirs}.{b}.{n}" for m, n in maps.items()}
            pairs[f"{ours}.feed_forward_norm"] = f"{theirs}.final_layer_norm"
            pairs[f"{ours}.feed_forward.up"] = f"{theirs}.fc1"
            pairs[f"{ours}.feed_forward.out"] = f"{theirs}.fc2"
        for ours, theirs in pairs.items():
            for kind in ("weight", "bias"):
                names[f"{ours}.{kind}"] = f"model.{stack}.{theirs}.{kind}"
    model = _fill(shape, names, weights)
    with torch.no_grad():
        table = model.embedding.weight
        table.copy_(table[m2m100_ids(torch.arange(len(table)))])
    return model


def m2m100_ids(ids: Tensor) -> Tensor:
    """M2M-100's ids of pieces that have the ids `ids` in our model.

    >>> m2m100_ids(torch.tensor([0, 1, 2, 3, 4])).tolist()
    [1, 2, 3, 0, 4]
    """
    special = torch.tensor(M2M100_SPECIAL, device=ids.device)
    return torch.where(ids < len(special), special[ids.clamp_max(len(special) - 1)], ids)


def _require(config: Mapping[str, Any], field: str, value: object) -> None:
    if config.get(field) != value:
        raise InputError(f"the model's {field} is {config.get(field)}, ours computes {value}")


def _fill(
    shape: ModelConfig, names: Mapping[str, str], weights: Mapping[str, Tensor]
) -> Transformer:
    """Build a model whose parameter `a` is the weight `names[a]`."""
    if missing := [name for name in names.values() if name not in weights]:
        raise InputError(f"the weight {missing[0]} is missing")
    model = Transformer(shape)
    try:
        model.load_state_dict({ours: weights[theirs] for ours, theirs in names.items()})
    except RuntimeError as error:
        raise InputError(f"the weights do not fit their configuration: {error}") from error
    return model
