"""The stream of batches: a pure function of seed and position, fair, full and little padded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_runs import PAIRS, small_data

from mnmt_repro.corpora.batches import (
    PAD_TO,
    Batch,
    BatchStream,
    EncodedPair,
    Position,
    evaluation_batches,
)
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.errors import InputError

LONGEST = 30


def numbered(size: int, first: int, seed: int = 0) -> EncodedPair:
    """Sentences whose first source token is their own number, from `first` on."""
    rng = np.random.default_rng(seed)
    source = [[first + i, *rng.integers(4, 9, rng.integers(1, LONGEST)), 1] for i in range(size)]
    target = [[3, *rng.integers(4, 9, rng.integers(0, LONGEST)), 1] for i in range(size)]
    return EncodedPair(Ragged.of(source), Ragged.of(target))


def stream(sizes: dict[str, int], weights: dict[str, float], **options) -> BatchStream:
    text = {
        pair: numbered(size, 1000 * (k + 1), seed=k) for k, (pair, size) in enumerate(sizes.items())
    }
    settings = {"batch_tokens": 200, "seed": 3, "window": 64}
    return BatchStream(text, Mixture.of(weights), **{**settings, **options})


def of_windows(stream: BatchStream, windows: int) -> list[tuple[int, Batch]]:
    """All batches of the first windows, each with the number of its window."""
    found, window = [], 0
    for position, batch in stream.batches():
        found.append((window, batch))
        window = position.window
        if window == windows:
            return found
    raise AssertionError


def same(a: Batch, b: Batch) -> bool:
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("source", "target", "pair"))


def test_a_stream_resumes_at_any_position() -> None:
    sizes, weights = {"eng-deu": 150, "eng-zho": 70}, {"eng-deu": 0.6, "eng-zho": 0.4}
    whole = list(itertools.islice(stream(sizes, weights).batches(), 60))
    assert whole[-1][0].window > 2  # several windows and passes are crossed
    for k in (0, 1, 7, 20, 41):
        resumed = itertools.islice(stream(sizes, weights).batches(whole[k][0]), 15)
        for (position, batch), (wanted_position, wanted) in zip(
            resumed, whole[k + 1 :], strict=False
        ):
            assert position == wanted_position
            assert same(batch, wanted)


@pytest.mark.parametrize(
    ("size", "windows"),
    [
        (320, 5),  # five windows of 64 are one pass
        (100, 25),  # a pass ends within a window: 25 windows are 16 passes
        (48, 3),  # a window holds more than one pass: 3 windows are 4
    ],
)
def test_every_sentence_is_seen_once_a_pass(size: int, windows: int) -> None:
    batches = of_windows(stream({"eng-deu": size}, {"eng-deu": 1.0}), windows)
    numbers = np.concatenate([batch.source[:, 0] for _, batch in batches])
    _, counts = np.unique(numbers, return_counts=True)
    assert len(counts) == size
    assert set(counts) == {windows * 64 // size}


def test_batches_hold_about_the_budget() -> None:
    batches = of_windows(stream({"eng-deu": 500}, {"eng-deu": 1.0}), 8)
    for window in range(8):
        tokens = [int((b.target[:, 1:] != 0).sum()) for w, b in batches if w == window]
        odd = [count for count in tokens if abs(count - 200) >= LONGEST]
        assert len(odd) <= 1  # what is left at the end of a window
        assert all(count < 200 for count in odd)


def test_padding_goes_up_to_the_next_multiple_of_eight_and_no_further() -> None:
    for _, batch in of_windows(stream({"eng-deu": 500}, {"eng-deu": 1.0}), 4):
        for ids, start in ((batch.source, 0), (batch.target, 1)):
            lengths = (ids != 0).sum(1)
            assert (ids.shape[1] - start) % PAD_TO == 0
            assert ids.shape[1] - lengths.max() < PAD_TO
            ends = ids[np.arange(len(ids)), lengths - 1]
            assert (ends == 1).all()  # zeros stand behind the end of the sentence only


def test_shares_are_those_of_the_mixture() -> None:
    weights = {"eng-deu": 0.7, "eng-fra": 0.25, "eng-zho": 0.05}
    source = stream(dict.fromkeys(weights, 90), weights)
    counts = np.zeros(3)
    for _, batch in of_windows(source, 60):
        counts += np.bincount(batch.pair, minlength=3)
    total = 60 * 64
    assert counts.tolist() == source.drawn(60).tolist()
    assert counts.sum() == total
    for count, p in zip(counts, weights.values(), strict=True):
        assert abs(count - p * total) < 4 * np.sqrt(total * p * (1 - p))  # 1 in 16,000 by chance


def test_weights_that_change_at_a_window_repeat_no_sentence() -> None:
    text = small_data().sentences
    first, then = Mixture.two(*PAIRS, 0.9), Mixture.two(*PAIRS, 0.1)
    options = {"batch_tokens": 200, "seed": 3, "window": 64}
    changing = BatchStream(text, then, first=first, changed=5, **options)
    counts = [changing._counts(window) for window in range(10)]
    assert all(count[0] > 40 for count in counts[:5])
    assert all(count[0] < 24 for count in counts[5:])
    before, after = sum(counts[:5]), sum(counts)
    assert np.array_equal(changing.drawn(10), after)
    resumed = next(changing.batches(Position(5)))[1]
    assert any(same(resumed, batch) for window, batch in of_windows(changing, 6) if window == 5)
    for k in range(2):  # rows go on from where the first weights left off
        rows = changing._rows(k, int(before[k]), int(counts[5][k]))
        assert rows[0] == before[k]


def test_pair_numbers_follow_the_mixture_and_zero_weights_are_not_read() -> None:
    weights = {"eng-zho": 0.5, "eng-deu": 0.5, "eng-fra": 0.0}
    source = stream({"eng-deu": 90, "eng-zho": 90}, weights)  # no French text is needed
    for _, batch in of_windows(source, 3):
        assert (batch.source[:, 0] // 1000 - 1 == batch.pair).all()


def test_a_pair_without_text_is_refused() -> None:
    with pytest.raises(InputError, match="names eng-zho, but there is no training text"):
        stream({"eng-deu": 5}, {"eng-deu": 0.5, "eng-zho": 0.5})
    empty = {"eng-deu": numbered(5, 0).shorter_than(0)}
    with pytest.raises(InputError, match="eng-deu"):
        BatchStream(empty, Mixture.of({"eng-deu": 1.0}), batch_tokens=10, seed=0)


def test_evaluation_reads_every_row_once_and_knows_which() -> None:
    text = numbered(137, 1000)
    seen: list[int] = []
    for rows, batch in evaluation_batches(text.source, text.target, 150):
        assert (batch.source[:, 0] == 1000 + rows).all()
        assert ((batch.target != 0).sum(1) == text.target.lengths[rows]).all()
        seen += rows.tolist()
    assert sorted(seen) == list(range(137))
    assert list(evaluation_batches(*text.take(np.array([], dtype=int)), 150)) == []
