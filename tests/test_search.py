from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.vocabulary import (
    BOS,
    EOS,
    PAD,
    UNK,
    Vocabulary,
    VocabularyConfig,
    train_vocabulary,
)
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation import search
from mnmt_repro.evaluation.search import (
    Hypothesis,
    SearchConfig,
    beam_search,
    search_all,
    translate,
)
from mnmt_repro.model import Transformer

SHAPES = {"t5": ModelConfig.t5, "fairseq": ModelConfig.fairseq}


def make_model(shape: str, vocab_size: int, seed: int = 0, sharpness: float = 3.0) -> Transformer:
    """A random model in float64 whose pieces differ enough in probability to be worth a search."""
    config = SHAPES[shape](vocab_size=vocab_size, d_model=12, layers=2, heads=2)
    model = Transformer(config, seed=seed).double()
    with torch.no_grad():
        model.output_weight.mul_(sharpness if shape == "t5" else 1.5 * sharpness)
    return model


def ragged_source(vocab_size: int, rows: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, vocab_size, (rows, rows + 1), generator=generator)
    for row in range(rows):
        source[row, row + 1], source[row, row + 2 :] = EOS, 0
    return source


def log_probabilities(
    model: Transformer, source: Tensor, start: int, translations: list[tuple[int, ...]]
) -> list[float]:
    """log p(tokens, end | source) of translations of one sentence, each of them at once."""
    rows = Ragged.of([[start, *tokens, EOS] for tokens in translations])
    target = torch.from_numpy(rows.pad(int(rows.lengths.max())))
    with torch.no_grad():
        sources = source[source != PAD].expand(len(target), -1)
        scores = model.eval()(sources, target[:, :-1]).log_softmax(-1)
    scores = scores.gather(2, target[:, 1:, None])[:, :, 0]
    return scores.masked_fill(target[:, 1:] == PAD, 0.0).sum(1).tolist()


def best_first(found: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [hypothesis.tokens for hypothesis in found]


# --- against an exhaustive search ---------------------------------------------------------------


@pytest.mark.parametrize("start", [BOS, 5], ids=["start token", "target tag"])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_beam_that_holds_all_equals_an_exhaustive_search(
    shape: str, length_penalty: float, start: int
) -> None:
    pieces, longest = (UNK, 4, 5), 4
    model = make_model(shape, vocab_size=6)
    source = ragged_source(6, rows=2)
    config = SearchConfig(beam=130, length_penalty=length_penalty, max_ratio=0, max_extra=longest)
    everything = [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(pieces, repeat=length)
    ]
    assert len(everything) == 1 + 3 + 9 + 27 + 81
    for row, found in enumerate(beam_search(model, source, start, config)):
        exact = dict(
            zip(everything, log_probabilities(model, source[row], start, everything), strict=True)
        )
        score = {t: value / (len(t) + 1) ** length_penalty for t, value in exact.items()}
        assert best_first(found) == sorted(everything, key=lambda t: -score[t])
        for hypothesis in found:
            assert hypothesis.log_probability == pytest.approx(exact[hypothesis.tokens], rel=1e-10)
            assert hypothesis.score == pytest.approx(score[hypothesis.tokens], rel=1e-10)


# --- against the same search written plainly: a sentence at a time, nothing kept ----------------


def plain_search(
    model: Transformer, source: Tensor, start: int, config: SearchConfig
) -> list[tuple[tuple[int, ...], float]]:
    source = source[source != PAD][None]
    longest = int(config.max_ratio * source.shape[1]) + config.max_extra
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ended: list[tuple[tuple[int, ...], float]] = []
    while live and len(ended) < config.beam:
        steps = []
        for tokens, total in live:
            with torch.no_grad():
                scores = model(source, torch.tensor([[start, *tokens]]))[0, -1].log_softmax(0)
            for piece, score in enumerate(scores.tolist()):
                if piece in (PAD, BOS) or (len(tokens) == longest and piece != EOS):
                    continue
                steps.append((tokens, piece, total + score))
        steps.sort(key=lambda step: -step[2])
        ended += [
            (tokens, total / (len(tokens) + 1) ** config.length_penalty)
            for tokens, piece, total in steps[: config.beam]
            if piece == EOS
        ]
        live = [((*tokens, piece), total) for tokens, piece, total in steps if piece != EOS]
        live = live[: config.beam]
    return sorted(ended, key=lambda hypothesis: -hypothesis[1])[: config.beam]


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_batched_and_cached_equals_plain(shape: str, beam: int) -> None:
    model = make_model(shape, vocab_size=14, seed=3)
    source = ragged_source(14)
    config = SearchConfig(beam=beam, max_ratio=1.5, max_extra=3)
    found = beam_search(model, source, BOS, config)
    lengths = set()
    for row, hypotheses in enumerate(found):
        expected = plain_search(model.eval(), source[row], BOS, config)
        assert best_first(hypotheses) == [tokens for tokens, _ in expected]
        for hypothesis, (tokens, score) in zip(hypotheses, expected, strict=True):
            assert hypothesis.score == pytest.approx(score, rel=1e-10)
            (exact,) = log_probabilities(model, source[row], BOS, [tokens])
            assert hypothesis.log_probability == pytest.approx(exact, rel=1e-10)
            lengths.add(len(tokens))
    assert len(lengths) > 3  # sentences end at different steps, so rows of the cache move


def test_the_longest_length_and_what_is_forbidden() -> None:
    model = make_model("t5", vocab_size=14)
    with torch.no_grad():
        model.output_weight[EOS] = 0.0
    source = ragged_source(14)
    config = SearchConfig(beam=3, max_ratio=0.5, max_extra=1)
    found = beam_search(model, source, BOS, config, forbidden=(PAD, BOS, UNK, 4, 5, 6))
    for row, hypotheses in enumerate(found):
        assert len(hypotheses) == 3
        for tokens in best_first(hypotheses):
            assert len(tokens) <= int(0.5 * (row + 2)) + 1
            assert set(tokens) <= set(range(7, 14))


def test_a_model_without_finite_scores_is_an_error() -> None:
    model = make_model("t5", vocab_size=6)
    torch.nn.init.constant_(model.output_weight, float("nan"))
    with pytest.raises(InputError, match="no finite score"):
        beam_search(model, ragged_source(6), BOS)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_while_searching_and_as_before_afterwards(training: bool) -> None:
    config = ModelConfig.t5(vocab_size=14, d_model=12, layers=1, heads=2, dropout=0.5)
    model = Transformer(config).train(training)
    source = ragged_source(14)
    assert beam_search(model, source, BOS) == beam_search(model, source, BOS)
    assert model.training is training


# --- many sentences -----------------------------------------------------------------------------


def test_neither_order_nor_batch_changes_a_translation() -> None:
    model = make_model("fairseq", vocab_size=14, seed=3)
    padded = ragged_source(14)
    rows = [[int(i) for i in row if i] for row in padded]
    mixed = [rows[i] for i in (3, 0, 6, 1, 5, 2, 4, 3)]
    done: list[int] = []
    found = search_all(model, Ragged.of(mixed), BOS, batch_sentences=3, progress=done.append)
    alone = [beam_search(model, torch.tensor([row]), BOS)[0][0] for row in mixed]
    assert best_first(found) == best_first(alone)
    np.testing.assert_allclose([h.score for h in found], [h.score for h in alone], rtol=1e-10)
    assert sum(done) == 8
    assert len(done) == 3


# --- text ---------------------------------------------------------------------------------------

LINES = [f"{a} {b} {c}" for a in ("red", "green", "blue") for b in "abcd" for c in ("hat", "bag")]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    config = VocabularyConfig(pieces=290, languages=("eng", "deu", "zho"))
    return train_vocabulary(config, {"eng-deu": (LINES, [line.upper() for line in LINES])})


@pytest.fixture
def text_model(vocabulary: Vocabulary) -> Transformer:
    return Transformer(ModelConfig.t5(vocab_size=len(vocabulary), d_model=16, layers=1, heads=2))


def test_order_is_kept_and_empty_lines_stay_empty(
    text_model: Transformer, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a search that hands back what it was given, translation is the identity."""

    def echo(
        model: Transformer, source: Tensor, *rest: object, **options: object
    ) -> list[list[Hypothesis]]:
        rows = [[int(i) for i in row if i > EOS] for row in source]
        return [[Hypothesis(tokens=tuple(row), log_probability=0.0, score=0.0)] for row in rows]

    monkeypatch.setattr(search, "beam_search", echo)
    lines = ["blue d hat", "", "red", "  ", "green b bag red a", "\t", "a"]
    done: list[int] = []
    found = translate(
        text_model, vocabulary, lines, "eng-deu", "none", batch_sentences=2, progress=done.append
    )
    assert found == ["blue d hat", "", "red", "", "green b bag red a", "", "a"]
    assert sum(done) == len(lines)
    assert translate(text_model, vocabulary, [], "eng-deu", "none") == []
    assert translate(text_model, vocabulary, ["", " "], "eng-deu", "none") == ["", ""]


def test_no_tag_or_special_piece_is_ever_put_out(
    text_model: Transformer, vocabulary: Vocabulary
) -> None:
    with torch.no_grad():
        for piece in (PAD, UNK, BOS, *map(vocabulary.tag, vocabulary.languages)):
            text_model.output_weight[piece] = 30 * text_model.output_weight[piece].sign()
        text_model.output_weight[EOS] = 0.0
    lines = translate(text_model, vocabulary, LINES[:4], "eng-deu", "source")
    assert all(lines)
    assert not any("<2" in line or "⁇" in line for line in lines)


def test_mistakes_are_named_before_the_work(
    text_model: Transformer, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transformer, "encode", lambda *_: pytest.fail("translated"))
    with pytest.raises(InputError, match=r"no tag <2fra>"):
        translate(text_model, vocabulary, ["red"], "eng-fra", "source")
    with pytest.raises(InputError, match=r"line 3 has \d+ tokens, more than 40"):
        translate(
            text_model, vocabulary, ["red", "", "a " * 40], "eng-deu", "none", longest_source=40
        )
    other = Transformer(ModelConfig.t5(vocab_size=291, d_model=8, layers=1, heads=1))
    with pytest.raises(InputError, match="290 pieces, the model 291"):
        translate(other, vocabulary, ["red"], "eng-deu", "none")
