"""A vocabulary extended by pieces of new text: how many, which ones, and what they change."""

from __future__ import annotations

import io

import pytest
from sentencepiece import SentencePieceTrainer
from small_text import small_bitext

from mnmt_repro.corpora.conlang import Conlang, ConlangConfig
from mnmt_repro.corpora.extending import NUMBERS, WORTH, extend_vocabulary, propose
from mnmt_repro.corpora.vocabulary import SETTINGS, Vocabulary
from mnmt_repro.errors import InputError

OLD = small_bitext()
WORDS = Conlang(ConlangConfig()).text("src-aaa", 0, 800, split="train")
NEW = [line.translate(str.maketrans("ae", "čž")) for _, line in WORDS]


def trained(kind: str) -> Vocabulary:
    """Without bytes, so that the letters of the new text are unknown."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([*OLD.source, *OLD.target]), model_writer=model, vocab_size=90,
        model_type=kind, user_defined_symbols=["<2eng>"], minloglevel=2, num_threads=1, **SETTINGS,
    )  # fmt: skip
    return Vocabulary(model.getvalue())


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def old(request) -> Vocabulary:
    return trained(request.param)


def test_new_pieces_are_counted_without_those_that_are_known(old: Vocabulary) -> None:
    made = extend_vocabulary(old, ["ces"], NEW, 30)
    assert len(made.occurrences) == len(made.vocabulary) - len(old) - 1 == 30 - made.rare
    assert {"č", "ž"} <= made.occurrences.keys()  # else they would be <unk>
    ids = made.vocabulary.encode(NEW).flat.tolist()
    for piece, count in made.occurrences.items():  # each can be reached, by BPE's merges too
        assert count == ids.count(made.vocabulary.processor.piece_to_id(piece)) or count < 2
    for index in range(len(old)):
        pieces = [each.processor.id_to_piece(index) for each in (old, made.vocabulary)]
        assert pieces[0] == pieces[1]
    rare = [*NEW, "Ҙa", "aҘ"]  # so rare that SentencePiece would leave it out
    assert extend_vocabulary(old, ["ces"], rare, 30).fit(rare)[1] == 0
    assert made.fit(NEW)[1] == 0 < extend_vocabulary(old, ["ces"], NEW, 0).fit(NEW)[1]
    few = extend_vocabulary(old, ["ces"], NEW, 30, min_count=100)
    assert len(few.occurrences) + few.rare == 30 and len(few.occurrences) < 30


def test_a_tag_alone(old: Vocabulary) -> None:
    made = extend_vocabulary(old, ["ces", "eng"], [], 0)
    assert len(made.vocabulary) == len(old) + 1 and made.vocabulary.languages == ("eng", "ces")
    with pytest.raises(InputError, match="language 'Eng': is written 'eng' elsewhere"):
        extend_vocabulary(old, ["Eng"], [], 0)


def test_old_text_stays_as_it_was_cut(old: Vocabulary) -> None:
    free = extend_vocabulary(old, ["ces"], NEW, 60)
    assert free.recut(OLD.source) > 0 == free.recutting
    kept = extend_vocabulary(old, ["ces"], NEW, 60, keep=OLD.source)
    assert kept.recutting > 0 == kept.recut(OLD.source)
    assert old.encode(OLD.source).flat.tolist() == kept.vocabulary.encode(OLD.source).flat.tolist()
    assert {"č", "ž"} <= kept.occurrences.keys()


def test_a_number_of_pieces_is_proposed() -> None:
    old = trained("unigram")
    tried = [extend_vocabulary(old, ["ces"], NEW, number) for number in (10, 20, 40, 80)]
    lengths = [made.fit(NEW)[0] for made in tried]
    assert lengths == sorted(lengths)
    worth = [more >= WORTH * now for now, more in zip(lengths, lengths[1:], strict=False)]
    assert propose(tried, NEW) is tried[worth.index(False) if False in worth else -1]
    most = extend_vocabulary(old, ["ces"], NEW, NUMBERS[-1])
    assert most.exhausted and not tried[0].exhausted
    assert propose([tried[0], most], NEW) is most
