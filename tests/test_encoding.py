"""From text to ids: tags of both papers, start and end, conlang ids, the cache on disk."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_text import small_bitext

from mnmt_repro.corpora.batches import EncodedPair
from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.encoding import (
    Tags,
    encode,
    encode_cached,
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


def test_the_cache_returns_what_was_encoded_and_knows_the_tags(
    bitext: Bitext, vocabulary: Vocabulary, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path))
    for tags in ("none", "source"):
        plain = encode(bitext, vocabulary, tags)
        for _ in range(2):  # written, then read
            cached = encode_cached(bitext, vocabulary, tags)
            assert rows(cached.source) == rows(plain.source)
            assert rows(cached.target) == rows(plain.target)
    files = list((tmp_path / "encoded").iterdir())
    assert len(files) == 2
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(files[0]))  # no folder: nothing can be kept there
    uncached = encode_cached(bitext, vocabulary, "none")
    assert rows(uncached.source) == rows(encode(bitext, vocabulary, "none").source)
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path))
    with monkeypatch.context() as patch:  # other code might refuse the text
        patch.setattr("mnmt_repro.corpora.encoding.__file__", str(files[0]))
        encode_cached(bitext, vocabulary, "none")
    assert len(list((tmp_path / "encoded").iterdir())) == 3
    files[0].write_bytes(b"PK torn")  # a damaged file is made again, not believed
    for tags in ("none", "source"):
        again = encode_cached(bitext, vocabulary, tags)
        assert rows(again.source) == rows(encode(bitext, vocabulary, tags).source)


def test_the_cache_knows_the_vocabulary_and_both_sides(
    bitext: Bitext, vocabulary: Vocabulary, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path))
    text = {bitext.pair: (bitext.source, bitext.target)}
    languages = tuple(sorted(bitext.pair.split("-")))
    other = train_vocabulary(VocabularyConfig(pieces=330, languages=languages), text)
    backwards = replace(bitext, target=bitext.target[::-1])
    found = [
        encode_cached(each, pieces, "none")
        for each, pieces in ((bitext, vocabulary), (bitext, other), (backwards, vocabulary))
    ]
    assert rows(found[1].source) == rows(encode(bitext, other, "none").source)
    assert rows(found[1].source) != rows(found[0].source)
    assert rows(found[2].target) == rows(found[0].target)[::-1] != rows(found[0].target)


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
