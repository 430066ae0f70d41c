"""Beam search with cached keys and values.

Translations y of a source x are ranked by ::

    score(y) = log p(y, end | x) / (|y| + 1) ** length_penalty

where ``|y|`` counts pieces, and the 1 stands for the end of sentence: fairseq's rule, which Paper B
decodes with (beam 4). At each step every sentence keeps its `beam` likeliest unfinished prefixes;
a prefix whose end of sentence is among the `beam` likeliest steps becomes a hypothesis; a sentence
is done when `beam` hypotheses have ended, or at its longest length, where all that is left has to
end. The longest length depends on the sentence alone, so a translation does not depend on which
sentences share its batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mnmt_repro.corpora.encoding import EncodedPair, Tags, encode_sources
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.vocabulary import BOS, EOS, PAD, Vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.model import Transformer
from mnmt_repro.typed_config import Amount, Few, Natural, Penalty, check

_BLOCK = 32  # scores


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How translations are searched for.

    Raises
    ------
    InputError
        When a field is out of its range; the message names the field.

    Examples
    --------
    >>> SearchConfig(max_ratio=1.5, max_extra=4).longest(10)
    19
    """

    beam: Few = 4  # prefixes kept a sentence; 1 is greedy search
    length_penalty: Penalty = 1.0  # exponent of the length: 0 ranks by probability alone
    max_ratio: Amount = 2.0  # longest translation = max_ratio * source tokens + max_extra
    max_extra: Natural = 10

    def __post_init__(self) -> None:
        check(self, "search")

    def longest(self, source_tokens: int) -> int:
        """Most pieces a translation may have, end of sentence not counted."""
        return int(self.max_ratio * source_tokens) + self.max_extra


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation found."""

    tokens: tuple[int, ...]  # without start and end
    log_probability: float  # log p(tokens, end | source), nats
    score: float  # length-normalised; the higher the better


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    start: int | Sequence[int],
    config: SearchConfig = SearchConfig(),  # noqa: B008
    *,
    forbidden: Sequence[int] = (PAD, BOS),
) -> list[list[Hypothesis]]:
    """Translate one padded batch.

    Parameters
    ----------
    source : (B, S)
        Ids as `EncodedPair.source` holds them, filled up with 0.
    start
        What the decoder begins with: the start token, the tag of the target language, or several
        ids, such as the end of sentence and a tag.
    forbidden
        Ids that no translation may hold; probabilities are not renormalised over the others.

    Returns
    -------
    list
        For each sentence at most `config.beam` hypotheses, best first.

    Raises
    ------
    InputError
        When the model gives no finite score to any translation of a sentence.
    """
    was_training = model.training
    model.eval()
    beginning = [start] if isinstance(start, int) else list(start)
    # B sentences are not yet done; each has k prefixes (1 at first, then `beam`) of t pieces.
    device, beam = source.device, config.beam
    ended: list[list[Hypothesis]] = [[] for _ in source]
    limits = [config.longest(n) for n in (source != PAD).sum(1).tolist()]
    cache = model.start(*model.encode(source))
    active = list(range(len(source)))  # (B,) rows of `source`
    if len(beginning) > 1:
        model.decode(torch.tensor(beginning[:-1], device=device).expand(len(source), -1), cache)
    prefixes = torch.full((len(source), 1, 1), beginning[-1], device=device)  # (B, k, 1 + t)
    totals: Tensor | None = None  # (B, k) log-probabilities of the prefixes
    length = 0
    while active:
        B, k = prefixes.shape[:2]
        hidden = model.decode(prefixes[:, :, -1].reshape(B * k, 1), cache)
        scores = model.logits(hidden[:, -1])
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).log_softmax(-1)
        V = scores.shape[-1]
        scores[:, list(forbidden)] = -math.inf
        steps = scores.view(B, k, V)
        if full := [row for row, i in enumerate(active) if limits[i] <= length]:
            only_end = torch.full_like(steps[full], -math.inf)
            only_end[:, :, EOS] = steps[full, :, EOS]
            steps[full] = only_end
        if totals is not None:
            steps += totals[:, :, None]
        # (B, 2 * beam): enough, as k of them can end
        top, index = _largest(steps.flatten(1), 2 * beam)
        parent, piece = (index // V).clamp_max(k - 1), index % V
        ends = piece == EOS
        ending = (ends & top.isfinite())[:, :beam]
        for row, rank in ending.nonzero().tolist():
            tokens = prefixes[row, parent[row, rank], 1:].tolist()
            hypothesis = Hypothesis(
                tokens=tuple(tokens),
                log_probability=top[row, rank].item(),
                score=top[row, rank].item() / (len(tokens) + 1) ** config.length_penalty,
            )
            ended[active[row]].append(hypothesis)

        # Unfinished prefixes first, the likeliest leading; stable, so that ties keep their order.
        order = ends.to(torch.uint8).argsort(dim=1, stable=True)[:, :beam]
        parent, piece, top = (x.gather(1, order) for x in (parent, piece, top))
        totals = top.masked_fill(piece == EOS, -math.inf)
        hopeless = totals.isneginf().all(1).tolist()
        keep = [
            row
            for row, i in enumerate(active)
            if len(ended[i]) < beam and limits[i] > length and not hopeless[row]
        ]
        kept = torch.tensor(keep, dtype=torch.long, device=device)
        parent, totals = parent[kept], totals[kept]
        cache.keep((kept[:, None] * k + parent).flatten(), kept)
        grown = prefixes[kept[:, None], parent]
        prefixes = torch.cat([grown, piece[kept][:, :, None]], dim=2)
        active = [active[row] for row in keep]
        length += 1
    model.train(was_training)
    for i, ranked in enumerate(ended):
        if not ranked:
            raise InputError(
                f"the model gives no finite score to any translation of sentence {i + 1} of the "
                "batch: its weights are damaged, or the end of sentence is forbidden"
            )
        ranked.sort(key=lambda hypothesis: -hypothesis.score)
        del ranked[beam:]
    return ended


def _largest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest scores of each row, and where they stand, each (B, count).

    They lie in the `count` blocks whose maxima are largest. Finding these first takes a tenth of
    the time of sorting all scores, which is half that of computing them.
    """
    width = scores.shape[1]
    if missing := max(count * _BLOCK - width, -width % _BLOCK):
        scores = F.pad(scores, (0, missing), value=-math.inf)
    blocks = scores.unflatten(1, (-1, _BLOCK))
    best = blocks.amax(2).topk(count).indices
    among = blocks.gather(1, best[:, :, None].expand(-1, -1, _BLOCK)).flatten(1)
    top, index = among.topk(count)
    return top, best.gather(1, index // _BLOCK) * _BLOCK + index % _BLOCK


def search_all(
    model: Transformer,
    source: Ragged,
    start: int | Sequence[int],
    config: SearchConfig = SearchConfig(),  # noqa: B008
    *,
    forbidden: Sequence[int] = (PAD, BOS),
    batch_sentences: int = 64,
    progress: Callable[[int], object] | None = None,
) -> list[Hypothesis]:
    """Best hypothesis of every row of `source`, in its order.

    Rows are batched with others of similar length, the longest first: what does not fit in memory
    fails at once.

    Parameters
    ----------
    progress
        Called with the number of sentences just done, as `tqdm.update` takes it.
    """
    device = model.output_weight.device
    order = np.argsort(-source.lengths, kind="stable")
    best_of: dict[int, Hypothesis] = {}
    for first in range(0, len(order), batch_sentences):
        rows = order[first : first + batch_sentences]
        part = source.take(rows)
        batch = torch.from_numpy(part.pad(int(part.lengths.max()))).to(device)
        best = beam_search(model, batch, start, config, forbidden=forbidden)
        best_of.update((int(row), ranked[0]) for row, ranked in zip(rows, best, strict=True))
        if progress is not None:
            progress(len(rows))
    return [best_of[row] for row in range(len(source))]


def encode_lines(
    sentences: Sequence[str], vocabulary: Vocabulary, pair: str, tags: Tags, longest: int
) -> tuple[list[int], EncodedPair]:
    """Numbers of the lines that are not empty, and these encoded as `encode_sources` says.

    Raises
    ------
    InputError
        When a line has more than `longest` tokens; the message names it.
    """
    full = [i for i, sentence in enumerate(sentences) if sentence.strip()]
    framed = encode_sources([sentences[i] for i in full], vocabulary, pair, tags)
    for i, tokens in zip(full, framed.source.lengths.tolist(), strict=True):
        if tokens > longest:
            raise InputError(f"line {i + 1} has {tokens} tokens, more than {longest}: split it")
    return full, framed


def translated_pieces(
    model: Transformer,
    vocabulary: Vocabulary,
    sentences: Sequence[str],
    pair: str,
    tags: Tags,
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008
    batch_sentences: int = 64,
    longest_source: int = 1024,
    progress: Callable[[int], object] | None = None,
) -> list[tuple[int, ...]]:
    """Ids of the pieces of each line's translation, in order; none of an empty line.

    Parameters
    ----------
    pair
        Source and target language, such as "eng-deu".
    tags
        Where the model was trained to find language tags.
    longest_source
        Most tokens of a sentence, its end and tag counted.
    progress
        Called with the number of lines just done, empty ones included.

    Raises
    ------
    InputError
        Before anything is translated: when the vocabulary is not the model's or has no tag for a
        language of `pair`, or when a line is too long; the message names the line.
    """
    vocabulary.check_rows(model.config.vocab_size)
    full, framed = encode_lines(sentences, vocabulary, pair, tags, longest_source)
    outputs: list[tuple[int, ...]] = [()] * len(sentences)
    if progress is not None and len(full) < len(sentences):
        progress(len(sentences) - len(full))
    if full:
        best = search_all(
            model,
            framed.source,
            framed.target.flat[: framed.target.offsets[1] - 1].tolist(),
            config,
            forbidden=vocabulary.never,
            batch_sentences=batch_sentences,
            progress=progress,
        )
        for i, hypothesis in zip(full, best, strict=True):
            outputs[i] = hypothesis.tokens
    return outputs


def translate(
    model: Transformer,
    vocabulary: Vocabulary,
    sentences: Sequence[str],
    pair: str,
    tags: Tags,
    **options: Any,
) -> list[str]:
    """Translate text, line by line and in order; an empty line stays empty.

    Parameters and errors are those of `translated_pieces`.
    """
    return vocabulary.decode(translated_pieces(model, vocabulary, sentences, pair, tags, **options))
