"""Models of ours in CTranslate2, which decodes them faster: written as its folder, and run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mnmt_repro.corpora.encoding import Tags, tag_ids
from mnmt_repro.corpora.vocabulary import EOS, SPECIAL, UNK, Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.search import SearchConfig, encode_lines
from mnmt_repro.interchange.folder import CT2
from mnmt_repro.interchange.weights import names_of
from mnmt_repro.interchange.writing import (
    README,
    TAG_RULES,
    check_pieces,
    example_tags,
    new_folder,
    write_json,
)
from mnmt_repro.model import Attention, FeedForward, Transformer, sinusoidal_positions

_VOCABULARY = "vocabulary.model"
POSITIONS = 1024  # most tokens of a sentence


def need_ctranslate2() -> Any:
    """The package.

    Raises
    ------
    InputError
        When it is not installed.
    """
    try:
        import ctranslate2
    except ModuleNotFoundError as error:
        if error.name != "ctranslate2":
            raise
        raise InputError(
            "CTranslate2 is not installed: pip install -e '.[ct2]', or leave out --engine ct2 and "
            "--to ct2"
        ) from error
    return ctranslate2


def write_ct2(
    out: Path,
    model: Transformer,
    vocabulary: Vocabulary,
    tags: Tags,
    pairs: Sequence[str] = (),
) -> None:
    """Write a folder that CTranslate2 runs, with the vocabulary and where language tags go.

    Parameters
    ----------
    out
        A new folder.
    pairs
        As of `write_hf`.

    Raises
    ------
    InputError
        When CTranslate2 is not installed, the model is of neither papers' shape, the vocabulary is
        not the model's, or the folder is there or cannot be written.
    """
    need_ctranslate2()
    check_pieces(vocabulary)
    vocabulary.check_rows(model.config.vocab_size)
    names_of(model.config)  # refuses other shapes
    spec = _specification(model)
    pieces = [vocabulary.processor.id_to_piece(i) for i in range(len(vocabulary))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.eos_token = SPECIAL[UNK], SPECIAL[EOS]
    spec.config.bos_token = pieces[vocabulary.start]
    spec.config.decoder_start_token = {"both": None, "both-after-end": SPECIAL[EOS]}.get(
        tags, pieces[vocabulary.start]
    )
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization=None)
    with new_folder(out) as folder:
        spec.save(str(folder))
        (folder / _VOCABULARY).write_bytes(vocabulary.model)
        write_json(folder / CT2, {"tags": tags})
        (folder / README).write_text(_readme(vocabulary, tags, pairs), encoding="utf-8")


def _readme(vocabulary: Vocabulary, tags: Tags, pairs: Sequence[str]) -> str:
    """How CTranslate2 is called without this package."""
    first, second = example_tags(vocabulary, tags, pairs)
    lead = f'"{first}", ' if first else ""
    prefix = f', target_prefix=[["{second}"]]' if second else ""
    return f"""\
# A translation model of mnmt-repro, for CTranslate2

{TAG_RULES[tags]}

```python
import ctranslate2
import sentencepiece

pieces = sentencepiece.SentencePieceProcessor(model_file="FOLDER/{_VOCABULARY}")
translator = ctranslate2.Translator("FOLDER")
source = [{lead}*pieces.encode("SENTENCE", out_type=str), "{SPECIAL[EOS]}"]
(found,) = translator.translate_batch([source], beam_size=4{prefix})
print(pieces.decode(found.hypotheses[0]{"[1:]" if tags == "both-after-end" else ""}))
```
"""


def _specification(model: Transformer) -> Any:
    """CTranslate2's description of the model, with its weights."""
    ctranslate2 = need_ctranslate2()
    specs = ctranslate2.specs
    config = model.config
    gated, relative = config.feed_forward == "gated-gelu", config.positions == "relative"
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=True,
        activation=specs.Activation.GELUTanh if gated else specs.Activation.RELU,
        relative_attention_bias=relative,
        ffn_glu=gated,
        rms_norm=config.norm == "rms",
    )
    positions = sinusoidal_positions(torch.arange(POSITIONS), config.d_model).numpy()
    for name in ("encoder", "decoder"):
        stack, ours = getattr(spec, name), getattr(model, name)
        table = stack.embeddings[0] if name == "encoder" else stack.embeddings
        table.weight = _array(model.embedding.weight)
        stack.scale_embeddings = config.scale_embedding
        if not relative:
            stack.position_encodings.encodings = positions
        _norm(stack.layer_norm, getattr(model, f"{name}_norm"))
        for theirs, layer in zip(stack.layer, ours, strict=True):
            _norm(theirs.self_attention.layer_norm, layer.attention_norm)
            _attention(theirs.self_attention, layer.attention, fused=3)
            if relative:
                bias = getattr(model, f"{name}_positions")
                theirs.self_attention.relative_attention_bias = _array(bias.table.weight)
                theirs.self_attention.relative_attention_max_distance = np.int32(bias.max_distance)
            if name == "decoder":
                _norm(theirs.attention.layer_norm, layer.cross_norm)
                _attention(theirs.attention, layer.cross, fused=1)
            _norm(theirs.ffn.layer_norm, layer.feed_forward_norm)
            _feed_forward(theirs.ffn, layer.feed_forward)
    spec.decoder.projection.weight = _array(model.output_weight)
    return spec


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().float().cpu().contiguous().numpy()


def _norm(spec: Any, norm: torch.nn.Module) -> None:
    spec.gamma = _array(norm.weight)  # type: ignore[arg-type]
    if getattr(norm, "bias", None) is not None:
        spec.beta = _array(norm.bias)  # type: ignore[arg-type]


def _linear(spec: Any, *maps: torch.nn.Linear) -> None:
    """Several maps of one input as one."""
    spec.weight = _array(torch.cat([each.weight for each in maps]))
    if maps[0].bias is not None:
        spec.bias = _array(torch.cat([each.bias for each in maps]))


def _attention(spec: Any, ours: Attention, *, fused: int) -> None:
    """Maps of queries, keys and values; the first `fused` of them have one input."""
    if ours.scale == 1.0:  # T5; elsewhere CTranslate2 divides by the square root of a head's width
        spec.queries_scale = 1.0
    maps = (ours.q, ours.k, ours.v)
    _linear(spec.linear[0], *maps[:fused])
    if fused < len(maps):
        _linear(spec.linear[1], *maps[fused:])
    _linear(spec.linear[-1], ours.o)


def _feed_forward(spec: Any, ours: FeedForward) -> None:
    if ours.gated:
        _linear(spec.linear_0, ours.gate)
        _linear(spec.linear_0_noact, ours.up)
    else:
        _linear(spec.linear_0, ours.up)
    _linear(spec.linear_1, ours.out)


@dataclass(frozen=True, kw_only=True)
class Ct2:
    """A folder of `write_ct2`, opened."""

    translator: Any
    vocabulary: Vocabulary
    tags: Tags

    @classmethod
    def open(cls, folder: Path, *, device: str = "cpu") -> Ct2:
        """Open a folder.

        Raises
        ------
        InputError
            When CTranslate2 is not installed, or the folder is damaged.
        """
        ctranslate2 = need_ctranslate2()
        kind, _, index = device.partition(":")
        try:
            about = json.loads((folder / CT2).read_text(encoding="utf-8"))
            translator = ctranslate2.Translator(
                str(folder), device=kind, device_index=int(index or 0)
            )
            tags = about["tags"]
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise InputError(
                f"{folder}: cannot be opened by CTranslate2 ({error}); export the model again"
            ) from error
        return cls(
            translator=translator,
            vocabulary=Vocabulary.load(folder / _VOCABULARY),
            tags=tags,
        )

    def translate(
        self,
        sentences: Sequence[str],
        pair: str,
        *,
        config: SearchConfig = SearchConfig(),  # noqa: B008
        batch_sentences: int = 64,
        progress: Callable[[int], object] | None = None,
    ) -> list[str]:
        """Translate text, line by line and in order; as `evaluation.search.translate`."""
        vocabulary = self.vocabulary
        _, target_tag = tag_ids(vocabulary, pair, self.tags)
        full, framed = encode_lines(sentences, vocabulary, pair, self.tags, POSITIONS)
        outputs = [""] * len(sentences)
        if progress is not None and len(full) < len(sentences):
            progress(len(sentences) - len(full))
        piece = vocabulary.processor.id_to_piece
        prefix = [piece(target_tag)] if self.tags in ("both", "both-after-end") else []
        # With "both" the tag starts the decoder; else it is the first piece of what is found.
        found_tags = int(self.tags == "both-after-end")
        # Sentences of one batch share a limit, so that they are batched by length.
        order = sorted(range(len(full)), key=lambda row: -int(framed.source.lengths[row]))
        silent = [[piece(i)] for i in vocabulary.never]
        for first in range(0, len(order), batch_sentences):
            rows = order[first : first + batch_sentences]
            part = [framed.source.take(np.array([row])).flat.tolist() for row in rows]
            longest = max(config.longest(len(ids)) for ids in part)
            found = self.translator.translate_batch(
                [[piece(i) for i in ids] for ids in part],
                target_prefix=[prefix] * len(rows) if prefix else None,
                beam_size=config.beam,
                num_hypotheses=config.beam,
                return_scores=True,
                length_penalty=0,  # a length would count the tag; `_best` ranks as ours
                max_decoding_length=longest + found_tags,
                min_decoding_length=0,  # as ours, a translation may be empty
                suppress_sequences=silent,
            )
            for row, each in zip(rows, found, strict=True):
                pieces = _best(each, found_tags, config.length_penalty)
                outputs[full[row]] = vocabulary.decode(
                    [[vocabulary.processor.piece_to_id(text) for text in pieces]]
                )[0]
            if progress is not None:
                progress(len(rows))
        return outputs


def _best(found: Any, tags: int, length_penalty: float) -> list[str]:
    """Pieces of the best translation without its tags, as `evaluation.search` ranks them."""
    translations = [pieces[tags:] for pieces in found.hypotheses]
    scores = [
        log_probability / (len(pieces) + 1) ** length_penalty
        for log_probability, pieces in zip(found.scores, translations, strict=True)
    ]
    return translations[int(np.argmax(scores))]
