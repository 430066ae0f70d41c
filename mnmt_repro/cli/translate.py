"""`translate`: translate lines from standard input to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from mnmt_repro.cli.options import MODEL, check_device
from mnmt_repro.errors import InputError
from mnmt_repro.typed_config import Few, Penalty, required, setting

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How translations are searched for, and where."""

    beam: Few = setting("hypotheses kept in beam search; 1 is greedy search", 4)
    length_penalty: Penalty = setting("exponent of the length; 0 ranks by probability alone", 1.0)
    batch: Few = setting("sentences translated together", 64)
    precision: Literal["float32", "bfloat16"] = setting(
        "bfloat16: faster on recent hardware; a few translations can differ", "float32"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")

    def search(self, translate: Callable[..., list[str]], lines: int, label: str) -> list[str]:
        """Call a function that translates so many lines, with these settings and a bar."""
        from tqdm import tqdm

        from mnmt_repro.evaluation.search import SearchConfig

        config = SearchConfig(beam=self.beam, length_penalty=self.length_penalty)
        with tqdm(total=lines, unit="line", desc=label, disable=None, leave=False) as bar:
            return translate(config=config, batch_sentences=self.batch, progress=bar.update)

    def translations(self, trained: Trained, lines: Sequence[str], pair: str) -> list[str]:
        """Translate lines with a model, with a progress bar."""
        from mnmt_repro.evaluation.search import translate
        from mnmt_repro.model import autocast

        call = partial(translate, trained.model, trained.vocabulary, lines, pair, trained.tags)
        with autocast(self.device, self.precision):
            return self.search(call, len(lines), pair)


@dataclass(frozen=True, kw_only=True)
class TranslateOptions(SearchOptions):
    """The options of `translate`."""

    folder: Path = required(MODEL, flags=("folder",), metavar="FOLDER")
    to: str = required("target language, such as deu", required=True, metavar="LANGUAGE")
    source: str | None = setting(
        "source language, if the model has several", flags=("--from",), metavar="LANGUAGE"
    )
    engine: Literal["torch", "ct2"] = setting(
        "ct2: CTranslate2, which is faster; FOLDER is one of `export --to ct2`. A few "
        "translations can differ; with M2M-100 and NLLB-200 more of them, unless --beam is 1",
        "torch",
    )


EXAMPLES = (
    "echo 'Save the file' | mnmt-repro translate runs/talks --to deu",
    "mnmt-repro translate runs/many --from deu --to eng < test.de > test.en",
)


def act(options: TranslateOptions) -> int:
    """Translate all lines; nothing is printed before all are read and are good."""
    from mnmt_repro.runs.trained import load_trained

    check_device(options.device)
    if options.engine == "ct2":
        translated = _with_ct2(options)
    else:
        trained = load_trained(options.folder, device=options.device)
        pair = trained.direction(options.to, options.source)
        translated = options.translations(trained, _lines(), pair)
    sys.stdout.write("".join(f"{line}\n" for line in translated))
    sys.stdout.flush()
    return 0


def _lines() -> list[str]:
    from mnmt_repro.corpora.textfile import decode_lines

    return decode_lines(sys.stdin.buffer.read(), "standard input")


def _with_ct2(options: TranslateOptions) -> list[str]:
    """Translate with CTranslate2, by a folder of its own."""
    from mnmt_repro.interchange import Ct2, is_ct2
    from mnmt_repro.interchange.ctranslate import need
    from mnmt_repro.runs.trained import Trained

    if options.precision != "float32":
        raise InputError("--precision: goes with --engine torch; leave one of the two out")
    need("ctranslate2")
    folder = options.folder
    if not is_ct2(folder):
        raise InputError(
            f"{folder}: is not of CTranslate2; `mnmt-repro export {folder} --to ct2 --out NEW` "
            "writes one for --engine ct2"
        )
    fast = Ct2.open(folder, device=options.device)
    trained = Trained(
        folder=folder,
        model=cast(Any, fast),
        vocabulary=fast.vocabulary,
        corpus="own",
        weights=dict.fromkeys(fast.pairs, 1.0),
        tags=fast.tags,
        any_pair=not fast.pairs,
        continued=True,  # it may have been
    )
    pair = trained.direction(options.to, options.source)
    lines = _lines()
    return options.search(partial(fast.translate, lines, pair), len(lines), pair)
