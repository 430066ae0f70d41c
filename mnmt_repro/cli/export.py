"""`export`: write a model as a folder that `transformers` or CTranslate2 loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mnmt_repro.cli.options import MODEL
from mnmt_repro.errors import note
from mnmt_repro.typed_config import required


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of `export`."""

    folder: Path = required(MODEL, flags=("folder",), metavar="MODEL")
    to: Literal["hf", "ct2"] = required("format: transformers or CTranslate2", required=True)
    out: Path = required("new folder", flags=("-o", "--out"), required=True, metavar="DIR")


EXAMPLES = (
    "mnmt-repro export runs/talks --to hf --out talks-hf",
    "mnmt-repro export runs/talks --to ct2 --out talks-ct2",
)


def act(options: ExportOptions) -> int:
    """Write the folder, whole or not at all."""
    from mnmt_repro.corpora.vocabulary import tag
    from mnmt_repro.interchange import write_ct2, write_hf
    from mnmt_repro.interchange.writing import OWN, tokenizer_class
    from mnmt_repro.runs.trained import check_free, load_trained

    check_free(options.out)
    trained = load_trained(options.folder)
    write = write_hf if options.to == "hf" else write_ct2
    write(options.out, trained.model, trained.vocabulary, trained.tags, trained.pairs)
    shape = trained.model.config
    if options.to == "hf" and shape.decoder_layers > shape.encoder_layers:
        note(
            "the decoder is deeper than the encoder, and `generate` of "
            "transformers 5.24 fails for such a T5"
        )
    kind = tokenizer_class(trained.model.config, trained.vocabulary, trained.tags)
    if options.to == "hf" and trained.tags != "none" and kind == OWN:
        ours = tag(trained.vocabulary.languages[0])
        note(f"tags of languages are written as ours, such as {ours}: see README.md there")
    how = {
        "hf": "transformers",
        "ct2": "CTranslate2 and for `mnmt-repro translate --engine ct2`",
    }
    print(
        f"{options.out}: {options.folder}, for {how[options.to]}; README.md there says how to "
        "call it"
    )
    return 0
