"""Weights of Hugging Face models and of ours: the same tensors under other names.

Two shapes of ours are two of theirs. T5 v1.1 is Paper A's (mT5 and MADLAD-400 are of this shape,
too), M2M-100 is Paper B's (NLLB-200 without experts is of this shape, too). Only names differ, and
the order of the first rows of the tables. `transformers` is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.vocabulary import BOS, EOS, PAD
from mnmt_repro.errors import InputError
from mnmt_repro.model import TABLES, Transformer
from mnmt_repro.training.checkpoint import check_shapes, damaged
from mnmt_repro.typed_config import Count, Few, FieldError, Part, convert, place, shown

Family = Literal["t5", "mt5", "m2m_100"]
"""`model_type` of a configuration that can be read. MADLAD-400 is t5, NLLB-200 is m2m_100."""

M2M100_SPECIAL = (1, 2, 3, 0)
"""M2M-100's ids of padding, end, unknown and start, which are our ids 0, 1, 2 and 3."""

_EMBEDDING = {  # the table under all its names; a file that ties them holds any one of them
    "t5": ("shared", "encoder.embed_tokens", "decoder.embed_tokens"),
    "m2m_100": (
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
        "lm_head",
    ),
}
_WITHOUT_USE = re.compile(
    r"model\.(en|de)coder\.(version|embed_positions\.weights)|"
    r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
)
"""Tensors that older files hold and `transformers` leaves out, too."""
OTHER, FLOATS = "take another model", "take the model in float32, float16 or bfloat16"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_T5_BLOCKS = {  # in the order of a decoder layer: our name, then theirs with the names of its maps
    "attention": ("SelfAttention", {"q": "q", "k": "k", "v": "v", "o": "o"}),
    "cross": ("EncDecAttention", {"q": "q", "k": "k", "v": "v", "o": "o"}),
    "feed_forward": ("DenseReluDense", {"gate": "wi_0", "up": "wi_1", "out": "wo"}),
}
_T5_SIZES = {  # our fields, and theirs
    "vocab_size": "vocab_size",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "heads": "num_heads",
    "head_dim": "d_kv",
    "encoder_layers": "num_layers",
    "decoder_layers": "num_decoder_layers",
    "relative_buckets": "relative_attention_num_buckets",
    "relative_max_distance": "relative_attention_max_distance",
}
_M2M100_SIZES = {  # theirs, and ours
    "vocab_size": "vocab_size",
    "d_model": "d_model",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "encoder_attention_heads": "heads",
    "decoder_attention_heads": "heads",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
}


@dataclass(frozen=True)
class Fields:
    """An object in a JSON file of a model, read strictly: errors name the file and the field."""

    values: Mapping[str, Any]
    file: str = "the configuration"

    def get(self, field: str, kind: Any, default: Any = None) -> Any:
        """The field as a value of that type; `default` where it is missing or null.

        Raises
        ------
        InputError
            When it is of another type, or missing without a default.
        """
        value = self.values.get(field)
        value = default if value is None else value
        if value is None:
            raise self.error(field, "is missing")
        return self.read(value, kind, field)

    def read(self, value: Any, kind: Any, *at: str | int) -> Any:
        """A value of the file, from under the keys `at`, as one of that type."""
        try:
            made = convert(value, kind, at)
            if isinstance(value, str) and not isinstance(made, str):
                raise FieldError(at, f"must be a number, got {shown(value)}")
        except FieldError as error:
            raise self.error(place(error.at), error.why) from error
        return made

    def require(self, field: str, value: object, default: object = None) -> None:
        """Refuse another value than the one that our model computes."""
        declared = self.get(field, type(value), default)
        if declared != value:
            raise self.error(field, f"is {declared!r}, and only {value!r} can be read", OTHER)

    def error(
        self, field: str, why: str, remedy: str = "put the original file there"
    ) -> InputError:
        """The error of a field."""
        return InputError(f"{self.file}: the field {field!r} {why}; {remedy}")


def family_of(config: Fields) -> Family:
    """Which family a configuration declares.

    Raises
    ------
    InputError
        When it is none that can be read.
    """
    kind = config.get("model_type", str)
    for family in ("t5", "mt5", "m2m_100"):
        if kind == family:
            return family
    raise config.error("model_type", f"is {kind!r}; t5, mt5 and m2m_100 can be read", OTHER)


def shape_of(config: Fields, family: Family) -> ModelConfig:
    """Our shape of the model that a configuration declares.

    Raises
    ------
    InputError
        When a field is missing, or the model computes something else than ours.
    """
    if config.values.get("quantization_config") is not None:
        raise config.error("quantization_config", "says that the weights are quantised", FLOATS)
    m2m100 = family == "m2m_100"
    make = ModelConfig.fairseq if m2m100 else ModelConfig.t5
    fields = _m2m100_fields(config) if m2m100 else _t5_fields(config, family)
    try:
        return replace(make(vocab_size=1, d_model=4, layers=1, heads=1), **fields)
    except InputError as error:
        raise InputError(f"{config.file}: {error}; put the original file there") from error


def _t5_fields(config: Fields, family: Family) -> dict[str, Any]:
    config.require("feed_forward_proj", "gated-gelu", "gated-gelu" if family == "mt5" else "relu")
    config.require("layer_norm_epsilon", 1e-6, 1e-6)
    # transformers >= 5 says that every T5 is tied, and keeps what v1.1 differs in under this name.
    # An mT5 never scales its outputs, whatever its configuration says about ties.
    tied = config.get("tie_word_embeddings", bool, True)
    if family == "t5" and config.get("scale_decoder_outputs", bool, tied):
        why = "is that of the first T5, which scales its outputs; only version 1.1 can be read"
        raise config.error("tie_word_embeddings", why, OTHER)
    usual: dict[str, int] = {"relative_buckets": 32, "relative_max_distance": 128}
    usual["decoder_layers"] = config.get("num_layers", Few)
    dropout = config.get("dropout_rate", Part, 0.1)
    return {
        **{ours: config.get(theirs, Count, usual.get(ours)) for ours, theirs in _T5_SIZES.items()},
        "dropout": dropout,
        "attention_dropout": dropout,
    }


def _m2m100_fields(config: Fields) -> dict[str, Any]:
    config.require("activation_function", "relu", "relu")
    config.require("tie_word_embeddings", True, True)
    for field, row in zip(("pad", "eos", "bos"), (1, 2, 0), strict=True):
        config.require(f"{field}_token_id", row, row)
    for same in ("ffn_dim", "attention_heads"):
        config.require(f"decoder_{same}", config.get(f"encoder_{same}", Count))
    sizes: dict[str, Any] = {o: config.get(theirs, Count) for theirs, o in _M2M100_SIZES.items()}
    width, heads = sizes["d_model"], sizes["heads"]
    if width % heads:
        raise config.error("d_model", f"is {width}, no multiple of {heads} heads")
    return {
        **sizes,
        "head_dim": width // heads,
        "dropout": config.get("dropout", Part, 0.1),
        "attention_dropout": config.get("attention_dropout", Part, 0.1),
        "scale_embedding": config.get("scale_embedding", bool, True),
    }


def names_of(shape: ModelConfig) -> dict[str, str]:
    """Our name of each tensor, and the name that a Hugging Face model of that shape gives it.

    Raises
    ------
    InputError
        When the shape is neither T5's nor M2M-100's.
    """
    return _m2m100_names(shape) if _is_m2m100(shape) else _t5_names(shape)


def _is_m2m100(shape: ModelConfig) -> bool:
    """Whether the shape is M2M-100's, or T5's."""
    m2m100 = ("relu", "layer", "sinusoidal", True, True, True)
    t5 = ("gated-gelu", "rms", "relative", False, False, False)
    choices = (
        shape.feed_forward, shape.norm, shape.positions, shape.bias, shape.scale_attention,
        shape.tie_output,
    )  # fmt: skip
    if choices == t5 and not shape.scale_embedding:
        return False
    if choices == m2m100 and shape.attention_width == shape.d_model:
        return True
    raise InputError(
        "the model has neither T5's shape (`train --arch t5`) nor M2M-100's (`--arch fairseq`)"
    )


def _t5_names(shape: ModelConfig) -> dict[str, str]:
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
    return {f"{a}.weight": f"{b}.weight" for a, b in names.items()}


def _m2m100_names(shape: ModelConfig) -> dict[str, str]:
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
    return names


class Renamed(Mapping[str, Tensor]):
    """Tensors of a Hugging Face model under our names, each read when it is asked for.

    Rows of the tables stay in their order. What is stored at half precision is read as float32.

    Parameters
    ----------
    weights
        Their names of all tensors.
    read
        The tensor of such a name.

    Raises
    ------
    InputError
        When one is missing, of another shape than the model's, quantised or left over, or two of
        one table differ.
    """

    def __init__(
        self,
        shape: ModelConfig,
        weights: Collection[str],
        read: Callable[[str], Tensor],
        where: str = "the weights",
    ) -> None:
        self._read, self._where = read, where
        self._names = names_of(shape)
        tables = _EMBEDDING["m2m_100" if shape.tie_output else "t5"]
        there = [f"{name}.weight" for name in tables if f"{name}.weight" in weights]
        self._names["embedding.weight"] = (there or [f"{tables[0]}.weight"])[0]
        if "output.weight" in self._names and "lm_head.weight" not in weights:
            # Saved without, as equal to the input embedding.
            self._names["output.weight"] = self._names["embedding.weight"]
        known = {*self._names.values(), *there}
        for name in sorted(set(weights) - known):
            if not _WITHOUT_USE.fullmatch(name):
                raise InputError(
                    f"{where}: the weight {name} has no place in the model of config.json; merge "
                    "an adapter (`merge_and_unload`), take quantised weights in float32, or mend it"
                )
        if missing := [name for name in self._names.values() if name not in weights]:
            raise damaged(where, f"the weight {missing[0]} is missing")
        check_shapes(shape, self, where)
        for other in there[1:]:
            if not torch.equal(read(there[0]), read(other)):
                raise InputError(
                    f"{where}: the weights {there[0]} and {other} differ; `tie_weights()` first"
                )

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._read(self._names[name])
        if tensor.dtype not in _FLOATS:
            what = f"the weight {self._names[name]} is stored as {tensor.dtype}, so it is quantised"
            raise InputError(f"{self._where}: {what}; {FLOATS}")
        return tensor.float()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def front_rows(special: Sequence[int], rows: int) -> np.ndarray:
    """Row of a table for each of our ids: special pieces come first, and others keep their ids.

    Parameters
    ----------
    special
        Rows of padding, end, unknown and, where there is one, start.
    rows
        Of the table.

    Returns
    -------
    (rows,) int64

    Examples
    --------
    >>> front_rows((1, 2, 3, 0), 6).tolist(), front_rows((5, 1, 2), 6).tolist()
    ([1, 2, 3, 0, 4, 5], [5, 1, 2, 3, 4, 0])
    """
    order = np.arange(rows)
    for at, row in enumerate(special):
        other = int(np.flatnonzero(order == row)[0])
        order[[at, other]] = order[[other, at]]
    return order


_ROWS = 2**14
"""Rows of a table that are copied at once: a copy of the whole table would be large."""


def fill(shape: ModelConfig, weights: Mapping[str, Tensor], order: np.ndarray) -> Transformer:
    """Build our model with these weights; `order` has the row of each of our ids."""
    model, parts = Transformer(shape), torch.from_numpy(order).split(_ROWS)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            theirs = weights[name]
            if name not in TABLES:
                tensor.copy_(theirs)
                continue
            for part, rows in zip(tensor.split(_ROWS), parts, strict=True):
                part.copy_(theirs[rows])
    return model


def from_transformers(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Transformer:
    """Our model with the weights of a T5 (version 1.1), an mT5 or an M2M-100 of `transformers`.

    It takes what a model there gives, `config.to_dict()` and `state_dict()`. M2M-100 numbers its
    special pieces in another order (`M2M100_SPECIAL`); the first rows of its table are put in ours.

    Raises
    ------
    InputError
        When the model computes something else, or a weight is missing or of another shape.
    """
    fields = Fields(config)
    family = family_of(fields)
    shape = shape_of(fields, family)
    special = M2M100_SPECIAL if family == "m2m_100" else ()
    return fill(
        shape, Renamed(shape, weights, weights.__getitem__), front_rows(special, shape.vocab_size)
    )


def to_hf(shape: ModelConfig, start: int) -> tuple[dict[str, Any], dict[str, str], np.ndarray]:
    """Configuration, names and rows of a model of ours as one of `transformers`.

    Parameters
    ----------
    start
        Our id that the decoder starts with.

    Returns
    -------
    config : dict
        Fields of `config.json`.
    names : dict
        Our name of each tensor, and theirs.
    order : (pieces,) int64
        Our id of each of their rows.

    Raises
    ------
    InputError
        When the model is neither of T5's shape nor of M2M-100's.
    """
    names = names_of(shape)
    m2m100 = shape.tie_output
    rows = front_rows(M2M100_SPECIAL if m2m100 else (), shape.vocab_size)
    special = {
        "pad_token_id": int(rows[PAD]),
        "eos_token_id": int(rows[EOS]),
        "decoder_start_token_id": int(rows[start]),
    }
    common = {"is_encoder_decoder": True, **special}
    if m2m100:
        config = {
            "architectures": ["M2M100ForConditionalGeneration"],
            "model_type": "m2m_100",
            **common,
            "bos_token_id": int(rows[BOS]),
            **{theirs: getattr(shape, ours) for theirs, ours in _M2M100_SIZES.items()},
            "activation_function": "relu",
            "scale_embedding": shape.scale_embedding,
            "dropout": shape.dropout,
            "attention_dropout": shape.attention_dropout,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "max_position_embeddings": 1024,
            "tie_word_embeddings": True,
        }
    else:
        config = {
            "architectures": ["T5ForConditionalGeneration"],
            "model_type": "t5",
            **common,
            **{theirs: getattr(shape, ours) for ours, theirs in _T5_SIZES.items()},
            "feed_forward_proj": "gated-gelu",
            "layer_norm_epsilon": 1e-6,
            "dropout_rate": shape.dropout,
            "tie_word_embeddings": False,
        }
    return config, names, np.argsort(rows)
