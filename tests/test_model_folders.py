"""Folders of Hugging Face models that are damaged, or hold more than our model computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hf_models import sentences, write_model
from safetensors.torch import load_file, save_file

from mnmt_repro.errors import InputError
from mnmt_repro.interchange import read_folder

Copy = Callable[[str], Path]
QUERY = "encoder.block.0.layer.0.SelfAttention.q.weight"
WEIGHTS, SETTINGS = "model.safetensors", "tokenizer_config.json"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of small models; those of `-again` have a `tokenizer.json` alone."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("t5", "m2m100", "nllb", "t5-again", "nllb-again"):
        family, _, again = name.partition("-")
        write_model(folder / name, family, again=bool(again))
    return folder


@pytest.fixture
def copy(originals: Path, tmp_path: Path) -> Copy:
    """A copy of a folder, to be changed."""
    return lambda name: Path(shutil.copytree(originals / name, tmp_path / name))


def change(path: Path, act: Callable[[Any], object]) -> None:
    """Change a JSON file in place; an absent one begins empty."""
    value = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    act(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def refused(folder: Path, *parts: str) -> None:
    with pytest.raises(InputError) as error:
        read_folder(folder)
    for part in (str(folder), *parts):
        assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bin_file_is_read_like_safetensors(copy: Copy, originals: Path) -> None:
    expected = read_folder(originals / "t5").model().state_dict()
    folder = copy("t5")
    weights = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    for zipped in (True, False):  # as torch writes it today, and did before version 1.6
        torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        imported = read_folder(folder)
        assert len(imported.identity) == 12
        state = imported.model().state_dict()
        assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())
    torch.save({"shared.weight": Path("/")}, folder / "pytorch_model.bin")  # would run code
    refused(folder, "pytorch_model.bin: it is damaged, or holds something else than tensors")
    torch.save({"shared.weight": [1.0]}, folder / "pytorch_model.bin")
    refused(folder, "pytorch_model.bin", "something else than tensors")


@pytest.mark.parametrize(
    ("family", "name", "tensor", "parts"),
    [
        ("t5", QUERY, torch.ones(12, 16, dtype=torch.int8), (QUERY, "torch.int8", "float32")),
        ("t5", QUERY, torch.ones(12, 16).to(torch.float8_e4m3fn), (QUERY, "float8", "float32")),
        ("t5", f"{QUERY}_scale", torch.ones(1), (f"{QUERY}_scale", "quantised")),
        ("t5", "encoder.q.lora_A.weight", torch.ones(2, 16), ("lora_A", "merge_and_unload")),
        ("t5", "encoder.block.2.layer.0.layer_norm.weight", torch.ones(16), ("encoder.block.2",)),
        ("t5", "encoder.embed_tokens.weight", torch.ones(95, 16), ("shared.weight", "differ")),
        ("m2m100", "lm_head.weight", torch.ones(196, 16), ("model.shared.weight", "differ")),
    ],
)
def test_weights_that_would_be_ignored_are_named(
    copy: Copy, family: str, name: str, tensor: torch.Tensor, parts: tuple[str, ...]
) -> None:
    folder = copy(family)
    save_file({**load_file(folder / WEIGHTS), name: tensor}, folder / WEIGHTS)
    refused(folder, *parts)


def test_settings_that_would_be_ignored_are_named(copy: Copy) -> None:
    folder = copy("t5")
    change(folder / "config.json", lambda it: it.update(quantization_config={"bits": 8}))
    refused(folder, "config.json", "'quantization_config'", "float32")
    nllb = copy("nllb")  # whose tag of the source then stands behind the sentence
    change(nllb / SETTINGS, lambda it: it.update(legacy_behaviour=True))
    refused(nllb, "tokenizer_config.json", "'legacy_behaviour'")
    change(folder / "adapter_config.json", lambda it: it.update(peft_type="LORA"))
    refused(folder, "adapter_config.json", "merge_and_unload")


def rows(folder: Path) -> dict[str, int]:
    """Row of each language's tag."""
    pieces = read_folder(folder).pieces
    tags = {each: pieces.vocabulary.tag(each) for each in pieces.vocabulary.languages}
    return {language: int(pieces.order[tag]) for language, tag in tags.items()}


def test_a_tag_has_the_row_that_a_file_gives_it(copy: Copy) -> None:
    expected = {"src_Latn": 91, "aaa_Latn": 92, "bbb_Latn": 93}
    folder = copy("nllb")
    assert rows(folder) == expected
    change(folder / SETTINGS, lambda it: it.pop("added_tokens_decoder"))
    listed = {"additional_special_tokens": ["bbb_Latn", "hsb_Latn", "aaa_Latn", "src_Latn"]}
    change(folder / "special_tokens_map.json", lambda it: it.update(listed))
    refused(folder, "no file has the ids", "added_tokens.json")  # an order is no id
    change(folder / "added_tokens.json", lambda it: it.update(expected, hsb_Latn=95))
    change(folder / "added_tokens.json", lambda it: it.update({"<mask>": 94}))
    assert rows(folder) == {**expected, "hsb_Latn": 95}
    change(folder / "added_tokens.json", lambda it: it.update(hsb_Latn=50))
    refused(folder, "hsb_Latn has the id 50 of the piece")

    folder = copy("m2m100")  # whose class gives the ids, whatever a file lists
    tokens = {"additional_special_tokens": ["__de__", "__en__"]}
    change(folder / "special_tokens_map.json", lambda it: it.update(tokens))
    assert [rows(folder)[language] for language in ("af", "de", "en")] == [91, 107, 109]
    change(folder / SETTINGS, lambda it: it.update(language_codes="wmt21"))
    assert list(rows(folder)) == ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"]

    folder = copy("t5")
    change(folder / "added_tokens.json", lambda it: it.update({"<2hsb>": 94}))
    assert rows(folder) == {"hsb": 94}
    change(
        folder / SETTINGS, lambda it: it.update(added_tokens_decoder={"93": {"content": "<2hsb>"}})
    )
    refused(folder, "added_tokens.json: the id of '<2hsb>' is 94, and 93 in another file")


def test_two_files_that_number_a_piece_otherwise_are_named(copy: Copy, originals: Path) -> None:
    folder = copy("t5-again")
    shutil.copy(originals / "t5" / "spiece.model", folder)
    read_folder(folder)

    def swap(it: Any) -> None:
        it["model"]["vocab"][10:12] = it["model"]["vocab"][11:9:-1]

    change(folder / "tokenizer.json", swap)
    refused(folder, "spiece.model: the id of", "is 10, and 11 in another file")
    folder = copy("nllb-again")
    change(folder / "vocab.json", lambda it: it.update({"▁": 5}))
    refused(folder, "vocab.json: the id of '▁' is 5, and ")


def test_what_a_tokenizer_adds_and_our_model_would_not_is_refused(copy: Copy) -> None:
    folder = copy("t5-again")
    kept = (folder / "tokenizer.json").read_text(encoding="utf-8")
    change(folder / "tokenizer.json", lambda it: it["post_processor"]["single"].pop())
    refused(folder, "'post_processor' must put </s>, and nothing else, behind")
    (folder / "tokenizer.json").write_text(kept, encoding="utf-8")
    word = {"id": 50, "content": "xyz", "special": False}
    change(folder / "tokenizer.json", lambda it: it["added_tokens"].append(word))
    refused(folder, "the id 50 is of ", "and of 'xyz'")


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


@pytest.mark.parametrize(
    ("stage", "step", "part"),
    [
        ("normalizer", {"type": "Lowercase"}, "Lowercase"),
        ("normalizer", {"type": "NFKD"}, "NFKD"),
        ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}, "Replace"),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"},
            "Replace",
        ),
        ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": True}, "ByteLevel"),
        ("pre_tokenizer", {"type": "Digits", "individual_digits": True}, "Digits"),
        ("pre_tokenizer", {**METASPACE, "replacement": "_"}, "Metaspace"),
        ("decoder", {"type": "ByteLevel"}, "ByteLevel"),
    ],
)
def test_a_step_of_a_tokenizer_that_would_be_ignored_is_named(
    copy: Copy, stage: str, step: dict[str, Any], part: str
) -> None:
    folder = copy("nllb-again")
    many = {"pre_tokenizer": "pretokenizers"}.get(stage, f"{stage}s")

    def add(it: Any) -> None:
        it[stage] = {"type": "Sequence", many: [step, it[stage]]}

    change(folder / "tokenizer.json", add)
    refused(folder, f"tokenizer.json: the {stage} has the step", part, "sentencepiece.bpe.model")


def test_text_is_cut_as_the_tokenizer_says(copy: Copy) -> None:
    """Without a space in front, and with a token of the user's."""
    folder = copy("nllb-again")
    token = {"id": 95, "content": "[ab]", "special": False, "normalized": False, "lstrip": False,
             "rstrip": False, "single_word": False}  # fmt: skip

    def act(it: Any) -> None:
        it["pre_tokenizer"]["prepend_scheme"] = "never"
        it["added_tokens"].append(token)

    change(folder / "tokenizer.json", act)
    pieces = read_folder(folder).pieces
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    for line in (*sentences()[:20], "ba[ab] ba"):
        expected = theirs(line, add_special_tokens=False)["input_ids"]
        assert pieces.order[pieces.vocabulary.encode([line]).flat].tolist() == expected, line
    for field, value in (("dropout", 0.5), ("ignore_merges", True), ("fuse_unk", False)):
        change(folder / "tokenizer.json", lambda it: it["model"].update({field: value}))  # noqa: B023
        refused(folder, f"'model.{field}' is {value}")
        change(folder / "tokenizer.json", lambda it: it["model"].pop(field))  # noqa: B023


@pytest.mark.parametrize(
    ("name", "file", "way", "value"),
    [
        ("t5", "config.json", ["eos_token_id"], [1]),
        ("t5", "config.json", ["decoder_start_token_id"], 10**9),
        ("t5", "config.json", ["num_layers"], 10_000_000),
        ("t5", "config.json", ["d_kv"], 10**30),
        ("t5", "config.json", ["tie_word_embeddings"], "no"),
        ("m2m100", "config.json", ["scale_embedding"], "false"),
        ("m2m100", "vocab.json", ["▁"], -7),
        ("nllb", SETTINGS, ["added_tokens_decoder"], {"x": {"content": "a"}}),
        ("nllb", SETTINGS, ["added_tokens_decoder", "92", "content"], 3),
        ("nllb", "added_tokens.json", ["a"], [1]),
        ("nllb-again", "tokenizer.json", ["added_tokens", 0, "id"], "a"),
        ("nllb-again", "tokenizer.json", ["normalizer", "normalizers"], 5),
        ("nllb-again", "tokenizer.json", ["model", "vocab"], 5),
        ("nllb-again", "tokenizer.json", ["model", "merges", 0], 5),
        ("t5-again", "tokenizer.json", ["model", "vocab", 0], ["a"]),
        ("t5-again", "tokenizer.json", ["normalizer", "precompiled_charsmap"], "%%"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(
    copy: Copy, name: str, file: str, way: list[Any], value: Any
) -> None:
    folder = copy(name)

    def act(it: Any) -> None:
        for step in way[:-1]:
            it = it[step]
        it[way[-1]] = value

    change(folder / file, act)
    refused(folder, file, str(way[-1]), "original file")


def test_what_is_no_json_is_named(copy: Copy) -> None:
    folder = copy("t5")
    for text in ("[" * 100_000, '{"d_model": NaN}', "[]", '{"d_model": ' + "1" * 5000 + "}"):
        (folder / "config.json").write_text(text)
        refused(folder, "config.json", "put a whole copy there")
