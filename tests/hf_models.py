"""Small random models of every family of `interchange`, with tokenizers trained on conlang text."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

from mnmt_repro.corpora.conlang import Conlang, ConlangConfig

FAMILIES = ("t5", "mt5", "madlad", "m2m100", "nllb")
LANGUAGES = {
    "madlad": ("src", "aaa", "bbb"),
    "m2m100": ("en", "de", "fr"),
    "nllb": ("src_Latn", "aaa_Latn", "bbb_Latn"),
}
"""Languages with a tag; t5 and mt5 have none."""
SMALL_T5 = dict(d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=3)
SMALL_M2M = dict(d_model=16, layers=(2, 2), ff=24, heads=2)
SEEDS = {"t5": 28, "mt5": 28, "madlad": 28, "m2m100": 56, "nllb": 33}
"""Of weights with which many translations of many lengths end."""
EXTRA = 5  # rows of a table beyond its pieces


@cache
def sentences() -> tuple[str, ...]:
    """Text of two languages of a conlang."""
    conlang = Conlang(ConlangConfig(concepts=64, syllables=24, min_concepts=4))
    found = conlang.text("src-aaa", 0, 400, split="train")
    return tuple(line for pair in found for line in pair)


def train_pieces(path: Path, kind: str, pieces: int = 90, **options: Any) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()), model_writer=model, model_type=kind,
        vocab_size=pieces, num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    path.write_bytes(model.getvalue())


def randomise(model: torch.nn.Module, seed: int) -> None:
    """Give every parameter values of a fair size, norms near one, and an output of its own."""
    torch.manual_seed(seed)
    if hasattr(model, "lm_head") and model.config.model_type in ("t5", "mt5"):
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.data = name.endswith("weight") + 0.1 * torch.randn_like(parameter)
        else:
            parameter.data = torch.randn_like(parameter) * parameter.shape[1] ** -0.5
    # The end is likely enough for sentences to end.
    model.get_output_embeddings().weight.data[model.config.eos_token_id] *= 3


def write_model(folder: Path, family: str, *, shards: str = "50GB", again: bool = False) -> Any:
    """Write a small model as its family is published; `again`: as `transformers` saves it today."""
    folder.mkdir(parents=True)
    model = (_m2m100 if family in ("m2m100", "nllb") else _t5)(folder, family)
    randomise(model, SEEDS[family])
    model.eval().save_pretrained(folder, max_shard_size=shards)
    if again:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for name in ("spiece.model", "sentencepiece.bpe.model"):
            (folder / name).unlink(missing_ok=True)
        tokenizer.save_pretrained(folder)
    return model


def _t5(folder: Path, family: str) -> Any:
    if family == "madlad":
        tags = [f"<2{language}>" for language in LANGUAGES[family]]
        train_pieces(folder / "spiece.model", "unigram", user_defined_symbols=tags)
        special = dict(pad_token_id=1, eos_token_id=2, decoder_start_token_id=0)
        names = dict(pad_token="<s>", eos_token="</s>", unk_token="<unk>", extra_ids=0)
    else:
        train_pieces(folder / "spiece.model", "unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
        special = dict(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
        names = dict(extra_ids=3)
    settings = {"tokenizer_class": "T5Tokenizer", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    kind = "MT5" if family == "mt5" else "T5"
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=90 + EXTRA, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        dropout_rate=0.0, **SMALL_T5, **special,
    )  # fmt: skip
    return getattr(transformers, f"{kind}ForConditionalGeneration")(config)


def _m2m100(folder: Path, family: str) -> Any:
    train_pieces(folder / "sentencepiece.bpe.model", "bpe")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.bpe.model")
    )
    rows = len(processor) + 1
    if family == "m2m100":
        front = ["<s>", "<pad>", "</s>", "<unk>"]
        texts = front + [processor.id_to_piece(i) for i in range(3, len(processor))]
        ids = {text: row for row, text in enumerate(texts)}
        (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False))
        settings: dict[str, Any] = {"tokenizer_class": "M2M100Tokenizer"}
        rows += 100
    else:
        languages = list(LANGUAGES[family])
        settings = {"tokenizer_class": "NllbTokenizer", "src_lang": languages[0]}
        settings["additional_special_tokens"] = languages
        added = {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"}
        added |= dict(enumerate([*languages, "<mask>"], start=rows))
        settings["added_tokens_decoder"] = {
            row: {"content": text, "special": True} for row, text in added.items()
        }
        rows += len(languages) + 1
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (encoder, decoder), ff, heads = SMALL_M2M["layers"], SMALL_M2M["ff"], SMALL_M2M["heads"]
    config = transformers.M2M100Config(
        vocab_size=rows + EXTRA, d_model=SMALL_M2M["d_model"], encoder_layers=encoder,
        decoder_layers=decoder, encoder_ffn_dim=ff, decoder_ffn_dim=ff,
        encoder_attention_heads=heads, decoder_attention_heads=heads, max_position_embeddings=64,
        dropout=0.0, attention_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0,
    )  # fmt: skip
    return transformers.M2M100ForConditionalGeneration(config)
