"""`export`: write a model as a folder that `transformers` or CTranslate2 loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from mnmt_repro.cli.options import MODEL
from mnmt_repro.cli.test_sets import TestSetOptions, read_test_sets
from mnmt_repro.errors import InputError, note
from mnmt_repro.typed_config import Amount, required, setting

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained


@dataclass(frozen=True, kw_only=True)
class ExportOptions(TestSetOptions):
    """The options of `export`."""

    folder: Path = required(MODEL, flags=("folder",), metavar="MODEL")
    to: Literal["hf", "ct2"] = required(
        "format: transformers or CTranslate2. README.md there shows where language tags go; ct2 "
        "spells them as ours, <2deu>",
        required=True,
    )
    out: Path = required("new folder", flags=("-o", "--out"), required=True, metavar="DIR")
    quantize: Literal["int8", "int8_float32", "int16", "float16", "bfloat16"] | None = setting(
        "ct2: store weights in fewer bits. Loss and chrF on the test sets (--data, --test) are "
        "printed before and after, and a folder that loses more than --most-lost is not written"
    )
    most_lost: Amount = setting("most points of chrF that --quantize may lose on a test set", 1.0)


EXAMPLES = (
    "mnmt-repro export runs/talks --to hf --out talks-hf",
    "mnmt-repro export runs/talks --to ct2 --out talks-ct2",
    "mnmt-repro export runs/talks --to ct2 --quantize int8 --data eng-deu=test.tsv -o talks-int8",
)


def act(options: ExportOptions) -> int:
    """Write the folder, whole or not at all."""
    from mnmt_repro.interchange import write_ct2, write_hf
    from mnmt_repro.runs.trained import check_free, load_trained

    check_free(options.out)
    if options.quantize and options.to != "ct2":
        raise InputError("--quantize: goes with --to ct2; transformers stores weights as they are")
    if not options.quantize and options != ExportOptions(
        folder=options.folder, to=options.to, out=options.out
    ):
        raise InputError(
            "--data, --test, --pairs, --limit, --skip-bad, --most-lost: go with --quantize; leave "
            "them out"
        )
    trained = load_trained(options.folder)
    if options.quantize:
        _write_quantized(trained, options)
    else:
        write = write_hf if options.to == "hf" else write_ct2
        write(options.out, trained.model, trained.vocabulary, trained.tags, trained.pairs)
    shape = trained.model.config
    if options.to == "hf" and shape.decoder_layers > shape.encoder_layers:
        note(
            "the decoder is deeper than the encoder, and `generate` of transformers 5.24 fails for "
            "such a T5"
        )
    ct2 = "CTranslate2 and for `mnmt-repro translate --engine ct2`"
    how = (
        f"for {ct2 if options.to == 'ct2' else 'transformers'}; README.md there says how to call it"
    )
    print(f"{options.out}: {options.folder}, {how}")
    return 0


def _write_quantized(trained: Trained, options: ExportOptions) -> None:
    """Write a quantised folder for CTranslate2, once it scores about as well as a whole one.

    Raises
    ------
    InputError
        When it loses more chrF on a test set than it may; nothing is left then.
    """
    from mnmt_repro.evaluation.metrics import scores
    from mnmt_repro.interchange import Ct2, write_ct2

    sets = list(read_test_sets(trained, options))
    parent = options.out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    about = trained.model, trained.vocabulary, trained.tags, trained.pairs
    with TemporaryDirectory(prefix=f".{options.out.name}.", dir=parent) as temporary:
        whole, quantized = Path(temporary, "whole"), Path(temporary, "quantized")
        write_ct2(whole, *about)
        write_ct2(quantized, *about, quantize=options.quantize)
        both = Ct2.open(whole), Ct2.open(quantized)
        for name, text in sets:
            losses = [each.cross_entropy(text) for each in both]
            translations = (each.translate(text.source, text.pair) for each in both)
            language = text.pair.partition("-")[2]
            chrf = [float(scores(t, text.target, language)["chrf"]) for t in translations]
            line = (
                f"{text.pair}, {name}: loss {losses[0]:.4f} -> {losses[1]:.4f} nats a token, "
                f"chrF {chrf[0]:.2f} -> {chrf[1]:.2f}"
            )
            if not chrf[0] - chrf[1] <= options.most_lost:
                raise InputError(
                    f"--quantize {options.quantize}: {line}, which loses more than --most-lost "
                    f"{options.most_lost:g}; allow it, or store more bits"
                )
            print(line)
        quantized.rename(options.out)
