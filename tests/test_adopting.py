"""SentencePiece models of other programs: the same pieces under other ids."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from command_line import fails
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from small_text import small_bitext

from mnmt_repro.cli import main
from mnmt_repro.corpora.adopting import adopt_vocabulary
from mnmt_repro.corpora.vocabulary import SPECIAL, Vocabulary
from mnmt_repro.errors import InputError

TEXT = small_bitext(count=300)
KINDS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "BPE with bytes": {"model_type": "bpe", "byte_fallback": True},
    "ids and names of its own": {
        "unk_id": 5, "bos_id": 0, "eos_id": 3, "pad_id": 1, "unk_piece": "<oov>",
        "eos_piece": "[end]", "pad_piece": "[pad]", "user_defined_symbols": ["<mask>", "<2deu>"],
    },
}  # fmt: skip


def foreign(folder: Path, **options: Any) -> Path:
    """A model as SentencePiece makes it: by default <unk> <s> </s>, no padding, no bytes."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([*TEXT.source, *TEXT.target]), model_writer=model, minloglevel=2,
        **{"vocab_size": 340 if options.get("byte_fallback") else 70, "model_type": "unigram"}
        | options,
    )  # fmt: skip
    path = folder / "own.model"
    path.write_bytes(model.getvalue())
    return path


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_text_is_cut_into_the_same_pieces(tmp_path: Path, options: dict[str, Any]) -> None:
    path = foreign(tmp_path, **options)
    theirs = SentencePieceProcessor(model_file=str(path))
    ours = adopt_vocabulary(path, ["deu", "eng", "deu"])
    assert tuple(ours.processor.id_to_piece(i) for i in range(4)) == SPECIAL
    found = (f(ours.processor) for f in (
        SentencePieceProcessor.pad_id, SentencePieceProcessor.eos_id,
        SentencePieceProcessor.unk_id, SentencePieceProcessor.bos_id,
    ))  # fmt: skip
    assert tuple(found) == (0, 1, 2, 3)
    assert ours.languages == ("deu", "eng")
    assert (ours.tag("deu"), ours.tag("eng")) == (4, 5)
    lines = [*TEXT.source[:40], *TEXT.target[:40], "etwas ganz Anderes: 漢字!"]
    unknown = theirs.id_to_piece(theirs.unk_id())
    for line in lines:
        before = [theirs.id_to_piece(i) for i in theirs.encode(line)]
        after = [ours.processor.id_to_piece(i) for i in ours.processor.encode(line)]
        assert after == ["<unk>" if piece == unknown else piece for piece in before]
    assert ours.decode(ours.processor.encode(lines[:40])) == lines[:40]
    ours.save(tmp_path / "ours.model")
    assert Vocabulary.load(tmp_path / "ours.model").hash == ours.hash
    assert adopt_vocabulary(tmp_path / "ours.model", ["deu", "eng"]).hash == ours.hash


def test_the_command_and_training_with_it(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    foreign(tmp_path)
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(TEXT.source, TEXT.target, strict=True))
    Path("talks.tsv").write_text("eng\tdeu\n" + rows + "Ж\tЖ\n", encoding="utf-8")
    train = ["train", "--data", "eng-deu=talks.tsv", "--steps", "2", "--out", "run",
             "--d-model", "8", "--heads", "2"]  # fmt: skip
    fails([*train, "--vocabulary", "own.model"], capsys, "own.model: its first pieces are <unk>",
          "`mnmt-repro data adopt`")  # fmt: skip
    assert main(["data", "adopt", "own.model", "--languages", "eng,deu", "--out", "a.model"]) == 0
    assert "a.model: 73 pieces, new tags: deu, eng" in capsys.readouterr().out
    assert main([*train, "--vocabulary", "a.model"]) == 0
    assert "of its pieces are <unk>" in capsys.readouterr().err
    adopt = ["data", "adopt", "own.model", "--languages", "eng,xho", "--out", "a.model"]
    fails(adopt, capsys, "a.model: is there already")


def test_what_cannot_be_adopted_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.model").write_text("no model", encoding="utf-8")
    with pytest.raises(InputError, match="is not a SentencePiece model"):
        adopt_vocabulary(tmp_path / "text.model", ["eng"])
    twice = ModelProto.FromString(foreign(tmp_path).read_bytes())
    twice.pieces[-1].piece = twice.pieces[-2].piece = "QQ"
    (tmp_path / "twice.model").write_bytes(twice.SerializeToString().replace(b"QQ", b"\x83\x83"))
    with pytest.raises(InputError, match="twice.model is not a SentencePiece model"):
        adopt_vocabulary(tmp_path / "twice.model", ["eng"])
    with pytest.raises(InputError, match="cannot read the vocabulary"):
        adopt_vocabulary(tmp_path / "absent.model", ["eng"])
    with pytest.raises(InputError, match="name the languages"):
        adopt_vocabulary(foreign(tmp_path), [])
    with pytest.raises(InputError, match="language 'eng-deu': give codes, not pairs"):
        adopt_vocabulary(foreign(tmp_path), ["eng", "eng-deu"])
