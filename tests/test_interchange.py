"""Models of five families in and out: the same weights, logits, pieces and translations."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from command_line import fails
from hf_models import FAMILIES, LANGUAGES, sentences, write_model
from safetensors.torch import load_file, save_file
from small_text import small_bitext, write_tsv

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.cli import main
from mnmt_repro.corpora.encoding import Tags, encode, frame, tag_ids
from mnmt_repro.corpora.extending import extend_vocabulary
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.search import SearchConfig, beam_search, translate
from mnmt_repro.interchange import Ct2, Imported, read_folder, write_ct2, write_hf
from mnmt_repro.interchange.folder import INDEX
from mnmt_repro.interchange.writing import spelled
from mnmt_repro.model import Transformer
from mnmt_repro.runs.trained import load_trained
from mnmt_repro.scoring import cross_entropy, sentence_losses

EXACT = dict(rtol=0, atol=1e-5)
LIMIT = 30
ODD = ("Hello  WÖRLD ﬁ x", "  se\tza", "1+1=2, ☃!", "")


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    transformers.utils.logging.disable_progress_bar()
    yield
    transformers.utils.logging.enable_progress_bar()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any, Imported]]:
    """Folder, model of `transformers` and what we read, by family; in several files."""
    found = {}
    for family in FAMILIES:
        folder = tmp_path_factory.mktemp("hf") / family
        theirs = write_model(folder, family, shards="20KB")
        assert len(list(folder.glob("*.safetensors"))) > 2
        found[family] = (folder, theirs, read_folder(folder))
    return found


def pair_of(family: str) -> str:
    known = LANGUAGES.get(family, ("src", "aaa"))
    return f"{known[0]}-{known[1]}"


def framed(imported: Imported, family: str, lines: list[str]) -> tuple[torch.Tensor, list[int]]:
    """Source ids, padded with 0, and what the decoder starts with."""
    vocabulary, tags = imported.pieces.vocabulary, imported.pieces.tags
    source_tag, target_tag = tag_ids(vocabulary, pair_of(family), tags)
    pair = frame(
        vocabulary.encode(lines), Ragged.of([()] * len(lines)), tags=tags, source_tag=source_tag,
        target_tag=target_tag, start=vocabulary.start,
    )  # fmt: skip
    source = torch.from_numpy(pair.source.pad(int(pair.source.lengths.max())))
    return source, pair.target.flat[: pair.target.offsets[1] - 1].tolist()


def generated(
    theirs: Any, source: torch.Tensor, start: list[int], order: np.ndarray, never: Any, beam: int
) -> list[list[int]]:
    """What `generate` finds, in our ids, without start; ids after the end are left out."""
    rows, ours = torch.from_numpy(order), np.argsort(order)
    found = theirs.generate(
        input_ids=rows[source], attention_mask=(source != 0).long(),
        decoder_input_ids=rows[torch.tensor([start] * len(source))], num_beams=beam,
        early_stopping=beam > 1, length_penalty=1.0, max_new_tokens=LIMIT, do_sample=False,
        suppress_tokens=[int(order[i]) for i in never], pad_token_id=int(order[0]),
        eos_token_id=int(order[1]), forced_bos_token_id=None,
    )  # fmt: skip
    return [ours[row[len(start) :].numpy()].tolist() for row in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_pieces_and_translations_of_a_model_that_was_read(models, family: str) -> None:
    folder, theirs, imported = models[family]
    vocabulary, order = imported.pieces.vocabulary, imported.pieces.order
    ours = imported.model().eval()
    # Text is cut into the same pieces, and all but the special ones keep their ids.
    assert (order[4:] == np.arange(4, len(order))).all()
    if family != "madlad":  # T5Tokenizer of transformers 5 takes the id 2 for <unk> in any model
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for line in (*sentences()[:50], *ODD[:1]):
            expected = tokenizer(line, add_special_tokens=False)["input_ids"]
            assert order[vocabulary.encode([line]).flat].tolist() == expected, line
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, 90, (3, n), generator=generator) for n in (11, 9))
    rows = torch.from_numpy(order)
    with torch.no_grad():
        expected = theirs(input_ids=rows[source], decoder_input_ids=rows[target]).logits
        torch.testing.assert_close(ours(source, target), expected[..., rows], **EXACT)
    source, start = framed(imported, family, list(sentences()[:12]))
    for beam in (1, 4):
        expected = generated(theirs, source, start, order, vocabulary.never, beam)
        config = SearchConfig(beam=beam, max_ratio=0, max_extra=LIMIT)
        found = beam_search(ours, source, start, config, forbidden=vocabulary.never)
        # At the longest length the two differ: ours makes a sentence end, theirs leaves it open.
        ended = [row for row in range(len(source)) if 1 in expected[row]]
        assert len(ended) >= 3
        for row in ended:
            assert [*found[row][0].tokens, 1] == expected[row][: expected[row].index(1) + 1]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_transformers_saved_again_is_read_alike(
    models, tmp_path: Path, family: str
) -> None:
    write_model(tmp_path / "again", family, again=True)
    again, first = read_folder(tmp_path / "again"), models[family][2]
    assert (again.pieces.order == first.pieces.order).all()
    assert again.pieces.tags == first.pieces.tags
    old, new = first.pieces.vocabulary, again.pieces.vocabulary
    assert (new.start, new.never, new.languages) == (old.start, old.never, old.languages)
    for line in sentences()[:50]:
        assert new.encode([line]).flat.tolist() == old.encode([line]).flat.tolist()


def test_each_file_of_a_folder_is_read_once(models, tmp_path: Path, monkeypatch) -> None:
    """So that all is of one model where another takes its place meanwhile."""
    write_model(tmp_path / "again", "nllb", again=True)
    seen: list[Path] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (seen.append(path), read(path))[1])
    for folder in (models["m2m100"][0], tmp_path / "again"):
        assert len(read_folder(folder).identity) == 12
    assert len(seen) == len(set(seen)) > 5


def test_losses_are_those_of_transformers(models) -> None:
    """Its labels of an NLLB begin with the target's tag, which counts; ours do the same."""
    folder, theirs, imported = models["nllb"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        folder, src_lang="src_Latn", tgt_lang="aaa_Latn"
    )
    source, target = list(sentences()[0:8:2]), list(sentences()[1:8:2])
    batch = tokenizer(source, text_target=target, return_tensors="pt", padding=True)
    labels = batch.pop("labels")
    labels[labels == tokenizer.pad_token_id] = -100
    with torch.no_grad():
        expected = theirs(**batch, labels=labels).loss
    text = Bitext(pair="src_Latn-aaa_Latn", source=source, target=target)
    pair = encode(text, imported.pieces.vocabulary, imported.pieces.tags)
    nats, tokens = sentence_losses(imported.model(), pair)
    assert nats.sum() / tokens.sum() == pytest.approx(float(expected), abs=1e-5)


# --- out again ------------------------------------------------------------------------------------


def check_export(
    folder: Path, ours: Transformer, vocabulary: Vocabulary, tags: Tags, text: Bitext
) -> None:
    """`transformers` loads the folder, and cuts text, scores and translates as we do."""
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    names = read_folder(folder).pieces.order.tolist()
    rows = torch.tensor(names)
    for line in (*text.source, *ODD):
        encoded = vocabulary.encode([line]).flat
        ids = tokenizer(line, add_special_tokens=False)["input_ids"]
        assert ids == rows[encoded].tolist(), line
        decoded = tokenizer.decode([*rows[encoded].tolist(), names[1]], skip_special_tokens=True)
        assert decoded.strip() == vocabulary.decode([encoded.tolist()])[0].strip(), line
    encoded = encode(text, vocabulary, tags)
    source = torch.from_numpy(encoded.source.pad(int(encoded.source.lengths.max())))
    target = torch.from_numpy(encoded.target.pad(int(encoded.target.lengths.max())))
    with torch.no_grad():
        expected = theirs(
            input_ids=rows[source], attention_mask=(source != 0).long(),
            decoder_input_ids=rows[target],
        ).logits  # fmt: skip
        real = target != 0
        found = ours.eval()(source, target)
        torch.testing.assert_close(found[real], expected[..., rows][real], **EXACT)
    # As README.md says to call it.
    language, target_language = text.pair.split("-")
    kind = json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"]
    first = {"none": "", "source": f"<2{target_language}>"}.get(tags, f"<2{language}>")
    more: dict[str, Any] = {}
    if tags == "both":
        more["decoder_start_token_id"] = tokenizer.convert_tokens_to_ids(f"<2{target_language}>")
    if tags == "both-after-end":
        token = spelled(target_language, kind, tags)
        more["forced_bos_token_id"] = tokenizer.convert_tokens_to_ids(token)
        tokenizer.src_lang, first = language, ""
    batch = tokenizer([f"{first} {line}" for line in text.source], return_tensors="pt",
                      padding=True)  # fmt: skip
    for row, ids in enumerate(batch.input_ids):  # tags and text become the same ids
        kept = ids[batch.attention_mask[row].bool()].tolist()
        assert kept == rows[encoded.source.take(np.array([row])).flat].tolist()
    output = theirs.generate(input_ids=batch.input_ids, attention_mask=batch.attention_mask,
                             num_beams=1, max_new_tokens=LIMIT, **more)  # fmt: skip
    start = encoded.target.take(np.array([0])).flat[: 2 if tags == "both-after-end" else 1].tolist()
    found = beam_search(
        ours, source, start, SearchConfig(beam=1, max_ratio=0, max_extra=LIMIT),
        forbidden=vocabulary.never,
    )  # fmt: skip
    ended = [row for row, ids in enumerate(output.tolist()) if names[1] in ids[len(start) :]]
    if tags == "both-after-end":  # a tag can be forced, so that none is suppressed after it
        tagged = {names[vocabulary.tag(language)] for language in vocabulary.languages}
        ended = [row for row in ended if not tagged & set(output[row, len(start) :].tolist())]
    assert len(ended) >= 3
    for row in ended:
        ids = output[row, len(start) :].tolist()
        assert ids[: ids.index(names[1])] == rows[list(found[row][0].tokens)].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_goes_out_and_in_again_unchanged(models, tmp_path: Path, family: str) -> None:
    folder, _, imported = models[family]
    vocabulary, tags = imported.pieces.vocabulary, imported.pieces.tags
    ours = imported.model()
    write_hf(tmp_path / "out", ours, vocabulary, tags)
    again = read_folder(tmp_path / "out")
    assert again.pieces.tags == tags
    assert again.pieces.vocabulary.start == vocabulary.start
    assert again.pieces.vocabulary.languages == vocabulary.languages
    state = again.model().state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in ours.state_dict().items())
    # On disk, too, each weight is the one that was read, but for MADLAD-400's first three rows.
    written = load_file(tmp_path / "out" / "model.safetensors")
    shards = [load_file(path) for path in sorted(folder.glob("*.safetensors"))]
    read = {name: tensor for shard in shards for name, tensor in shard.items()}
    for name, tensor in written.items():
        skipped = 3 if family == "madlad" and tensor.shape[0] == len(vocabulary) else 0
        assert torch.equal(tensor[skipped:], read[name][skipped:]), name
    pair = pair_of(family)
    text = Bitext(pair=pair, source=list(sentences()[:40:2]), target=list(sentences()[1:40:2]))
    check_export(tmp_path / "out", ours, vocabulary, tags, text)


@pytest.mark.parametrize("family", ["t5", "m2m100", "nllb"])
def test_an_export_takes_the_place_of_the_original(models, tmp_path: Path, family: str) -> None:
    """The same class and codes, inputs, labels, loss of a step of training, and translations."""
    folder, _, imported = models[family]
    write_hf(tmp_path / "out", imported.model(), imported.pieces.vocabulary, imported.pieces.tags)
    source, target = list(sentences()[:12:2]), list(sentences()[1:12:2])
    generation = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    silent = generation["suppress_tokens"]  # which an original need not have
    seen: list[list[Any]] = []
    codes: dict[str, str] = {}
    if family != "t5":
        codes = dict(zip(("src_lang", "tgt_lang"), LANGUAGES[family][:2], strict=True))
    for each in (folder, tmp_path / "out"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(each, **codes)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(each).train()
        batch = tokenizer(source, text_target=target, return_tensors="pt", padding=True)
        loss = model(**batch).loss
        loss.backward()
        slope = model.get_input_embeddings().weight.grad
        model.eval()
        del batch["labels"]
        token = codes.get("tgt_lang", "")
        token = {"m2m100": f"__{token}__"}.get(family, token)
        forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(token)} if token else {}
        output = model.generate(
            **batch, **forced, suppress_tokens=silent, max_new_tokens=LIMIT, num_beams=1
        )
        texts = tokenizer.batch_decode(output, skip_special_tokens=True)
        labels = tokenizer(text_target=target)["input_ids"]
        seen.append([type(tokenizer), batch["input_ids"].tolist(), labels, loss.item(), texts])
        seen[-1].append(slope.abs().sum().item())
    assert seen[0] == seen[1]
    assert any(seen[0][4])


def test_an_m2m100_with_one_more_language_goes_to_transformers_and_back(
    models, tmp_path: Path, capsys
) -> None:
    imported = models["m2m100"][2]
    more = extend_vocabulary(imported.pieces.vocabulary, ["xho"], [], 0).vocabulary
    model = Transformer(replace(imported.shape, vocab_size=len(more)), seed=1)
    write_hf(tmp_path / "out", model, more, imported.pieces.tags)
    assert "the code of af is __af__ there" in capsys.readouterr().err  # was `src_lang="af"`
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", src_lang="__xho__")
    assert len(tokenizer) == len(more)  # no piece without a row, such as <mask>
    assert tokenizer("a")["input_ids"][0] == more.tag("xho")
    tokenizer.save_pretrained(tmp_path / "out")
    assert read_folder(tmp_path / "out").pieces.vocabulary.languages == more.languages


@pytest.fixture(scope="module")
def pieces() -> Vocabulary:
    """A vocabulary of ours, with byte fallback and tags."""
    text = small_bitext(count=200)
    config = VocabularyConfig(pieces=330, languages=("eng", "deu"))
    return train_vocabulary(config, {"eng-deu": (text.source, text.target)})


def own_model(arch: str, pieces: Vocabulary) -> Transformer:
    make = ModelConfig.t5 if arch == "t5" else ModelConfig.fairseq
    model = Transformer(make(vocab_size=len(pieces), d_model=16, layers=1, heads=2), seed=1)
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.data.normal_(0, parameter.shape[1] ** -0.5, generator=generator)
    with torch.no_grad():
        model.output_weight[1] *= 3 if arch == "t5" else 2  # so that many sentences end
    return model.eval()


@pytest.mark.parametrize(
    ("arch", "tags"), [("t5", "none"), ("t5", "source"), ("fairseq", "source"), ("fairseq", "both")]
)
def test_a_model_of_ours_goes_out(tmp_path: Path, pieces, arch: str, tags: Tags) -> None:
    model, text = own_model(arch, pieces), small_bitext(count=40, seed=3)
    write_hf(tmp_path / "out", model, pieces, tags, pairs=("deu-eng",))
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert ("Tags: <2deu> <2eng>" in readme) == (tags != "none")
    kind = "t5" if arch == "t5" else "m2m_100"
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == kind
    check_export(tmp_path / "out", model, pieces, tags, text)
    again = read_folder(tmp_path / "out")
    assert again.pieces.tags == tags and len(again.pieces.vocabulary) == len(pieces)
    assert tags == "both" or again.pieces.vocabulary.start == pieces.start
    state = again.model().state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    "family",
    ["madlad", "m2m100", "nllb", "ours-t5-source", "ours-fairseq-both", "ours-fairseq-none"],
)
def test_ctranslate2_translates_alike(
    models, tmp_path: Path, pieces, family: str, monkeypatch, capsys
) -> None:
    if family.startswith("ours"):
        _, arch, tags = family.split("-")
        # Those of mT5 have no <s>, which M2M-100 starts with.
        vocabulary = pieces if tags != "none" else models["mt5"][2].pieces.vocabulary
        model, text = own_model(arch, vocabulary), small_bitext(count=20, seed=3)
        if tags == "none":
            with torch.no_grad():
                model.output_weight[1] *= 2
        lines, target, pair = text.source, text.target, "eng-deu"
    else:
        imported = models[family][2]
        model, vocabulary = imported.model(), imported.pieces.vocabulary
        tags, pair = imported.pieces.tags, pair_of(family)
        lines, target = list(sentences()[:40:2]), list(sentences()[1:40:2])
    write_ct2(tmp_path / "out", model, vocabulary, tags, [pair])
    fast = Ct2.open(tmp_path / "out")
    if tags == "none":  # nothing but its pairs says what it translates
        monkeypatch.chdir(tmp_path)
        other = ["translate", "out", "--from", "deu", "--to", "eng", "--engine", "ct2"]
        fails(other, capsys, "--from deu --to eng: the model was trained on eng-deu")
    encoded = encode(Bitext(pair=pair, source=lines, target=target), vocabulary, tags)
    # Given translations have the same scores, which a scale of the logits would change.
    loss = fast.cross_entropy(Bitext(pair=pair, source=lines, target=target))
    assert loss == pytest.approx(cross_entropy(model, encoded), abs=1e-5)
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert (f"<2{pair.partition('-')[2]}>" in readme) == (tags != "none")
    assert ("target_prefix" in readme) == tags.startswith("both")
    # CTranslate2 shares the probability of pieces that no translation may hold among the others.
    logits, never = model.logits, torch.tensor(vocabulary.never)
    model.logits = lambda hidden: logits(hidden).index_fill(-1, never, -1e4)
    seen: set[str] = set()
    for beam, length_penalty in ((1, 1.0), (4, 0.0), (4, 1.0)):
        config = SearchConfig(
            beam=beam, length_penalty=length_penalty, max_ratio=0, max_extra=LIMIT
        )
        expected = translate(model, vocabulary, lines, pair, tags, config=config)
        found = fast.translate(lines, pair, config=config)
        assert beam > 1 or found == expected
        # Sentences that reach the longest length end in ours, and not in CTranslate2.
        short = [row for row, text in enumerate(expected)
                 if len(vocabulary.encode([text]).flat) < LIMIT // 2]  # fmt: skip
        seen.update(expected[row] for row in short)
        same = [found[row] == expected[row] for row in short]
        # After a forced tag CTranslate2 loses some beams that end at once.
        lossy = beam > 1 and tags == "both-after-end"
        assert sum(same) > len(same) / 2 if lossy else all(same)
    assert len(seen) >= 3
    with pytest.raises(InputError, match=r"line 2 has \d+ tokens, more than 1024: split it"):
        fast.translate([lines[0], " ".join(lines) * 200], pair)


@pytest.mark.parametrize("package", ["ctranslate2", "transformers"])
def test_a_package_that_ctranslate2_needs_is_named(
    models, tmp_path: Path, monkeypatch, capsys, package: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    command = ["export", str(models["nllb"][0]), "--to", "ct2", "-o", str(tmp_path / "out")]
    fails(command, capsys, f"import of {package}", "'mnmt-repro[ct2]'")
    assert not (tmp_path / "out").exists()


# --- what cannot be read --------------------------------------------------------------------------


def changed(folder: Path, tmp_path: Path, file: str, **fields: Any) -> Path:
    """A copy of a model's folder with other fields in a file; None removes one."""
    copy = tmp_path / "changed"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    about = {**json.loads((copy / file).read_text()), **fields}
    kept = {name: value for name, value in about.items() if value is not None}
    (copy / file).write_text(json.dumps(kept))
    return copy


@pytest.mark.parametrize(
    ("family", "fields", "parts"),
    [
        ("t5", {"d_kv": None}, ("config.json", "'d_kv'", "is missing; put the original")),
        ("t5", {"model_type": "umt5"}, ("'model_type' is 'umt5'", "can be read")),
        ("t5", {"vocab_size": 60}, ("do not fit", "embedding.weight is (95, 16)")),
        ("t5", {"feed_forward_proj": "relu"}, ("feed_forward_proj' is 'relu'", "can be read")),
        ("t5", {"scale_decoder_outputs": True}, ("only version 1.1",)),
        ("m2m100", {"activation_function": "gelu"}, ("'activation_function' is 'gelu'",)),
        ("t5", {"num_layers": 3}, ("the weight encoder.block.2", "is missing; put a whole copy")),
        ("m2m100", {"d_model": "wide"}, ("'d_model' must be a whole number", "original file")),
        ("nllb", {"decoder_start_token_id": 0}, ("'decoder_start_token_id'", "end of sentence")),
        (
            "nllb",
            {"language_tags": "odd"},
            ("'language_tags'", "must be one of none, source, both"),
        ),
    ],
)
def test_one_error_names_file_field_and_remedy(
    models, tmp_path: Path, family: str, fields: dict[str, Any], parts: tuple[str, ...]
) -> None:
    folder = changed(models[family][0], tmp_path, "config.json", **fields)
    with pytest.raises(InputError) as error:
        read_folder(folder)
    for part in parts:
        assert part in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("family", "removed", "part"),
    [
        ("t5", ["spiece.model"], "no tokenizer here; put .* .spiece.model"),
        ("nllb", ["tokenizer_config.json"], "no file has the ids of the language tags; put"),
        ("nllb", ["model.safetensors.index.json"], "has none of model.safetensors, "),
        ("mt5", ["config.json"], "config.json: cannot be read"),
    ],
)
def test_a_missing_file_is_named(
    models, tmp_path: Path, family: str, removed: list[str], part: str
) -> None:
    folder = changed(models[family][0], tmp_path, "config.json")
    for name in removed:
        (folder / name).unlink()
    with pytest.raises(InputError, match=part):
        read_folder(folder)


@pytest.mark.parametrize(
    "weight_map",
    [[], {}, {"shared.weight": 1}, {"a": "../t5/x.safetensors"}, {"a": "/x.bin"}, {"a": ""}],
)
def test_a_damaged_index_is_named(models, tmp_path: Path, weight_map: Any) -> None:
    folder = changed(models["nllb"][0], tmp_path, INDEX, weight_map=weight_map)
    with pytest.raises(InputError, match=rf"{INDEX}: .*'weight_map.*(whole copy|original file)"):
        read_folder(folder)


def test_an_export_takes_the_vocabulary_of_the_model(tmp_path: Path, pieces) -> None:
    model = Transformer(replace(own_model("t5", pieces).config, vocab_size=len(pieces) + 1))
    for write in (write_ct2, write_hf):
        with pytest.raises(InputError, match=r"vocabulary has \d+ pieces, the model \d+"):
            write(tmp_path / "out", model, pieces, "source")


def test_a_torn_shard_is_named(models, tmp_path: Path) -> None:
    folder = changed(models["t5"][0], tmp_path, "config.json")
    shard = sorted(folder.glob("*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-50])
    with pytest.raises(InputError, match=rf"cannot read .*{shard.name}: .*whole copy"):
        read_folder(folder)


def test_an_export_is_whole_or_not_there(models, tmp_path: Path, monkeypatch) -> None:
    imported = models["t5"][2]

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mnmt_repro.training.checkpoint.save_file", fail)
    for write in (write_hf, write_ct2):
        with pytest.raises(InputError, match="--out [^ ]*/out: cannot be written: No space left"):
            write(tmp_path / "out", imported.model(), imported.pieces.vocabulary, "none")
        assert not list(tmp_path.iterdir())
    (tmp_path / "full").mkdir()
    save_file({"a": torch.zeros(1)}, tmp_path / "full" / "a.safetensors")
    with pytest.raises(InputError, match="is there already"):
        write_hf(tmp_path / "full", imported.model(), imported.pieces.vocabulary, "none")


# --- the commands ---------------------------------------------------------------------------------

CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопярстувшжыз")


@pytest.mark.parametrize("family", ["nllb", "t5"])
def test_a_language_is_added_and_the_model_goes_out_again(
    models, tmp_path: Path, family: str, monkeypatch, capsys
) -> None:
    """Import, upgrade (a language, twice the width, a layer more), export, load, generate."""
    folder, _, imported = models[family]
    monkeypatch.chdir(tmp_path)
    source, target = list(sentences()[:200:2]), list(sentences()[1:200:2])
    new = [line.translate(CYRILLIC) for line in target]
    old_pair, first = pair_of(family), pair_of(family).partition("-")[0]
    write_tsv(Path("old.tsv"), old_pair, source, target)
    write_tsv(Path("new.tsv"), f"{first}-xho", source, new)
    if family == "t5":  # without tags, the pieces of both languages count as new
        write_tsv(Path("new.tsv"), "aaa-xho", new, new)
    known = "aaa" if family == "t5" else first
    assert main([
        "data", "extend", str(folder), "--data", f"{known}-xho=new.tsv",
        "--new-pieces", "60", "--out", "both.model",
    ]) == 0  # fmt: skip
    note = "so only pairs of aaa, xho can be trained; to train others too, name their text"
    shown = capsys.readouterr()
    assert (note in shown.err) == (family == "t5")
    assert f"new tags: {'aaa, ' * (family == 't5')}xho, hash" in shown.out
    assert (f"{first}: 0.0% of 100 sentences are cut" in shown.out) == (family != "t5")
    both = Vocabulary.load("both.model")
    old = imported.pieces.vocabulary
    assert [both.processor.id_to_piece(i) for i in range(len(old))] == [
        old.processor.id_to_piece(i) for i in range(len(old))
    ]
    learnt = len(both) - len(old) - len(both.languages) + len(old.languages)
    assert "xho" in both.languages and learnt > 4
    assert f"{learnt} of 60 new pieces" in shown.out
    assert main([
        "upgrade", "--from", str(folder), "--vocab", "both.model", "--wider", "2", "--deeper", "0",
        "--noise", "0", "-o", "wide", "--loss-on", f"{old_pair}=old.tsv",
        "--loss-on", f"{known}-xho=new.tsv",
    ]) == 0  # fmt: skip
    shown = capsys.readouterr().out
    arrow = "(.+) -> (.+) nats a"
    losses = {
        pair: [None if each == "no tag" else float(each) for each in printed]
        for pair, *printed in re.findall(rf"(\S+): {arrow} token\n  {arrow} character", shown)
    }  # before and after a token, before and after a character
    tokens = {name: encode(Bitext(pair=old_pair, source=source, target=target), pieces,
                           imported.pieces.tags).target.lengths.sum() - len(target)
              for name, pieces in (("before", old), ("after", both))}  # fmt: skip
    characters = sum(len(line) + 1 for line in target)
    for place, count in enumerate(tokens.values()):
        nats = losses[old_pair][2 + place] * characters
        assert nats == pytest.approx(losses[old_pair][place] * count, rel=1e-3)
    # No old piece spells a Cyrillic letter.
    assert int(re.search(r"rows of embedding: .* copies of <unk>: (\d+)", shown)[1]) > 4
    # Old logits stay, and the new pieces take a share of a random model's probability.
    before, after = losses[old_pair][:2]
    gap = after - before
    assert 0 < gap < np.log(len(both) / len(old)) + 0.2
    before, after = losses[f"{known}-xho"][:2]
    assert (before is None) == (family != "t5") and after > 0
    wide = load_trained(Path("wide"))
    assert wide.model.config.d_ff == 2 * imported.shape.d_ff
    text = Bitext(pair=old_pair, source=source[:9], target=target[:9])
    encoded = encode(text, old, imported.pieces.tags)
    again = encode(text, both, imported.pieces.tags)
    assert again.target.flat.tolist() == encoded.target.flat.tolist()  # old text is cut as before
    sides = [torch.from_numpy(side.pad(int(side.lengths.max())))
             for side in (encoded.source, encoded.target)]  # fmt: skip
    with torch.no_grad():
        before = imported.model().eval()(*sides)
        torch.testing.assert_close(wide.model(*sides)[..., : len(old)], before, **EXACT)

    assert main([
        "upgrade", "--from", str(folder), "--vocab", "both.model", "--wider", "2", "--deeper", "1",
        "-o", "start",
    ]) == 0  # fmt: skip
    assert main(["export", "start", "--to", "hf", "-o", "out"]) == 0
    start = load_trained(Path("start"))
    assert start.model.config.encoder_layers == imported.shape.encoder_layers + 1
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained("out").eval()
    read = read_folder(Path("out"))
    state = start.model.state_dict()
    assert all(
        torch.equal(tensor, state[name]) for name, tensor in read.model().state_dict().items()
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained("out")
    assert type(tokenizer).__name__ == {"nllb": "NllbTokenizer", "t5": "T5Tokenizer"}[family]
    for line in (*source[:5], *new[:5]):
        ids = [read.pieces.order[i] for i in both.encode([line]).flat]
        assert tokenizer(line, add_special_tokens=False)["input_ids"] == ids
    if family == "nllb":  # a new language is called as the old ones are
        for language, code in ((first, first), ("xho", "__xho__")):
            tokenizer.src_lang = code
            lead = tokenizer(source[0])["input_ids"][0]
            assert lead == read.pieces.order[both.tag(language)]
    batch = tokenizer(new[:2], return_tensors="pt", padding=True)
    found = theirs.generate(**batch, max_new_tokens=5)
    assert found.shape[0] == 2
    if family != "t5":
        assert main(["evaluate", "start", "--data", f"{first}-xho=new.tsv", "--json"]) == 0
        assert json.loads(capsys.readouterr().out[-1000:].split("]")[-2].split("[")[-1])


def test_commands_take_a_hugging_face_model(models, tmp_path: Path, monkeypatch, capsys) -> None:
    folder = models["nllb"][0]
    monkeypatch.chdir(tmp_path)
    source, target = list(sentences()[:40:2]), list(sentences()[1:40:2])
    write_tsv(Path("test.tsv"), "src-aaa", source, target)  # the script may be left out
    assert main(["export", str(folder), "--to", "hf", "-o", "out"]) == 0
    capsys.readouterr()
    command = ["compare", str(folder), "out", "--data", "src-aaa=test.tsv", "--json"]
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["difference"] == pytest.approx(0, abs=1e-6)
    assert main(["evaluate", "out", "--data", "src-aaa=test.tsv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["sentences"] == row["sentences"] == len(source)
    assert main(["export", "out", "--to", "ct2", "-o", "fast"]) == 0
    capsys.readouterr()
    outputs = []
    for given, way in (
        (folder, "--engine torch"), ("out", "--engine torch"), ("fast", "--engine ct2"),
        (folder, "--precision bfloat16"),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(source).encode())))
        command = ["translate", str(given), "--from", "src", "--to", "aaa", "--beam", "1"]
        assert main([*command, *way.split()]) == 0
        outputs.append(capsys.readouterr().out.splitlines())
    assert outputs[0] == outputs[1] and len(outputs[0]) == len(source)
    for other in outputs[2:]:
        assert sum(a == b for a, b in zip(outputs[0], other, strict=True)) > len(source) / 2
    fast = ["translate", str(folder), "--to", "aaa", "--engine", "ct2"]
    fails([*fast, "--precision", "bfloat16"], capsys, "--precision", "--engine torch")
    fails(fast, capsys, "is not of CTranslate2", "--to ct2 --out NEW")
    fails(["translate", "out", "--to", "aaa"], capsys, "say --from which language")
    for command in ("translate fast --to aaa", "upgrade --from fast -o new"):
        fails(command.split(), capsys, "fast: is of CTranslate2", "--engine ct2")
    text = ["--data", "src-aaa=test.tsv"]
    small = ["export", "out", "--to", "ct2", "-o", "small", "--quantize", "int8"]
    fails([*small, *text, "--most-lost", "-1"], capsys, "--most-lost")
    for alone in (text, ["--most-lost", "2"], ["--skip-bad"]):
        fails([*small[:-2], *alone], capsys, alone[0], "go with --quantize")
    assert main([*small, *text, "--most-lost", "100"]) == 0
    before, after = map(
        float, re.search(r"loss (\S+) -> (\S+) nats", capsys.readouterr().out).groups()
    )
    assert before != after and after == pytest.approx(before, rel=0.02)
    assert Path("small/model.bin").stat().st_size < 0.8 * Path("fast/model.bin").stat().st_size
    monkeypatch.setattr(Ct2, "translate", lambda own, lines, pair: next(scripted))
    scripted = iter([target, source])  # a perfect model, and a ruined one
    fails([*small[:5], "ruined", *small[6:], *text], capsys, "which loses more than --most-lost 1")
    assert not Path("ruined").exists() and not list(Path().glob(".ruined*"))
    two = replace(
        load_trained(Path("out")), weights={"src-aaa": 0.5, "bbb-aaa": 0.5}, any_pair=False
    )
    with pytest.raises(InputError, match="--to aaa: say --from which language"):
        two.direction("aaa", None)  # the source has a tag that the decision needs
    write_tsv(Path("other.tsv"), "src-zzz", source, target)
    fails(["evaluate", "out", "--data", "src-zzz=other.tsv"], capsys, "no tag <2zzz>")
    for command in ("translate {} --from src --to aaa_latn", "compare {} out --data src-aaa_latn=x",
                    "translate fast --from src --to aaa_latn --engine ct2"):  # fmt: skip
        fails(command.format(folder).split(), capsys, "no tag <2aaa_latn>", "did you mean aaa_Lat")
    t5 = str(models["t5"][0])
    fails(["translate", t5, "--to", "klingon"], capsys, "--to klingon: klingon is no code, such as")
    known = ["data", "extend", "out", "--data", "src_latn-xho=test.tsv?source=src&target=aaa"]
    fails([*known, "--new-pieces", "0", "--out", "x"], capsys, "is written 'src_Latn' elsewhere")
    few = [*known[:-1], "src-xho=test.tsv?source=src&target=aaa", "--out", "x"]
    fails([*few, "--keep-old", "--languages", "src,xho"], capsys, "--keep-old: --data has no text")
    assert main(few) == 0
    assert "proposed: --new-pieces 250; the text gives no more" in capsys.readouterr().out
    write_tsv(Path("odd.tsv"), "src-aaa", ["a"], ["Ж Ж"])
    for command, times in (("evaluate out", 1), (f"compare {folder} out", 2)):
        assert main([*command.split(), "--data", "src-aaa=odd.tsv"]) == 0
        told = capsys.readouterr().err
        assert told.count("cannot write 2 token(s) of src-aaa, odd.tsv; <unk> is cheap") == times
    fails(["export", str(folder), "--to", "hf", "-o", "out"], capsys, "is not empty")
    fails(
        ["upgrade", "--from", "out", "--optimiser", "carried", "-o", "new"], capsys, "no optimiser"
    )
    fails(
        ["evaluate", "out"], capsys, "does not say which files", "name text with --data PAIR=FILE"
    )
    fails(["compare", "out", "out"], capsys, "neither model says", "name text with --data")
    fails(["train", "--continue-from", "out"], capsys, "`mnmt-repro upgrade --from out --out NEW`")
    known = ["--data", "src-aaa=test.tsv", "--out", "fresh.model"]
    fails(["data", "extend", "out", *known], capsys, "leave out --vocab in `mnmt-repro upgrade`")
    assert main(["data", "vocabulary", "--pieces", "290", *known]) == 0
    assert main(["upgrade", "--from", "out", "--vocab", "fresh.model", "-o", "fresh"]) == 0
    shown = capsys.readouterr().err
    assert "tags are dropped; a vocabulary of `mnmt-repro data extend` keeps them all" in shown
    assert "no loss is shown" in shown and "name text with --loss-on PAIR=FILE" in shown
