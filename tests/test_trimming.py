"""A model without the pieces and languages that some text does not need."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fails
from hf_models import FAMILIES, LANGUAGES, sentences, write_model
from test_interchange import pair_of, write_tsv

from mnmt_repro.cli import main
from mnmt_repro.evaluation.search import SearchConfig, translate
from mnmt_repro.runs.trained import load_trained

GREEDY = SearchConfig(beam=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trimmed_model_translates_its_text_as_before(
    tmp_path: Path, family: str, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(Path("whole"), family)
    pair, source, target = pair_of(family), list(sentences()[:24:2]), list(sentences()[1:25:2])
    write_tsv(Path("text.tsv"), pair, source, target)
    command = f"data trim whole --data {pair}=text.tsv --out".split()
    assert main([*command, "small"]) == 0
    out = capsys.readouterr().out
    assert "0.0% of 24 sentences" in out and f"{len(source)} of {len(source)} greedy" in out
    old, new = load_trained(Path("whole")), load_trained(Path("small"))
    assert f"pieces: {len(old.vocabulary)} -> {len(new.vocabulary)}" in out
    assert len(new.vocabulary) == new.model.config.vocab_size < len(old.vocabulary)
    for cut, whole in zip(*(each.vocabulary.processor.encode([*source, *target], out_type=str)
                            for each in (new, old)), strict=True):  # fmt: skip
        assert cut == whole
    kept = {"madlad": pair.split("-")[1:], "t5": [], "mt5": []}.get(family, pair.split("-"))
    assert [*new.vocabulary.languages] == sorted(kept, key=old.vocabulary.languages.index)
    both = [translate(each.model, each.vocabulary, source, pair, each.tags, config=GREEDY)
            for each in (old, new)]  # fmt: skip
    assert both[0] == both[1] and any(both[0])
    assert main([*command, "smaller", "--min-count", "9"]) == 0
    assert len(load_trained(Path("smaller")).vocabulary) < len(new.vocabulary)
    capsys.readouterr()
    if family in LANGUAGES:
        write_tsv(Path("odd.tsv"), f"{kept[0]}-zzz", source, target)
        odd = ["data", "trim", "whole", "--data", f"{kept[0]}-zzz=odd.tsv", "--out", "x"]
        fails(odd, capsys, "no tag <2zzz>")
