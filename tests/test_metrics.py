from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
from sacrebleu.tokenizers import tokenizer_spm

from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.metrics import flores_pieces, scores

HYPOTHESES = ["the cat sat on the mat", "a dog ran home", "it rains , again and again"]
REFERENCES = ["the cat sat on a mat", "the dog ran home", "it rains again and again today"]


@pytest.fixture(autouse=True)
def no_pieces_and_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sacrebleu's folder is empty, and asking for a download fails the test."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"asked for a download: {arguments}")

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", refuse)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    config = VocabularyConfig(pieces=280, languages=("eng", "deu"))
    return train_vocabulary(config, {"eng-deu": (HYPOTHESES * 9, REFERENCES * 9)})


@pytest.mark.parametrize(
    ("language", "tokeniser"),
    [("cmn", "zh"), ("zho_Hans", "zh"), ("zh-CN", "zh"), ("ja", "char"), ("tha_Thai", "char")]
    + [("kor", "13a"), ("zha", "13a")],
)
def test_no_language_without_spaces_is_one_word_a_sentence(language: str, tokeniser: str) -> None:
    found = scores(["我今天很高兴见到你"], ["我今天很高兴认识你"], language)
    assert f"tok:{tokeniser}" in str(found["bleu_signature"])
    assert (float(found["bleu"]) > 40) == (tokeniser != "13a")


def test_spbleu_is_left_out_without_its_pieces(vocabulary: Vocabulary) -> None:
    found = scores(HYPOTHESES, REFERENCES, "eng", vocabulary=vocabulary)
    assert "spbleu" not in found


def test_own_pieces_have_another_name_and_signature(vocabulary: Vocabulary) -> None:
    found = scores(HYPOTHESES, REFERENCES, "eng", vocabulary=vocabulary)
    pieces = [
        [" ".join(vocabulary.processor.encode(line, out_type=str)) for line in side]
        for side in (HYPOTHESES, REFERENCES)
    ]
    expected = sacrebleu.corpus_bleu(pieces[0], [pieces[1]], tokenize="none").score
    assert found["piece_bleu"] == pytest.approx(expected, rel=1e-9)
    assert found["piece_bleu"] != pytest.approx(found["bleu"], rel=1e-3)
    assert f"|tok:pieces-{vocabulary.hash}|" in str(found["piece_bleu_signature"])


def test_spbleu_where_its_pieces_are(vocabulary: Vocabulary) -> None:
    """Any SentencePiece model serves for the test, put where sacrebleu looks for its own."""
    vocabulary.save(flores_pieces())
    found = scores(HYPOTHESES, REFERENCES, "zho", vocabulary=vocabulary)
    assert "|tok:flores200|" in str(found["spbleu_signature"])
    assert found["spbleu"] == found["piece_bleu"]


def test_what_cannot_be_scored() -> None:
    with pytest.raises(InputError, match="3 hypotheses, but 2 references"):
        scores(HYPOTHESES, REFERENCES[:2], "eng")
    with pytest.raises(InputError, match="no hypotheses"):
        scores([], [], "eng")
