"""Models of ours in CTranslate2, which decodes them faster: its converter reads our export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mnmt_repro.corpora.encoding import Tags, encode, tag_ids
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.corpora.vocabulary import Vocabulary, tag
from mnmt_repro.errors import InputError, missing_extra
from mnmt_repro.evaluation.search import SearchConfig, encode_lines
from mnmt_repro.interchange.folder import CONFIG, CT2
from mnmt_repro.interchange.pieces import Files
from mnmt_repro.interchange.writing import OWN, fill_folder, new_folder, write_json, write_readme
from mnmt_repro.model import Transformer

_VOCABULARY = "vocabulary.model"
POSITIONS = 1024  # most tokens of a sentence


def need(package: str) -> Any:
    """A package of the extra `ct2`.

    Raises
    ------
    InputError
        When it is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "ct2") from error


def write_ct2(
    out: Path,
    model: Transformer,
    vocabulary: Vocabulary,
    tags: Tags,
    pairs: Sequence[str] = (),
    *,
    quantize: str | None = None,
) -> None:
    """Write a folder that CTranslate2 runs, with the vocabulary and where language tags go.

    CTranslate2's own converter reads what `fill_folder` writes, of which nothing stays.

    Parameters
    ----------
    out
        A new folder.
    pairs
        As of `write_hf`.
    quantize
        What weights are stored as, such as ``int8``; None: as they are.

    Raises
    ------
    InputError
        As `write_hf`, and when CTranslate2 or `transformers` is not installed.
    """
    str(out.absolute()).encode()  # the converter takes names in UTF-8 only, and ends in its own way
    convert = _converter()
    with new_folder(out) as folder, TemporaryDirectory(dir=folder.parent) as hf:
        fill_folder(Path(hf), model, vocabulary, tags, (), OWN)  # with tags as ours
        convert(hf).convert(str(folder), quantization=quantize, force=True)
        config = dict(Files(folder).fields(CONFIG).values)
        # Not null, which CTranslate2 does not read, where the vocabulary has no <s>.
        config["bos_token"] = vocabulary.processor.id_to_piece(vocabulary.start)
        if tags == "both":  # the target's tag starts the decoder
            config["decoder_start_token"] = None
        write_json(folder / CONFIG, config)
        (folder / _VOCABULARY).write_bytes(vocabulary.model)
        write_json(folder / CT2, {"tags": tags, "pairs": list(pairs)})
        write_readme(folder, tags, [tag(language) for language in vocabulary.languages])


def _converter() -> Any:
    """The class that converts a folder of `transformers`."""
    logging = need("transformers").utils.logging

    class Converter(need("ctranslate2").converters.TransformersConverter):  # type: ignore[misc]
        def load_model(self, *arguments: Any, **named: Any) -> Any:
            level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
            logging.set_verbosity_error()
            logging.disable_progress_bar()
            try:
                model = super().load_model(*arguments, **named)
            finally:
                logging.set_verbosity(level)
                if bars:
                    logging.enable_progress_bar()
            # transformers 5 calls every T5 tied, and the converter scales the outputs of such.
            model.config.tie_word_embeddings = False
            return model

    return Converter


@dataclass(frozen=True, kw_only=True)
class Ct2:
    """A folder of `write_ct2`, opened."""

    translator: Any
    vocabulary: Vocabulary
    tags: Tags
    pairs: tuple[str, ...]  # that it was trained on; empty where that is not known

    @classmethod
    def open(cls, folder: Path, *, device: str = "cpu") -> Ct2:
        """Open a folder.

        Raises
        ------
        InputError
            When CTranslate2 is not installed, or the folder is damaged.
        """
        ctranslate2 = need("ctranslate2")
        str(folder).encode()  # as of `write_ct2`
        kind, _, index = device.partition(":")
        about = Files(folder).fields(CT2)
        try:
            translator = ctranslate2.Translator(
                str(folder), device=kind, device_index=int(index or 0)
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"{folder}: cannot be opened by CTranslate2 ({error}); export the model again"
            ) from error
        return cls(
            translator=translator,
            vocabulary=Vocabulary.load(folder / _VOCABULARY),
            tags=about.get("tags", Tags),
            pairs=about.get("pairs", tuple[str, ...], ()),
        )

    def cross_entropy(self, text: Bitext) -> float:
        """Mean nats per target token over a text; as `scoring.cross_entropy`."""
        encoded = encode(text, self.vocabulary, self.tags)
        piece = self.vocabulary.processor.id_to_piece
        first = 0 if self.tags == "both" else 1  # the tag starts the decoder
        source, target = (
            [[piece(i) for i in row.tolist()] for row in np.split(side.flat, side.offsets[1:-1])]
            for side in (encoded.source, encoded.target)
        )
        begun = [pieces[first:-1] for pieces in target]
        scored = self.translator.score_batch(source, begun, max_batch_size=64)
        nats = -sum(sum(each.log_probs) for each in scored)
        return nats / int((encoded.target.lengths - 1).sum())

    def translate(
        self,
        sentences: Sequence[str],
        pair: str,
        *,
        config: SearchConfig = SearchConfig(),  # noqa: B008
        batch_sentences: int = 64,
        progress: Callable[[int], object] | None = None,
    ) -> list[str]:
        """Translate text, line by line and in order; as `evaluation.search.translate`."""
        vocabulary = self.vocabulary
        _, target_tag = tag_ids(vocabulary, pair, self.tags)
        full, framed = encode_lines(sentences, vocabulary, pair, self.tags, POSITIONS)
        outputs = [""] * len(sentences)
        if progress is not None and len(full) < len(sentences):
            progress(len(sentences) - len(full))
        piece = vocabulary.processor.id_to_piece
        prefix = [piece(target_tag)] if self.tags in ("both", "both-after-end") else []
        # With "both" the tag starts the decoder; else it is the first piece of a result.
        forced = int(self.tags == "both-after-end")
        # Sentences of one batch share a limit, so that they are batched by length.
        order = sorted(range(len(full)), key=lambda row: -int(framed.source.lengths[row]))
        silent = [[piece(i)] for i in vocabulary.never]
        for first in range(0, len(order), batch_sentences):
            rows = order[first : first + batch_sentences]
            part = [framed.source.take(np.array([row])).flat.tolist() for row in rows]
            longest = max(config.longest(len(ids)) for ids in part)
            results = self.translator.translate_batch(
                [[piece(i) for i in ids] for ids in part],
                target_prefix=[prefix] * len(rows) if prefix else None,
                beam_size=config.beam,
                num_hypotheses=config.beam,
                return_scores=True,
                length_penalty=0,  # a length would count the tag; `_best` ranks as ours
                max_decoding_length=longest + forced,
                min_decoding_length=0,  # as ours, a translation may be empty
                suppress_sequences=silent,
            )
            for row, each in zip(rows, results, strict=True):
                pieces = _best(each, forced, config.length_penalty)
                outputs[full[row]] = vocabulary.decode(
                    [[vocabulary.processor.piece_to_id(text) for text in pieces]]
                )[0]
            if progress is not None:
                progress(len(rows))
        return outputs


def _best(result: Any, tags: int, length_penalty: float) -> list[str]:
    """Pieces of the best translation without its tags, as `evaluation.search` ranks them."""
    translations = [pieces[tags:] for pieces in result.hypotheses]
    scores = [
        log_probability / (len(pieces) + 1) ** length_penalty
        for log_probability, pieces in zip(result.scores, translations, strict=True)
    ]
    return translations[int(np.argmax(scores))]
