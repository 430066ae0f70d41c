"""A grid of a user's runs: sizes, weights and seeds on one text. No torch is needed to declare it.

`Grid` is what a file of ``mnmt-repro sweep GRID.yml`` holds, and what a notebook declares::

    grid = Grid.read("grid.yml")
    done = grid.run("runs")  # trains what is missing
    law = done.fit("eng-deu")
    law.plot()
    done.recommend(200_000, {"eng-deu": 2, "eng-zho": 1})
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import yaml

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.encoding import Tags, resolve_tags
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.corpora.textfile import read_whole
from mnmt_repro.errors import InputError, note
from mnmt_repro.runs.spec import OWN, Own, RunSpec
from mnmt_repro.runs.sweep import executor_of, train_missing
from mnmt_repro.runs.training_text import TextSource, TrainingText
from mnmt_repro.training.config import BUDGET, TrainingConfig, usual_settings, usual_training
from mnmt_repro.typed_config import (
    Count,
    Few,
    FieldError,
    Part,
    Seed,
    Temperature,
    build,
    check,
    place,
)

if TYPE_CHECKING:
    import pandas as pd

    from mnmt_repro.laws import FractionFit, JointLawFit, Recommendation
    from mnmt_repro.laws.joint_law import Reading

Weight = float | dict[str, float]
_WEIGHTS: tuple[Weight, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)

Arch = Literal["t5", "fairseq"]
SHAPE = ("d_model", "layers", "heads", "d_ff")


@dataclass(frozen=True, kw_only=True)
class Size:
    """One model size of a grid.

    Attributes
    ----------
    layers
        In the encoder, and as many in the decoder.
    d_ff
        None: four times the width.
    steps, target_tokens, learning_rate
        In place of those of the grid's other sizes.
    """

    d_model: Count
    layers: Few = 1
    heads: Few = 2
    d_ff: int | None = None
    steps: int | None = None
    target_tokens: int | None = None
    learning_rate: float | None = None

    def training(self, config: TrainingConfig) -> TrainingConfig:
        """The grid's training settings as this size has them."""
        own = {name: getattr(self, name) for name in (*BUDGET, "learning_rate")}
        own = {name: value for name, value in own.items() if value is not None}
        if own.keys() & set(BUDGET):
            own = dict.fromkeys(BUDGET) | own
        return replace(config, **own)

    def model(
        self, pieces: int, arch: Arch = "t5", dropout: float = 0.0, attention_dropout: float = 0.0
    ) -> ModelConfig:
        """The shape of this size with a vocabulary of that many pieces.

        Raises
        ------
        InputError
            When the width is no multiple of the heads, or T5 is to have attention dropout.
        """
        if self.heads < 1 or self.d_model % self.heads:
            raise InputError(f"heads {self.heads}: must divide d_model {self.d_model}")
        shape: dict[str, Any] = {name: getattr(self, name) for name in SHAPE}
        shape |= {"vocab_size": pieces, "dropout": dropout}
        if arch == "fairseq":
            return ModelConfig.fairseq(**shape, attention_dropout=attention_dropout)
        if attention_dropout:
            raise InputError("attention_dropout goes with arch fairseq")
        return ModelConfig.t5(**shape)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Models of several sizes, each trained with several weights and seeds on one text.

    The text is the user's own (`data`), a registered corpus or a conlang. All runs share one
    vocabulary, and language tags where the pairs need them. A run is the same as that of
    ``mnmt-repro train --exact`` with the same settings, and has the same `run_id`.

    Attributes
    ----------
    data
        Pair to FILE, or to SOURCE,TARGET, as ``train --data``.
    valid
        Pair to the file that models are scored on. Empty: a twentieth of `data` is held out, at
        most 400 sentences of each pair.
    corpus, conlang
        Registered text, or generated text, in place of `data`.
    pairs
        Of a corpus or a conlang. Empty: all out of English, or of a conlang's first language.
    sizes
        A number is that width, with one layer and two heads.
    weights
        A number is that of the first pair, and a mapping may name another one: the other pairs
        share the rest evenly. Weights of several pairs sum to one. One pair alone needs none.
    training
        A file, or a mapping, has the settings that are not those of `usual_training`.
    arch, dropout, attention_dropout, tags
        As the options of ``train``.
    pieces, vocabulary_temperature
        Of the vocabulary that is trained, where `vocabulary` names none.

    Raises
    ------
    InputError
        When the fields do not fit together; the message names the field.
    """

    data: dict[str, str] = field(default_factory=dict)
    valid: dict[str, str] = field(default_factory=dict)
    corpus: str | None = None
    conlang: ConlangConfig | None = None
    pairs: tuple[str, ...] = ()
    sizes: tuple[int | Size, ...]
    weights: tuple[Weight, ...] = _WEIGHTS
    seeds: tuple[Seed, ...] = (1,)
    training: TrainingConfig = field(default_factory=usual_training)
    arch: Arch = "t5"
    dropout: Part = 0.0
    attention_dropout: Part = 0.0
    tags: Literal["auto", "none", "source", "both"] = "auto"
    pieces: Count = 4000
    vocabulary_temperature: Temperature = 1.0
    vocabulary: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.training, Mapping):
            training = build(TrainingConfig, usual_settings(self.training), ("training",))
            object.__setattr__(self, "training", training)
        check(self, "grid")
        sizes = tuple(each if isinstance(each, Size) else Size(d_model=each) for each in self.sizes)
        object.__setattr__(self, "sizes", sizes)
        if [bool(self.data), self.corpus is not None, self.conlang is not None].count(True) != 1:
            raise InputError("name the text, in one of data, corpus and conlang")
        if self.corpus == "conlang":
            raise FieldError(("corpus",), "is generated; write conlang: {concepts: 64}")
        if self.data and self.pairs:
            raise InputError("pairs are of a corpus or a conlang; data names its own")
        if self.valid and not self.data:
            raise InputError("valid goes with data")
        for name in ("weights", "seeds", "sizes"):
            values = getattr(self, name)
            if not values:
                raise FieldError((name,), "must not be empty")
            if twice := next((i for i, each in enumerate(values) if each in values[:i]), None):
                raise FieldError((name, twice), "is there already")

    @classmethod
    def read(cls, path: Path | str) -> Grid:
        """Read a grid's file, in YAML; names of files in it start from its folder.

        ``training`` needs but the settings that are not the usual ones.

        Raises
        ------
        InputError
            With the file, the line and the key at fault.
        """
        path = Path(path)
        try:
            loader = _Loader(read_whole(path).decode())
            node = loader.get_single_node()
            content = loader.construct_document(node) if node else None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, ValueError) as error:
            raise InputError(f"{path}: is no YAML: {' '.join(str(error).split())}") from error
        try:
            if isinstance(content, dict):
                content = _whole(content, path.parent)
            grid = build(cls, content)
            len(grid.runs)  # what does not fit the text is found here, too
        except FieldError as error:
            line = _line(node, error.at)
            named = f"{place(error.at)}: " if error.at else ""
            raise InputError(f"{path} line {line}: {named}{error.why}") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        return grid

    @cached_property
    def source(self) -> TextSource:
        """Where the text comes from."""
        return TextSource(
            data=tuple(f"{pair}={file}" for pair, file in self.data.items()),
            valid=tuple(f"{pair}={file}" for pair, file in self.valid.items()),
            corpus=self.corpus or ("conlang" if self.conlang else OWN),
            pairs=self.pairs,
            conlang=self.conlang,
            pieces=self.pieces,
            vocabulary_temperature=self.vocabulary_temperature,
            vocabulary=self.vocabulary,
        )

    @cached_property
    def text(self) -> TrainingText:
        """The text itself, read once."""
        return self.source.read()

    def prepare(self) -> None:
        """Keep the vocabulary of all runs in the cache, and note what they leave out of the text.

        Raises
        ------
        InputError
            When the text gives no such vocabulary, or no sentence that is short enough.
        """
        from mnmt_repro.runs.data import load_run_data, make_vocabulary

        vocabulary = make_vocabulary(self.text, self.source)
        if self.conlang is None:
            runs = sorted(self.runs, key=lambda run: len(run.mixture.pairs))
            reading = {pair: run for run in runs for pair in run.mixture.pairs}
            few = {run.run_id: run for run in reading.values()}  # that read all pairs
            notes = (load_run_data(run, self.text, vocabulary).notes for run in few.values())
            note(*dict.fromkeys(chain.from_iterable(notes)))

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        """The mixtures that `weights` stand for.

        Raises
        ------
        InputError
            When a weight is out of range or of an unknown pair.
        """
        alone = self.weights == _WEIGHTS and len(self.text.pairs) == 1
        weights = (1.0,) if alone else self.weights
        made = tuple(self._mixture(i, each) for i, each in enumerate(weights))
        if twice := next((i for i, each in enumerate(made) if each in made[:i]), None):
            raise FieldError(("weights", twice), "is there already")
        return made

    def _mixture(self, at: int, weight: Weight) -> Mixture:
        pairs = self.text.pairs
        named = weight if isinstance(weight, dict) else {pairs[0]: weight}
        if unknown := [pair for pair in named if pair not in pairs]:
            raise FieldError(("weights", at, unknown[0]), f"the pairs are {', '.join(pairs)}")
        others = [pair for pair in pairs if pair not in named]
        rest = round(1 - math.fsum(named.values()), 12)
        if len(named) > 1 and others and rest > 0:
            raise FieldError(("weights", at), f"sum to {1 - rest:g}; name {', '.join(others)}, too")
        shares = {pair: rest / len(others) for pair in others}
        try:
            return Mixture.of({**named, **shares})
        except InputError as error:
            raise FieldError(("weights", at), str(error)) from error

    @cached_property
    def runs(self) -> tuple[RunSpec, ...]:
        """All runs of the grid, small models first; the text is read for it.

        Raises
        ------
        InputError
            When the text is not there, or a field does not fit it.
        """
        text, pieces = self.text, self.source.vocabulary_size
        tags: Tags = resolve_tags(self.tags, text.pairs)
        own = Own(text=text.hashes, pieces=self.source.pieces_from)
        return tuple(
            RunSpec(
                tier=OWN,
                corpus=text.corpus,
                mixture=mixture,
                model=model,
                training=training,
                tags=tags,
                seed=seed,
                conlang=text.conlang,
                own=own,
            )
            for seed in self.seeds
            for model, training in self._models(pieces)
            for mixture in self.mixtures
        )

    def _models(self, pieces: int) -> Iterator[tuple[ModelConfig, TrainingConfig]]:
        for at, size in enumerate(self.sizes):
            size = cast(Size, size)
            shape = (pieces, self.arch, self.dropout, self.attention_dropout)
            try:
                yield size.model(*shape), size.training(self.training)
            except InputError as error:
                raise FieldError(("sizes", at), str(error)) from error

    def run(
        self,
        folder: Path | str = "runs",
        *,
        workers: int = 1,
        results: Path | str | None = None,
        device: str = "cpu",
        recompute: bool = False,
    ) -> GridRuns:
        """Train what is missing; a call that was interrupted goes on where it was.

        Parameters
        ----------
        folder
            Of checkpoints, a folder a run.
        workers
            Processes; 1: in this one. A script that asks for more calls this below
            ``if __name__ == "__main__":``, because each process reads the script again.
        results
            The store that rows are added to; None: `results` in `folder`.
        device
            ``cpu``, ``cuda``, ``cuda:1``, ...
        recompute
            Compute each layer again in the backward pass, which takes less memory and more time.

        Raises
        ------
        InputError
            When runs failed, after the others; or as `runs`.
        """
        if workers < 1:
            raise InputError(f"workers {workers}: give a number of processes, 1 or more")
        store = None if results is None else Path(results)
        done = GridRuns(grid=self, folder=Path(folder), results=store)
        self.prepare()  # before the workers, who all need the vocabulary
        with executor_of("local", workers, done.folder) as executor:
            failures = train_missing(
                self.runs,
                done.store,
                among=self.runs,
                source=self.source,
                runs_folder=done.folder,
                executor=executor,
                device=device,
                recompute=recompute,
                at_once=workers,
                progress_bar=sys.stderr.isatty(),
            )
        if failures:
            raise InputError(
                f"{len(failures)} of {len(self.runs)} runs failed; the first: {failures[0]}"
            )
        return done


@dataclass(frozen=True, kw_only=True)
class GridRuns:
    """A grid's runs: where they lie, their losses, and what follows from them."""

    grid: Grid
    folder: Path  # of checkpoints
    results: Path | None = None  # store of rows; None: `results` in `folder`, as `train` has it

    @property
    def store(self) -> Path:
        """The results store."""
        return self.folder / "results" if self.results is None else self.results

    @property
    def losses(self) -> pd.DataFrame:
        """Losses of the finished runs on whole test sets, as rows of `results.load`."""
        from mnmt_repro import results

        return results.load(
            root=self.store,
            run_id=[spec.run_id for spec in self.grid.runs],
            test_set="indomain",
            domain="all",
        )

    def fit(self, pair: str, **of: Unpack[Reading]) -> JointLawFit:
        """The joint law of one pair's losses, over all weights; `of` as in `fit_joint_law`."""
        from mnmt_repro.laws import fit_joint_law

        return fit_joint_law(self._of(pair), label=pair, **of)

    def fit_fraction(self, pair: str, **of: Unpack[Reading]) -> FractionFit:
        """The law of one pair at any weight (Eq. 12); `of` as in `fit_fraction`."""
        from mnmt_repro.laws import fit_fraction

        return fit_fraction(self._of(pair), label=pair, **of)

    def recommend(self, n: float, importance: Mapping[str, float] | None = None) -> Recommendation:
        """The mixture with the least mean loss at size `n`; see `recommend_weights`."""
        from mnmt_repro.laws import recommend_weights

        laws = {pair: self.fit_fraction(pair) for pair in self.grid.text.pairs}
        return recommend_weights(laws, n, importance)

    def _of(self, pair: str) -> pd.DataFrame:
        from mnmt_repro import results
        from mnmt_repro.laws.convergence import note_on_fall

        losses = self.losses
        if pair not in set(losses["pair"]):
            there = ", ".join(sorted(losses["pair"].unique())) or "none yet"
            raise InputError(f"no losses of {pair}; there are those of {there}")
        losses = losses[losses["pair"] == pair]
        run_ids = set(losses["run_id"])
        note(*note_on_fall(results.load_curves(root=self.store, run_id=run_ids, pair=pair)))
        return losses


def _whole(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A file's content with paths from its folder, and the usual training filled in."""
    whole = dict(content)
    for name in ("data", "valid"):
        if isinstance(files := whole.get(name), dict):
            whole[name] = {pair: _from(folder, file) for pair, file in files.items()}
    if isinstance(file := whole.get("vocabulary"), str):
        whole["vocabulary"] = str(folder / os.path.expanduser(file))
    if isinstance(training := whole.get("training", {}), dict):
        whole["training"] = usual_settings(training)
    return whole


def _from(folder: Path, file: Any) -> Any:
    """The files of a bitext, one or two, seen from a folder."""
    if not isinstance(file, str):
        return file
    names = [file] if (folder / file).exists() else file.split(",")
    return ",".join(str(folder / os.path.expanduser(name.strip())) for name in names)


class _Loader(yaml.SafeLoader):
    """Leaves numbers as text, since YAML takes 010 for 8 and 1:30 for 90; refuses equal keys."""

    yaml_implicit_resolvers = {
        first: [rule for rule in rules if rule[0].endswith((":bool", ":null", ":merge"))]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        values: list[Any] = []
        for key, _ in node.value:
            if key.value in values:
                why = f"line {key.start_mark.line + 1}: {key.value} is there twice"
                raise yaml.constructor.ConstructorError(None, None, why)
            values.append(key.value)
        return super().construct_mapping(node, deep)


def _line(node: yaml.Node | None, at: tuple[str | int, ...]) -> int:
    """The line of a key or a place in a list; that of the nearest one around it that is there."""
    line = 1 if node is None else node.start_mark.line + 1
    for step in at:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            here = [both for both in node.value if both[0].value == str(step)]
            if not here:
                break
            line, node = here[0][0].start_mark.line + 1, here[0][1]
    return line
