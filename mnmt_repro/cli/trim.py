"""`data trim`: a model without the pieces and languages that some text does not need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_repro.corpora.bitext import SKIP_BAD, read_bitexts, skipping_bad
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import Count, required, setting

if TYPE_CHECKING:
    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.model import Transformer


@dataclass(frozen=True, kw_only=True)
class TrimOptions:
    """The options of `data trim`."""

    model: Path = required("the model's folder", flags=("model",), metavar="MODEL")
    data: tuple[str, ...] = required(
        "text (see train) of each direction that stays; its pieces, characters and tags are kept",
        required=True,
        metavar="PAIR=FILE",
    )
    out: Path = required(
        "new folder, for transformers and all commands", required=True, metavar="DIR"
    )
    skip_bad: bool = setting(SKIP_BAD, False)
    min_count: Count = setting(
        "leave out pieces that occur less often in the text; 1: it is cut exactly as before", 1
    )
    limit: Count = setting(
        "also keep the pieces of greedy translations of the first N sentences of each pair, and "
        "translate these again afterwards. Beam search may differ: it ranks by probabilities, and "
        "each piece left out raises those of the others",
        100,
        metavar="N",
    )


def act(options: TrimOptions) -> int:
    """Write the trimmed model, and say what that saves and changes."""
    from mnmt_repro.corpora.encoding import tag_ids
    from mnmt_repro.corpora.trimming import trim_vocabulary
    from mnmt_repro.evaluation.search import SearchConfig, translated_pieces
    from mnmt_repro.interchange import write_hf
    from mnmt_repro.interchange.weights import fill
    from mnmt_repro.runs.trained import check_free, load_trained

    check_free(options.out)
    trained = load_trained(options.model)
    model, old, tags = trained.model, trained.vocabulary, trained.tags
    texts = read_bitexts(skipping_bad(options.data, options.skip_bad))
    for pair in texts:
        trained.check_direction(pair, f"--data {pair}")

    def greedy(model: Transformer, vocabulary: Vocabulary) -> list[tuple[int, ...]]:
        each = (
            translated_pieces(
                model, vocabulary, text.source[: options.limit], pair, tags,
                config=SearchConfig(beam=1),
            )
            for pair, text in texts.items()
        )  # fmt: skip
        return [*chain.from_iterable(each)]

    before = greedy(model, old)
    lines = [line for text in texts.values() for line in (*text.source, *text.target)]
    languages = {i for pair in texts for i in tag_ids(old, pair, tags)}
    new, rows = trim_vocabulary(
        old, languages, lines, min_count=options.min_count, written=chain.from_iterable(before)
    )
    made = fill(replace(model.config, vocab_size=len(rows)), model.state_dict(), rows).eval()
    cuts = (each.processor.encode(lines, out_type=int) for each in (old, new))
    recut = [rows[ids].tolist() != cut for cut, ids in zip(*cuts, strict=True)]
    if any(recut) and options.min_count == 1:
        line = lines[recut.index(True)]
        raise InputError(f"{options.model}: {line[:60]!r} would be cut otherwise; please report it")
    after = [tuple(rows[list(ids)].tolist()) for ids in greedy(made, new)]
    equal = sum(a == b for a, b in zip(before, after, strict=True))
    write_hf(options.out, made, new, tags, [*texts])
    sizes = [sum(t.nbytes for t in each.parameters()) / 1e6 for each in (model, made)]
    print(
        f"{options.out}: {options.model} without what this text does not need\n"
        f"pieces: {len(old):,} -> {len(new):,}, languages: {len(old.languages)} -> "
        f"{len(new.languages)}\n"
        f"memory of the weights: {sizes[0]:,.1f} -> {sizes[1]:,.1f} MB "
        f"({sizes[1] / sizes[0] - 1:+.0%})\n"
        f"{sum(recut) / len(lines):.1%} of {len(lines):,} sentences are cut differently\n"
        f"{equal} of {len(before)} greedy translations are equal\n"
        "Other text can be cut into smaller pieces."
    )
    return 0
