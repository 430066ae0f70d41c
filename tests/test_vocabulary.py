"""SentencePiece vocabularies: fixed ids, tags, bytes, sampling, and files that are none."""

from __future__ import annotations

import pytest
from small_text import small_bitext

from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError

BITEXT = small_bitext()
TEXT = {"eng-deu": (BITEXT.source, BITEXT.target)}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train_vocabulary(VocabularyConfig(pieces=330, languages=("deu", "eng", "zho")), TEXT)


def test_special_ids_tags_and_size_are_as_declared(vocabulary: Vocabulary) -> None:
    processor = vocabulary.processor
    assert [processor.id_to_piece(i) for i in range(7)] == [
        "<pad>", "</s>", "<unk>", "<s>", "<2deu>", "<2eng>", "<2zho>",
    ]  # fmt: skip
    assert (processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id()) == (
        0, 1, 2, 3,
    )  # fmt: skip
    assert len(vocabulary) == 330
    assert vocabulary.languages == ("deu", "eng", "zho")
    assert [vocabulary.tag(language) for language in ("deu", "zho")] == [4, 6]
    with pytest.raises(InputError, match=r"no tag <2fra>; there are deu, eng, zho"):
        vocabulary.tag("fra")


def test_what_was_never_seen_survives_as_bytes(vocabulary: Vocabulary) -> None:
    unseen = ["猫 ☂ Ω", "ẞ й"]
    rows = vocabulary.encode(unseen)
    ids = [rows.flat[a:b].tolist() for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
    assert 2 not in rows.flat  # no <unk>
    assert vocabulary.decode(ids) == unseen
    # 猫 is E7 8C AB in UTF-8.
    pieces = [vocabulary.processor.id_to_piece(i) for i in ids[0]]
    assert ["<0xE7>", "<0x8C>", "<0xAB>"] in [pieces[i : i + 3] for i in range(len(pieces))]


def test_a_translation_is_one_line_whatever_bytes_a_model_gives(vocabulary: Vocabulary) -> None:
    breaks = [vocabulary.processor.piece_to_id(f"<0x{byte:02X}>") for byte in b"\0\n\r"]
    (text,) = vocabulary.decode([[*breaks, vocabulary.processor.piece_to_id("<0x41>")]])
    assert text == "   A"


def test_the_same_input_gives_the_same_model(vocabulary: Vocabulary) -> None:
    again = train_vocabulary(VocabularyConfig(pieces=330, languages=("zho", "eng", "deu")), TEXT)
    assert again.model == vocabulary.model
    assert again.hash == vocabulary.hash
    other = train_vocabulary(VocabularyConfig(pieces=331, languages=("deu", "eng", "zho")), TEXT)
    assert other.hash != vocabulary.hash


def test_a_vocabulary_smaller_than_its_required_pieces_is_refused() -> None:
    # 4 special ids + 2 tags + 256 bytes = 262, and one more for anything to be learned.
    with pytest.raises(InputError, match="special ids, tags and bytes take 262 already"):
        VocabularyConfig(pieces=262, languages=("eng", "deu"))
    VocabularyConfig(pieces=263, languages=("eng", "deu"))


def test_more_pieces_than_the_text_holds_are_refused() -> None:
    config = VocabularyConfig(pieces=30_000, languages=("eng", "deu"))
    with pytest.raises(InputError, match="--pieces 30000: this text gives at most [1-9]"):
        train_vocabulary(config, TEXT)
    with pytest.raises(InputError, match="at least one sentence of every pair"):
        train_vocabulary(config, {"eng-deu": ([], [])})


def test_temperature_gives_a_small_pair_more_of_the_sample() -> None:
    """Of 200 lines read, 2 % are the small pair's at temperature 1 and nearly half at 100; so
    only then do its words get pieces of their own.
    """
    common = small_bitext(count=1960)
    words = ["umatshini", "ifayile", "ifowuni", "igama", "ukukhangela", "umyalezo", "iphepha"]
    rare = [f"{a} {b} {c}" for a in words for b in words for c in words][:40]
    text = {"eng-deu": (common.source, common.target), "eng-xho": (rare, rare)}

    def pieces_for_rare(temperature: float) -> int:
        config = VocabularyConfig(
            pieces=320, languages=("eng",), temperature=temperature, sentences=200
        )
        return len(train_vocabulary(config, text).encode(rare).flat)

    assert pieces_for_rare(100.0) < 0.8 * pieces_for_rare(1.0)


def test_files_that_are_no_vocabulary_are_refused(tmp_path, vocabulary: Vocabulary) -> None:
    path = tmp_path / "sub" / "own.model"
    vocabulary.save(path)
    assert Vocabulary.load(path).hash == vocabulary.hash
    path.write_bytes(vocabulary.model[:1000])
    with pytest.raises(InputError, match=r"own\.model is not a SentencePiece model"):
        Vocabulary.load(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"own\.model is empty"):
        Vocabulary.load(path)
    with pytest.raises(InputError, match=r"cannot read the vocabulary .*absent\.model"):
        Vocabulary.load(tmp_path / "absent.model")
