"""SentencePiece vocabularies: unigram pieces, byte fallback, a tag for each target language."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from mnmt_repro.atomic import write_bytes
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.textfile import read_whole
from mnmt_repro.errors import InputError, listed, remedy
from mnmt_repro.typed_config import Count, Natural, Range, Temperature, check, required, setting

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

PAD, EOS, UNK, BOS = 0, 1, 2, 3
SPECIAL = ("<pad>", "</s>", "<unk>", "<s>")
SPACE = "\u2581"  # SentencePiece's mark for a space
SETTINGS = {
    **{f"{role}_id": i for i, role in enumerate(("pad", "eos", "unk", "bos"))},
    **{f"{role}_piece": SPECIAL[i] for i, role in enumerate(("pad", "eos", "unk", "bos"))},
}
"""SentencePiece's settings of the special pieces."""
BYTES = 256
_NO_PART_OF_A_LINE = dict.fromkeys(map(ord, "\0\n\r"), " ")


def check_codes(languages: Iterable[str], known: Iterable[str] = ()) -> None:
    """Refuse languages whose codes differ by case only: each would get a tag.

    >>> check_codes(["eng_latn"], known=["deu_Latn", "eng_Latn"])
    Traceback (most recent call last):
    mnmt_repro.errors.InputError: language 'eng_latn': is written 'eng_Latn' elsewhere; write it so
    """
    seen: dict[str, str] = {}
    for code in (*known, *languages):
        other = seen.setdefault(code.casefold(), code)
        if other != code:
            raise InputError(f"language {code!r}: is written {other!r} elsewhere; write it so")


def tag(language: str) -> str:
    """The piece that asks for a target language.

    >>> tag("deu")
    '<2deu>'
    """
    return f"<2{language}>"


def is_tag(piece: str) -> bool:
    """Whether a piece asks for a target language.

    >>> is_tag("<2deu>"), is_tag("<2-0 a")
    (True, False)
    """
    return piece.startswith("<2") and piece.endswith(">")


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """How a vocabulary is trained.

    Raises
    ------
    InputError
        When a field is out of range, or there are fewer pieces than are required by the special
        ids, the language tags and the 256 bytes.
    """

    # Of everything: special ids, tags and bytes included.
    pieces: Annotated[int, Range(1, 100_000_000)] = required("size of the vocabulary")
    languages: tuple[str, ...] = ()  # each gets a tag; sorted: their order has no effect
    temperature: Temperature = setting(
        "pairs are sampled by size ** (1 / temperature)", 1.0
    )  # Paper B: 2
    character_coverage: Annotated[float, Range(0, 1, above=True)] = setting(
        "share of characters with pieces; bytes spell others", 0.9995
    )
    sentences: Count = setting("most sentences to read, both sides together", 1_000_000)
    seed: Natural = setting("seed of the sample of sentences", 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", tuple(sorted(set(self.languages))))
        check(self, "vocabulary")
        check_codes(self.languages)
        required = len(SPECIAL) + len(self.languages) + BYTES
        if self.pieces <= required:
            raise InputError(
                f"vocabulary pieces = {self.pieces} is too small: special ids, tags and bytes take "
                f"{required} already; ask for more"
            )


class Vocabulary:
    """A trained SentencePiece model with fixed special ids: pad 0, end 1, unknown 2, start 3.

    Models of other programs may lack a start piece (see `interchange.pieces`). Their
    file then says in `bos_piece` which of the other three special pieces the decoder starts with.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Read a `.model` file.

        Raises
        ------
        InputError
            When the file is missing, is no SentencePiece model, or has other special ids.
        """
        try:
            vocabulary = cls(read_whole(path))
            if not vocabulary.model:  # of which SentencePiece writes to standard error
                raise InputError(f"{path} is empty; put a whole copy there")
            special = tuple(vocabulary.processor.id_to_piece(i) for i in range(len(SPECIAL)))
            borrowed = special[:BOS] == SPECIAL[:BOS] and vocabulary.start < BOS
        except OSError as error:
            raise InputError(f"cannot read the vocabulary {path}: {error.strerror}") from error
        except (RuntimeError, IndexError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a SentencePiece model") from error
        if special != SPECIAL and not borrowed:
            raise InputError(
                f"{path}: its first pieces are {', '.join(special)}, not {', '.join(SPECIAL)}; "
                "take it over with `mnmt-repro data adopt`, or train one with `data vocabulary`"
            )
        return vocabulary

    @cached_property
    def processor(self) -> SentencePieceProcessor:
        """The library's own object."""
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_proto=self.model)

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of the model's SHA-256."""
        return hashlib.sha256(self.model).hexdigest()[:16]

    def __len__(self) -> int:
        return self.processor.vocab_size()

    @cached_property
    def start(self) -> int:
        """Id that the decoder starts with, where no language tag takes its place."""
        if self.processor.id_to_piece(BOS) == SPECIAL[BOS]:
            return BOS
        from sentencepiece.sentencepiece_model_pb2 import ModelProto

        named = ModelProto.FromString(self.model).trainer_spec.bos_piece
        return SPECIAL.index(named) if named in SPECIAL else BOS

    def tag(self, language: str) -> int:
        """Id of the tag that asks for `language`.

        A language without its script serves where only one script is there: "deu" for "deu_Latn".

        Raises
        ------
        InputError
            When the vocabulary has no such tag, or several.
        """
        index = self.processor.piece_to_id(tag(language))
        if index != UNK:
            return index
        scripts = [name for name in self.languages if name.startswith(f"{language}_")]
        if len(scripts) == 1:
            return self.processor.piece_to_id(tag(scripts[0]))
        there = listed(scripts) if scripts else remedy(language, self.languages, 3)
        raise InputError(f"the vocabulary has no tag {tag(language)}; {there}")

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages that have a tag."""
        pieces = (self.processor.id_to_piece(i) for i in range(BOS, len(self)))
        return tuple(p[2:-1] for p in pieces if is_tag(p))

    @cached_property
    def never(self) -> tuple[int, ...]:
        """Ids of tags, unused and special pieces but the end, which no translation contains."""
        known, tags = self.processor, {tag(language) for language in self.languages}
        return tuple(
            i
            for i in range(len(self))
            if i != EOS
            and (
                known.is_control(i)
                or known.is_unknown(i)
                or known.is_unused(i)
                or known.id_to_piece(i) in tags
            )
        )

    def encode(self, sentences: Sequence[str]) -> Ragged:
        """Ids of each sentence, without start, end or tag."""
        return Ragged.of(self.processor.encode(list(sentences), out_type=int))

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """A line of text for each list of ids; special pieces and tags are left out.

        Bytes that are no part of a line (NUL and line breaks) become spaces.
        """
        silent = {EOS, *self.never}
        texts = self.processor.decode([[int(i) for i in row if i not in silent] for row in ids])
        return [text.translate(_NO_PART_OF_A_LINE) for text in texts]

    def save(self, path: Path | str) -> None:
        """Write the `.model` file, whole or not at all.

        Raises
        ------
        InputError
            When there is another file of that name, or none can be written.
        """
        path = Path(path)
        try:
            self.check_free(path)
            write_bytes(path, self.model)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error

    def check_rows(self, rows: int) -> None:
        """Raise `InputError` when a model's tables have another number of rows than pieces."""
        if len(self) != rows:
            both = f"the vocabulary has {len(self)} pieces, the model {rows}"
            raise InputError(f"{both}: give the one that the model was trained with")

    def check_free(self, path: Path) -> None:
        """Raise `InputError` when there is another file of that name."""
        if path.exists() and path.read_bytes() != self.model:
            raise InputError(f"{path}: is there already; choose another name, or remove it")


def train_vocabulary(
    config: VocabularyConfig, text: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> Vocabulary:
    """Train on both sides of the pairs in `text` (`pair -> (source, target)`).

    Pairs are sampled in proportion to `size ** (1 / temperature)`, without replacement, as far as
    their sentences go. The same input gives the same model.

    Raises
    ------
    InputError
        When the text holds too little for that many pieces, or too many characters for them.
    """
    sizes = np.array([len(source) for source, _ in text.values()], dtype=float)
    if not sizes.size or not sizes.min():
        raise InputError("a vocabulary needs at least one sentence of every pair")
    share = sizes ** (1 / config.temperature)
    wanted = np.minimum(sizes, config.sentences / 2 * share / share.sum()).astype(int)
    rng = np.random.default_rng(config.seed)
    lines: list[str] = []
    for (source, target), count in zip(text.values(), wanted, strict=True):
        chosen = np.sort(rng.permutation(len(source))[: max(count, 1)])
        lines += [source[i] for i in chosen] + [target[i] for i in chosen]
    return Vocabulary(
        learn_pieces(
            lines,
            config.pieces,
            model_type="unigram",
            character_coverage=config.character_coverage,
            byte_fallback=True,
            user_defined_symbols=[tag(language) for language in config.languages],
            **SETTINGS,
        )
    )


def with_settings(model: ModelProto, start: str = SPECIAL[BOS]) -> Vocabulary:
    """A vocabulary of a model whose first pieces are ours; its settings then say so."""
    for name, value in {**SETTINGS, "bos_piece": start}.items():
        setattr(model.trainer_spec, name, value)
    model.trainer_spec.vocab_size = len(model.pieces)
    return Vocabulary(model.SerializeToString(deterministic=True))


def learn_pieces(lines: Iterable[str], pieces: int, **settings: Any) -> bytes:
    """Let SentencePiece learn a model from text; the same text gives the same model.

    Parameters
    ----------
    pieces
        Of the model, everything included.
    **settings
        Further ones of SentencePiece's trainer.

    Raises
    ------
    InputError
        When the text holds too little for that many pieces, or too many characters for them.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=pieces,
            normalization_rule_name="nmt_nfkc",
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
            **settings,
        )
    except RuntimeError as error:
        why = f"SentencePiece could not learn them from this text: {error}"
        if most := re.search(r"<= (\d+)", str(error)):
            why = f"this text gives at most {most[1]}, so give that number"
        elif least := re.search(r"required_chars\. \d+ vs (\d+)", str(error)):
            why = f"this text needs at least {least[1]}, of its characters alone"
        raise InputError(f"--pieces {pieces}: {why}") from error
    return model.getvalue()
