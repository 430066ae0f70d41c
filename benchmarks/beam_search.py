"""Beam search: ours against Hugging Face's `generate`, CTranslate2, and ours without cached states.

One run, the same random T5 v1.1 weights, the same sentences, beam 4, float32, every translation as
long as is allowed (the end is made unlikely, so that all do the same number of steps). The ratio is
the other's best time over ours; above 1, ours is faster. CTranslate2 runs our export twice: called
directly with pieces, and by `translate --engine ct2`, which also cuts and joins the pieces. Ours
runs in bfloat16, too. Needs the test tier (transformers, ctranslate2).

    OMP_NUM_THREADS=1 python benchmarks/beam_search.py
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pandas as pd
import torch
import transformers
from stored import keep
from torch import Tensor

from mnmt_repro.corpora.encoding import encode_sources
from mnmt_repro.corpora.vocabulary import VocabularyConfig, train_vocabulary
from mnmt_repro.evaluation.search import SearchConfig, beam_search
from mnmt_repro.interchange import from_transformers
from mnmt_repro.interchange.ctranslate import Ct2, write_ct2
from mnmt_repro.model import DecoderCache, Transformer, autocast


class Uncached(Transformer):
    """The same model, its decoder run over the whole prefix at every step."""

    def start(self, memory: Tensor, memory_mask: Tensor) -> DecoderCache:
        cache = super().start(memory, memory_mask)
        nothing = torch.zeros((len(memory), 0), dtype=torch.long)
        cache.past = [(nothing, nothing)]  # the prefixes themselves, so that `keep` moves them
        return cache

    def decode(self, target: Tensor, cache: DecoderCache) -> Tensor:
        assert cache.past[0] is not None
        prefix = torch.cat([cache.past[0][0], target], 1)
        cache.past = [(prefix, prefix)]
        nothing_kept = DecoderCache(cache.memory, cache.memory_mask, [None] * len(self.decoder))
        return super().decode(prefix, nothing_kept)[:, -1:]


def made_up(sentences: int, words: int, seed: int) -> list[str]:
    """Sentences of words that are random syllables."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in "aeiouy"]
    lexicon = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(20_000)]
    return [" ".join(rng.choices(lexicon, k=words)) for _ in range(sentences)]


Search = Callable[[], list[list[int]] | list[list[str]] | list[str]]


def searches(
    *, width: int, layers: int, vocabulary: int, sentences: int, length: int
) -> dict[str, Search]:
    """A search of each system for translations of the same sentences with the same weights."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=vocabulary, d_model=width, d_ff=4 * width, num_heads=4, d_kv=width // 4,
        num_layers=layers, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        dropout_rate=0.0,
    )  # fmt: skip
    peer = transformers.T5ForConditionalGeneration(config).eval()
    output = torch.randn(vocabulary, width) * width**-0.5
    output[1] = 0.0  # the end of sentence: never among the likeliest of so many pieces
    peer.lm_head.weight = torch.nn.Parameter(output)
    ours = from_transformers(config.to_dict(), peer.state_dict())
    uncached = Uncached(ours.config)
    uncached.load_state_dict(ours.state_dict())
    text = made_up(20_000, length // 2, 0)
    pieces_of = train_vocabulary(
        VocabularyConfig(pieces=vocabulary, languages=("src", "tgt")),
        {"src-tgt": (text[::2], text[1::2])},
    )
    chosen = text[:sentences]
    rows = encode_sources(chosen, pieces_of, "src-tgt", "none").source
    source = torch.from_numpy(rows.pad(int(rows.lengths.max())))
    # `length` steps: the last of ours is the end of sentence, the last of theirs a piece.
    search = SearchConfig(beam=4, max_ratio=0, max_extra=length - 1)

    def generate() -> list[list[int]]:
        found = peer.generate(
            input_ids=source, attention_mask=(source != 0).long(), num_beams=4,
            length_penalty=1.0, early_stopping=True, do_sample=False, pad_token_id=0,
            eos_token_id=1, decoder_start_token_id=0, max_new_tokens=length,
        )  # fmt: skip
        return [row[1:] for row in found.tolist()]

    def decode(model: Transformer, precision: str = "float32") -> list[list[int]]:
        with autocast("cpu", precision):
            found = beam_search(model, source, 0, search, forbidden=(0,))
        return [list(each[0].tokens) for each in found]

    piece = pieces_of.processor.id_to_piece
    pieces = [[piece(int(i)) for i in row if i] for row in source]
    with tempfile.TemporaryDirectory() as folder:
        write_ct2(Path(folder) / "ct2", ours, pieces_of, "none")
        exported = Ct2.open(Path(folder) / "ct2")

    def ct2() -> list[list[str]]:
        found = exported.translator.translate_batch(
            pieces, beam_size=4, length_penalty=1, max_decoding_length=length
        )
        return [each.hypotheses[0] for each in found]

    return {
        "ours": lambda: decode(ours),
        "ours, bfloat16": lambda: decode(ours, "bfloat16"),
        "ours, nothing cached": lambda: decode(uncached),
        f"transformers {transformers.__version__} generate": generate,
        f"ctranslate2 {ctranslate2.__version__}, our export": ct2,
        "translate --engine ct2": lambda: exported.translate(
            chosen, "src-tgt", config=search, batch_sentences=sentences
        ),
    }


def best_of(runs: dict[str, Search], length: int, repeats: int) -> dict[str, float]:
    """Best processor seconds of each search, taken turn by turn; all do the same work."""
    best = dict.fromkeys(runs, float("inf"))
    results = {}
    for _ in range(1 + repeats):
        for name, run in runs.items():
            began = time.process_time()
            results[name] = run()
            best[name] = min(best[name], time.process_time() - began)
    mine, lower, plain, theirs, exports, _ = results.values()
    assert sum(a == b for a, b in zip(mine, plain, strict=True)) > 0.8 * len(mine)  # near ties
    assert {len(row) for row in mine + lower} == {length - 1}
    assert {len(row) for row in theirs} == {len(row) for row in exports} == {length}
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--length", type=int, default=32, help="source tokens and output pieces")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="such as data/benchmarks/beam_search.json")
    options = parser.parse_args()
    runs = searches(
        width=options.width, layers=options.layers, vocabulary=options.vocabulary,
        sentences=options.sentences, length=options.length,
    )  # fmt: skip
    best = best_of(runs, options.length, options.repeats)
    print(
        f"{options.sentences} sentences, {options.length} steps, width {options.width}, "
        f"{options.layers}+{options.layers} layers, {options.vocabulary} pieces, "
        f"{torch.get_num_threads()} thread(s), torch {torch.__version__}"
    )
    table = []
    for name, seconds in best.items():
        speed = options.sentences * options.length / seconds
        table.append({"system": name, "s": seconds, "ratio": seconds / best["ours"]})
        print(f"{name:32} {seconds:7.3f} s  {speed:7.0f} pieces/s  {seconds / best['ours']:5.2f}")
    if options.out:
        keep(options.out, pd.DataFrame(table), width=options.width, layers=options.layers)


if __name__ == "__main__":
    main()
