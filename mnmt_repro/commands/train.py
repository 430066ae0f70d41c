"""`train`: train a model, or an upgraded one on, on your own bitext, a corpus or a conlang."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shlex
import signal
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.architecture import ModelConfig, parameter_counts
from mnmt_repro.commands.options import Noted, add_command, check_device
from mnmt_repro.commands.presets import PRESETS, with_preset
from mnmt_repro.commands.training_text import FIRST_RUN, TrainingText
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import BUDGET, TrainingConfig

if TYPE_CHECKING:
    from mnmt_repro.commands.continuing import Upgraded
    from mnmt_repro.corpora.vocabulary import Vocabulary
    from mnmt_repro.training.loop import TrainingData

PEAK = {"adafactor": 0.3, "adamw": 0.005}
"""Learning rate where none is given: Adafactor's is relative to each parameter's size."""
DEFAULTS = {"warmup_steps": 100, "batch_tokens": 512}
FIRST_BUDGET = 600_000  # target tokens, where neither they nor steps are given

TRAINING_HELP = {
    "learning_rate": "peak of the schedule (default: 0.3 for adafactor, 0.005 for adamw)",
    "warmup_steps": "linear rise to the peak; then it falls with 1 / sqrt(step)",
    "batch_tokens": "target tokens a step",
    "target_tokens": f"budget in target tokens over all pairs (default: {FIRST_BUDGET:,})",
    "steps": "budget in steps, in place of --target-tokens",
    "max_length": "leave out sentence pairs with a side of more tokens",
    "optimiser": "how weights are updated",
    "weight_decay": "share of each weight taken off a step, times the learning rate",
    "beta1": "AdamW: decay of the first moment",
    "beta2": "AdamW: decay of the second moment",
    "clip_norm": "clip the gradient to this norm (default: never)",
    "label_smoothing": "share of probability spread evenly over all pieces",
    "precision": "bfloat16: autocast, for GPUs",
    "curve_points": "validations, spaced evenly in log(target tokens)",
    "keep": "which weights are the result: last, or best on validation",
}


def add(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "train",
        "train a translation model; the same command again goes on where it stopped",
        examples=[
            "mnmt-repro train",
            "mnmt-repro train --data eng-deu=talks.tsv --out runs/talks",
            "mnmt-repro train --corpus webtech --pairs eng-deu,eng-zho --weights 0.3,0.7 \\"
            "\n      --d-model 32 --layers 2 --target-tokens 6000000 --out runs/dezh",
            "mnmt-repro train --continue-from runs/talks-start --data eng-deu=talks.tsv \\"
            "\n      --data eng-xho=new.tsv --upsample eng-xho=5 --out runs/both",
            "torchrun --nproc-per-node 8 --no-python \\"
            "\n      mnmt-repro train --preset paper-b --data eng-deu=talks.tsv --device cuda",
        ],
        act=act,
    )
    parser.register("action", None, Noted)  # of every option that says nothing else
    parser.set_defaults(given=frozenset())
    parser.add_argument(
        "--continue-from",
        type=Path,
        metavar="FOLDER",
        help="train on a model that `upgrade` wrote, with its learning-rate scaling, optimiser "
        "state and schedule; model options are settled then, and training settings that are not "
        "given, but for the budget, are the old run's",
    )
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        help="published settings for text of your own: Paper A's with the first of its eight "
        "sizes, or Paper B's baseline; options given beside it win. They are for many GPUs (see "
        "the last example) and have not been run here",
    )
    text = parser.add_argument_group("text")
    text.add_argument(
        "--data",
        action="append",
        metavar="PAIR=FILE",
        help="your own bitext, once a pair: PAIR=FILE.tsv, PAIR=FILE.jsonl or PAIR=SOURCE,TARGET "
        "(.gz and .xz too); name columns by FILE.tsv?source=english&target=german, and more by "
        "&domain=COLUMN, &split_column=COLUMN&split=train, &format=tsv",
    )
    text.add_argument(
        "--valid",
        action="append",
        metavar="PAIR=FILE",
        help="validation text for --data (default: a twentieth held out, at most 400 sentences)",
    )
    text.add_argument("--corpus", help="a corpus of `data list` (default: conlang)")
    text.add_argument("--pairs", metavar="PAIR,...", help="default: all out of English (or src)")
    text.add_argument(
        "--concepts", type=int, default=FIRST_RUN["concepts"], help="conlang: words to learn"
    )
    text.add_argument(
        "--similarity", type=float, default=0.0, help="conlang: share of words in common, 0 to 1"
    )
    text.add_argument(
        "--tags",
        choices=("auto", "none", "source", "both"),
        default="auto",
        help="where language tags go; auto: the target's before the source if targets differ",
    )

    mixture = parser.add_argument_group("mixture (default: as many sentences as a pair has)")
    mixture.add_argument("--weights", metavar="P,...", help="per sentence, in the order of pairs")
    mixture.add_argument("--temperature", type=float, help="weights are size ** (1 / temperature)")
    mixture.add_argument(
        "--upsample", action="append", metavar="PAIR=FACTOR", help="count a pair's size so often"
    )

    model = parser.add_argument_group("model")
    model.add_argument(
        "--arch", choices=("t5", "fairseq"), default="t5", help="Paper A's shape, or Paper B's"
    )
    model.add_argument("--d-model", type=int, default=32, help="width")
    model.add_argument("--layers", type=int, default=1, help="layers of each stack")
    model.add_argument("--heads", type=int, default=4, help="attention heads")
    model.add_argument("--d-ff", type=int, help="feed-forward width (default: 4 times --d-model)")
    model.add_argument("--dropout", type=float, default=0.0, help="between and inside blocks")
    model.add_argument(
        "--attention-dropout", type=float, default=0.0, help="of attention, fairseq only"
    )
    model.add_argument(
        "--pieces", type=int, default=4000, help="vocabulary size, where one is trained"
    )
    model.add_argument(
        "--vocabulary-temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="pairs are sampled by size ** (1 / T) to train it",
    )
    model.add_argument(
        "--vocabulary", type=Path, metavar="FILE.model", help="use this vocabulary, train none"
    )
    _add_training(parser.add_argument_group("training"))

    run = parser.add_argument_group("run")
    run.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="the run's; one that was stopped, or that is to have a larger budget, goes on in its "
        "folder (default: one below runs/, named by its settings)",
    )
    run.add_argument("--seed", type=int, default=1, help="of weights, dropout and order of data")
    run.add_argument(
        "--device",
        default="cpu",
        help="cpu, cuda, cuda:1, ...; under torchrun cuda is each process's own",
    )
    run.add_argument(
        "--threads", type=int, default=1, help="of the processor; one is best for small models"
    )
    run.add_argument(
        "--checkpoint-seconds", type=float, default=30.0, help="time between checkpoints"
    )


def _add_training(group: argparse._ArgumentGroup) -> None:
    """Declare one option for each field of `TrainingConfig`."""
    kinds = typing.get_type_hints(TrainingConfig)
    for field in dataclasses.fields(TrainingConfig):
        options: dict[str, Any] = {"help": TRAINING_HELP[field.name]}
        parts = typing.get_args(kinds[field.name])
        if all(isinstance(part, str) for part in parts) and parts:
            options["choices"] = parts
        else:
            options["type"] = next((part for part in parts), kinds[field.name])
        default = DEFAULTS.get(field.name, field.default)
        options["default"] = None if default is dataclasses.MISSING else default
        group.add_argument(f"--{field.name.replace('_', '-')}", **options)


def training_config(options: argparse.Namespace) -> TrainingConfig:
    """The training that the options ask for."""
    given = {
        field.name: getattr(options, field.name) for field in dataclasses.fields(TrainingConfig)
    }
    if given["learning_rate"] is None:
        given["learning_rate"] = PEAK[options.optimiser]
    if given["target_tokens"] is None and given["steps"] is None:
        given["target_tokens"] = FIRST_BUDGET
    try:
        return TrainingConfig(**given)
    except InputError as error:  # which names its fields
        names = "|".join(field.name for field in dataclasses.fields(TrainingConfig))
        told = re.sub(rf"\b({names})\b", lambda at: f"--{at[1]}".replace("_", "-"), str(error))
        raise InputError(told.removeprefix("training ")) from error


def model_config(options: argparse.Namespace, vocab_size: int) -> ModelConfig:
    """The model that the options ask for."""
    if options.heads < 1 or options.d_model % options.heads:
        raise InputError(f"--heads {options.heads}: must divide --d-model {options.d_model}")
    shape: dict[str, Any] = {
        "vocab_size": vocab_size,
        "d_model": options.d_model,
        "layers": options.layers,
        "heads": options.heads,
        "d_ff": options.d_ff,
        "dropout": options.dropout,
    }
    if options.arch == "fairseq":
        return ModelConfig.fairseq(**shape, attention_dropout=options.attention_dropout)
    if options.attention_dropout:
        raise InputError("--attention-dropout goes with --arch fairseq")
    return ModelConfig.t5(**shape)


def resolve_tags(choice: str, mixture: Mixture) -> str:
    """Where tags go; `auto` puts them before the source where there are several targets.

    >>> resolve_tags("auto", Mixture.two("eng-deu", "eng-zho", 0.5))
    'source'
    """
    if choice != "auto":
        return choice
    targets = {pair.partition("-")[2] for pair in mixture.pairs}
    return "source" if len(targets) > 1 else "none"


def act(options: argparse.Namespace) -> int:
    """Train, alone or as one of `torchrun`'s processes; 1 where the loss diverged."""
    check_device(options.device)
    with ExitStack() as held:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from mnmt_repro.training.distributed import process_group

            device = held.enter_context(process_group(options.device))
            options = argparse.Namespace(**{**vars(options), "device": device})
        return _train(options, held)


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM has come; a second one interrupts at once."""
    asked = threading.Event()

    def note(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        os.write(2, b"\nmnmt-repro: stopping after this step; once more to stop at once\n")

    if threading.current_thread() is not threading.main_thread():  # signals go to that one
        yield asked.is_set
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # One that is ignored, as Ctrl-C is by what a script began in the background, stays so.
    before = {n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _train(options: argparse.Namespace, held: ExitStack) -> int:
    """Train, or go on; print where the model stands."""
    from mnmt_repro.commands.continuing import (
        check_optimiser,
        check_text,
        left_out,
        notes,
        read_upgraded,
        settle,
    )
    from mnmt_repro.commands.trained import (
        RUN,
        VOCABULARY,
        check_free,
        read_run,
        read_vocabulary,
        write_run,
    )
    from mnmt_repro.commands.training_text import check_used, read_mixture, read_training_text
    from mnmt_repro.corpora.encoding import SyllableVocabulary
    from mnmt_repro.corpora.formats import content_hash
    from mnmt_repro.experiments.spec import digest
    from mnmt_repro.experiments.sweep import run_lock

    if options.threads < 1:
        raise InputError(f"--threads {options.threads}: give a number of threads, 1 or more")
    if options.seed not in range(2**31):
        raise InputError(f"--seed {options.seed}: give 0 or more, below 2**31")
    options = with_preset(options)
    if options.preset is not None and not (options.data or options.corpus):
        raise InputError(f"--preset {options.preset}: name its text, with --data or --corpus")
    upgraded = None if options.continue_from is None else read_upgraded(options.continue_from)
    if upgraded is not None:
        options = settle(options, upgraded)
    config = training_config(options)
    if upgraded is None:
        model_config(options, 1)  # mistakes in the options come before any text is read
    check_used(options)
    text = read_training_text(options)
    mixture = read_mixture(options, text)
    tags = resolve_tags(options.tags, mixture)
    if config.keep == "best" and text.conlang is None and not set(text.valid) & set(mixture.pairs):
        raise InputError("--keep best: no pair of the mixture has validation text; see --valid")
    missing: list[str] = []
    if upgraded is not None:
        check_text(upgraded, text, mixture, tags)
        missing = left_out(upgraded, mixture)
        if missing:
            forgotten = ", ".join(missing)
            print(f"mnmt-repro: not in the text, and soon forgotten: {forgotten}", file=sys.stderr)
        for note in notes(upgraded, text, mixture, config, tags):
            print(f"mnmt-repro: note: {note}", file=sys.stderr)

    import torch

    from mnmt_repro.training.distributed import processes
    from mnmt_repro.training.loop import TrainingDiverged, finished, standing, train

    about = {
        "corpus": "own" if options.data else options.corpus or "conlang",
        "pairs": [*mixture.pairs, *missing],
        "mixture": mixture.weights,
        "tags": tags,
        "languages": sorted(
            {name for pair in (*mixture.pairs, *missing) for name in pair.split("-")}
        ),
        "conlang": None if text.conlang is None else dataclasses.asdict(text.conlang),
        "training": dataclasses.asdict(config),
        "seed": options.seed,
    }
    start = None
    if upgraded is not None:
        about["continued_from"] = upgraded.origin
        start = upgraded.start()
        check_optimiser(upgraded, start, config)
    training = {k: v for k, v in about["training"].items() if k not in BUDGET}
    unbounded = about | {"training": training}  # a larger budget goes on with the same run
    identity = digest([unbounded, _text_identity(options, text), _model_identity(options)], 12)
    size = _size(options) if start is None else shape_name(start.model.config)
    folder = options.out or Path("runs") / f"{about['corpus']}-{size}-{identity[:6]}"
    group = processes()
    with group.first_in_turn():
        known = read_run(folder) if (folder / RUN).exists() else None
        if known is not None and known["identity"] != identity:
            raise InputError(
                f"--out {folder}: holds another run ({_differences(options, known, about)}); "
                "choose another folder, or remove this one"
            )
        if known is not None:
            _check_budget(folder, known, config)
        if known is None:
            check_free(folder, ours=("lock", VOCABULARY))
            vocabulary = _make_vocabulary(options, text, upgraded)
            vocabulary.check_free(folder / VOCABULARY)
        else:
            vocabulary = read_vocabulary(folder, known)
        model = model_config(options, len(vocabulary)) if start is None else start.model.config
        about = {
            "identity": identity,
            **about,
            "vocabulary": vocabulary.hash,
            "model": dataclasses.asdict(model),
        }
        if options.data:
            about["validation"] = {p: content_hash(bitext) for p, bitext in text.valid.items()}
        encoded = _encode(text, vocabulary, mixture, tags, config, options.seed)
        # Nothing is wrong with text and options: only now is anything written.
        if group.first:
            try:
                held.enter_context(run_lock(folder))
            except OSError as error:
                raise InputError(f"--out {folder}: cannot be written: {error.strerror}") from error
            if (
                known is None
                and (folder / RUN).exists()
                and read_run(folder)["identity"] != identity
            ):
                raise InputError(
                    f"--out {folder}: another run was begun here meanwhile; choose another folder"
                )
        if known is None and not isinstance(vocabulary, SyllableVocabulary):
            vocabulary.save(folder / VOCABULARY)
        if known is None or not _same_budget(known, config):
            write_run(folder, about)
    torch.set_num_threads(options.threads)
    try:
        trained, progress = train(
            model if start is None else start.model,
            config,
            encoded,
            mixture,
            folder,
            seed=options.seed,
            identity=identity,
            device=options.device,
            checkpoint_seconds=options.checkpoint_seconds,
            label=folder.name,
            prepare=None if start is None else start.prepare,
            schedule_start=0 if start is None else start.schedule_start,
            stop=None if group.count > 1 else held.enter_context(asked_to_stop()),
        )
    except TrainingDiverged as error:
        if group.first:
            print(f"mnmt-repro: {error}", file=sys.stderr)
        return 1
    if not group.first:
        return 0
    if not finished(progress, config):
        print(
            f"mnmt-repro: {folder}: stopped at {standing(progress, config)}, and saved; the same "
            "command goes on from there",
            file=sys.stderr,
        )
        return 130
    counts = parameter_counts(trained.config)
    print(
        f"{folder}: {progress.step:,} steps, {progress.target_tokens:,} target tokens, "
        f"{counts['total']:,} parameters ({counts['non_embedding']:,} without tables), "
        f"{progress.seconds:.0f} s"
    )
    for pair in mixture.pairs:
        points = [point for point in progress.curve if point["pair"] == pair]
        losses = [point["cross_entropy"] for point in points]
        best = min(losses, default=None) if config.keep == "best" else (losses or [None])[-1]
        if best is not None:
            print(f"{pair}: validation {best:.4f} nats a token{_floor(text, pair)}")
    to = mixture.pairs[0].partition("-")[2]
    where = shlex.quote(str(folder))
    own = "".join(f" --data {pair}=FILE" for pair in mixture.pairs) if options.data else ""
    print(f"next: mnmt-repro evaluate {where}{own}\n      mnmt-repro translate {where} --to {to}")
    return 0


def _differences(options: argparse.Namespace, known: dict[str, Any], about: dict[str, Any]) -> str:
    """What sets the run in a folder, `known`, apart from the one asked for."""
    names = ("corpus", "pairs", "mixture", "tags", "seed")
    there, here = (
        (run["conlang"] or {}) | {name: run.get(name) for name in names} | run["training"]
        for run in (known, json.loads(json.dumps(about)))
    )
    if (known.get("continued_from") or {}).get("identity") != (
        about.get("continued_from") or {}
    ).get("identity"):
        return "it goes on from another upgraded model"
    if options.continue_from is None and "model" in known:
        there |= known["model"]
        here |= dataclasses.asdict(model_config(options, known["model"]["vocab_size"]))
    told = [
        f"{name}: {_shown(there.get(name))} there, {_shown(here.get(name))} here"
        for name in sorted((here.keys() | there.keys()) - set(BUDGET))
        if there.get(name) != here.get(name)
    ]
    return "; ".join(told) or "its text, vocabulary or program version differ"


def _same_budget(known: dict[str, Any], config: TrainingConfig) -> bool:
    return all(known["training"][name] == getattr(config, name) for name in BUDGET)


def _check_budget(folder: Path, known: dict[str, Any], config: TrainingConfig) -> None:
    """Refuse to shorten a run below where it stands; a longer budget goes on with it."""
    from mnmt_repro.training.checkpoint import read_progress
    from mnmt_repro.training.loop import LAST, finished, standing

    if _same_budget(known, config) or not (folder / LAST).exists():
        return
    progress = read_progress(folder / LAST)
    if finished(progress, config):
        raise InputError(
            f"--out {folder}: its run has gone beyond that ({standing(progress, config)}); give "
            "more, or choose another folder"
        )


def _shown(value: Any) -> str:
    return f"{value:,}" if type(value) is int else str(value)


def _size(options: argparse.Namespace) -> str:
    return f"d{options.d_model}x{options.layers}"


def shape_name(model: ModelConfig) -> str:
    """Width and layers, those of the decoder where they are not the encoder's.

    >>> shape_name(ModelConfig.t5(vocab_size=9, d_model=8, layers=2, heads=2))
    'd8x2'
    """
    layers = f"{model.encoder_layers}"
    if model.decoder_layers != model.encoder_layers:
        layers += f"-{model.decoder_layers}"
    return f"d{model.d_model}x{layers}"


def _model_identity(options: argparse.Namespace) -> list[Any]:
    """What decides model and vocabulary, known before the vocabulary is there.

    Of an upgraded model the upgrade's identity does, which is in `about`.
    """
    if options.continue_from is not None:
        return []
    if options.vocabulary is not None:
        from mnmt_repro.corpora.vocabulary import Vocabulary

        pieces: Any = Vocabulary.load(options.vocabulary).hash
    else:
        pieces = [options.pieces, options.vocabulary_temperature]
    return [dataclasses.asdict(model_config(options, 1)), pieces]


def _text_identity(options: argparse.Namespace, text: TrainingText) -> list[Any]:
    from mnmt_repro.corpora.formats import content_hash
    from mnmt_repro.experiments.code_version import code_version

    hashes = [[pair, content_hash(bitext)] for pair, bitext in sorted(text.train.items())]
    hashes += [[pair, content_hash(bitext)] for pair, bitext in sorted(text.valid.items())]
    return [code_version(upgraded=options.continue_from is not None), hashes]


def _make_vocabulary(
    options: argparse.Namespace, text: TrainingText, upgraded: Upgraded | None
) -> Vocabulary:
    """The upgraded model's vocabulary, the given one or one trained here; a conlang's own."""
    from mnmt_repro.corpora.encoding import SyllableVocabulary
    from mnmt_repro.corpora.vocabulary import Vocabulary, VocabularyConfig, train_vocabulary

    if text.conlang is not None:
        if options.vocabulary is not None:
            raise InputError("--vocabulary: a conlang's pieces are its syllables; leave it out")
        return SyllableVocabulary(text.conlang)
    if upgraded is not None:
        return upgraded.vocabulary
    if options.vocabulary is not None:
        return Vocabulary.load(options.vocabulary)
    config = VocabularyConfig(
        pieces=options.pieces,
        temperature=options.vocabulary_temperature,
        languages=tuple(name for pair in text.pairs for name in pair.split("-")),
    )
    return train_vocabulary(
        config, {pair: (each.source, each.target) for pair, each in text.train.items()}
    )


def _encode(
    text: TrainingText,
    vocabulary: Vocabulary,
    mixture: Mixture,
    tags: Any,
    config: TrainingConfig,
    seed: int,
) -> TrainingData:
    from mnmt_repro.commands.training_text import VALIDATION
    from mnmt_repro.corpora.encoding import (
        ConlangSentences,
        SyllableVocabulary,
        encode,
        encode_cached,
        encode_conlang,
    )
    from mnmt_repro.training.distributed import processes
    from mnmt_repro.training.loop import TrainingData

    if isinstance(vocabulary, SyllableVocabulary):
        conlang = vocabulary.conlang
        return TrainingData(
            sentences={
                pair: ConlangSentences(conlang, pair, tags, start=seed << 32)
                for pair in mixture.pairs
            },
            validation={
                pair: encode_conlang(conlang, pair, "valid", VALIDATION, tags)
                for pair in mixture.pairs
            },
        )
    sentences, validation = {}, {}
    for pair in mixture.pairs:
        whole = encode_cached(text.train[pair], vocabulary, tags)
        sentences[pair] = whole.shorter_than(config.max_length)
        if not sentences[pair].size:
            raise InputError(
                f"{pair}: all {whole.size} sentences are longer than --max-length "
                f"{config.max_length} tokens; raise it"
            )
        out = whole.size - sentences[pair].size
        if out and processes().first:
            print(
                f"mnmt-repro: {pair}: {out:,} of {whole.size:,} sentences left out, longer than "
                f"--max-length {config.max_length}",
                file=sys.stderr,
            )
        if pair in text.valid:
            few = text.valid[pair].select(range(min(VALIDATION, len(text.valid[pair]))))
            validation[pair] = encode(few, vocabulary, tags)
    return TrainingData(sentences=sentences, validation=validation)


def _floor(text: TrainingText, pair: str) -> str:
    """For a conlang, the least loss that any model can reach."""
    if text.conlang is None:
        return ""
    from mnmt_repro.corpora.conlang import irreducible_entropy

    return f" (no model can go below {irreducible_entropy(text.conlang, pair):.4f})"
