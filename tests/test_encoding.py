"""From text to ids: tags of both papers, start and end, conlang ids, the cache on disk."""

from __future__ import annotations

import pytest
from small_text import small_bitext

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.encoding import (
    Tags,
    encode,
    encode_conlang,
    first_syllable,
    frame,
)
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.vocabulary import BOS, EOS, Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError


def rows(ragged: Ragged) -> list[list[int]]:
    return [
        ragged.flat[a:b].tolist()
        for a, b in zip(ragged.offsets[:-1], ragged.offsets[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("tags", "source", "target"),
    [
        ("none", [[50, 51, EOS], [52, EOS]], [[BOS, 60, EOS], [BOS, 61, 62, EOS]]),
        ("source", [[8, 50, 51, EOS], [8, 52, EOS]], [[BOS, 60, EOS], [BOS, 61, 62, EOS]]),
        ("both", [[7, 50, 51, EOS], [7, 52, EOS]], [[8, 60, EOS], [8, 61, 62, EOS]]),
    ],
)
def test_tags_of_both_papers(tags: Tags, source: list, target: list) -> None:
    pair = frame(
        Ragged.of([[50, 51], [52]]), Ragged.of([[60], [61, 62]]),
        tags=tags, source_tag=7, target_tag=8,
    )  # fmt: skip
    assert rows(pair.source) == source
    assert rows(pair.target) == target


@pytest.fixture(scope="module")
def bitext() -> Bitext:
    return small_bitext(count=60)


@pytest.fixture(scope="module")
def vocabulary(bitext: Bitext) -> Vocabulary:
    config = VocabularyConfig(pieces=310, languages=("eng", "deu"))
    return train_vocabulary(config, {"eng-deu": (bitext.source, bitext.target)})


def test_encoding_round_trip_with_tags(bitext: Bitext, vocabulary: Vocabulary) -> None:
    pair = encode(bitext, vocabulary, "both")
    first = rows(pair.source)[0]
    assert first[0] == vocabulary.processor.piece_to_id("<2eng>")
    assert rows(pair.target)[0][0] == vocabulary.processor.piece_to_id("<2deu>")
    assert vocabulary.decode([first[1:]]) == [bitext.source[0]]
    assert vocabulary.decode([row[1:] for row in rows(pair.target)]) == bitext.target


def test_a_tag_within_text_is_refused(vocabulary: Vocabulary) -> None:
    """It would ask for a language, as the tag in front does."""
    for sides in (["a", "b <2deu> c"], ["d", "e"]), (["d", "e"], ["a", "b <2deu> c"]):
        bitext = Bitext(pair="eng-deu", source=sides[0], target=sides[1])
        with pytest.raises(InputError, match="eng-deu: the sentence 'b <2deu> c' holds .*<2deu>"):
            encode(bitext, vocabulary, "none")


def test_long_sentences_are_left_out_by_what_is_read_or_predicted() -> None:
    pair = EncodedPair(
        Ragged.of([[5, 5, 1], [5, 5, 5, 1], [5, 1]]),  # 3, 4 and 2 tokens to read
        Ragged.of([[3, 5, 5, 1], [3, 5, 1], [3, 5, 5, 5, 1]]),  # 3, 2 and 4 to predict
    )
    kept = pair.shorter_than(3)
    assert rows(kept.source) == [[5, 5, 1]]
    assert rows(kept.target) == [[3, 5, 5, 1]]


CONLANG = Conlang(ConlangConfig(concepts=16, syllables=8, min_concepts=3, max_concepts=4))


def test_conlang_ids_are_specials_then_tags_then_syllables() -> None:
    assert first_syllable(CONLANG.config) == 4 + 3
    pair = encode_conlang(CONLANG, "src-bbb", "test", 20, "source")
    source, target = CONLANG.sentences("src-bbb", 0, 20, split="test")
    assert rows(pair.source) == [[4 + 2, *(i + 7 for i in row), 1] for row in rows(source)]
    assert rows(pair.target) == [[3, *(i + 7 for i in row), 1] for row in rows(target)]
