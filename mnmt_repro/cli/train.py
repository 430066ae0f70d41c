"""`train`: train a model, or an upgraded one on, on your own bitext, a corpus or a conlang."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnmt_repro.architecture import ModelConfig, machine_memory
from mnmt_repro.cli.continuing import UpgradedFolder
from mnmt_repro.cli.options import check_device, check_folder
from mnmt_repro.cli.stopping import asked_to_stop
from mnmt_repro.cli.train_options import (
    TrainOptions,
    model_config,
    read_mixture,
    read_options,
    text_source,
    usual,
)
from mnmt_repro.corpora.encoding import resolve_tags
from mnmt_repro.errors import InputError, note, tell
from mnmt_repro.runs.spec import OWN, Own, RunSpec
from mnmt_repro.runs.training_text import TextSource, TrainingText
from mnmt_repro.training.config import COMPILE_PAYS, LAST

EXAMPLES = (
    "mnmt-repro train",
    "mnmt-repro train --data eng-deu=talks.tsv --out runs/talks",
    "mnmt-repro train --corpus webtech --pairs eng-deu,eng-zho --weights eng-deu=0.3,eng-zho=0.7 \\"
    "\n      --d-model 32 --layers 2 --target-tokens 6000000 --out runs/dezh",
    "mnmt-repro train --continue-from runs/talks-start --data eng-deu=talks.tsv \\"
    "\n      --data eng-xho=new.tsv --upsample eng-xho=5 --out runs/both",
    "torchrun --nproc-per-node 8 --no-python \\"
    "\n      mnmt-repro train --preset paper-b --data eng-deu=talks.tsv --device cuda",
)
READ, USUAL = read_options, usual


def act(options: TrainOptions) -> int:
    """Train, alone or as one of `torchrun`'s processes; 1 where the loss diverged."""
    check_device(options.device)
    with ExitStack() as held:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from mnmt_repro.training.distributed import process_group

            options = replace(options, device=held.enter_context(process_group(options.device)))
        return _train(options, held)


def _on_path(spec: RunSpec, options: TrainOptions) -> tuple[RunSpec, tuple[str, ...]]:
    """The run as it was begun, or else compiled where `COMPILE_PAYS` says so; and lines on why.

    A compiled run is in bfloat16 where the processor has it and no precision was asked for: losses
    differ by less than between seeds (`data/benchmarks/precision.json`). Options may settle
    the path; the table is of one process with one thread. Nothing is compiled without a compiler.
    """
    from mnmt_repro.runs.trained import RUN, read_about
    from mnmt_repro.training.compiled import can_compile, has_bfloat16

    if spec.training.compile and not can_compile(options.device):
        note("--compile needs a C++ compiler, and there is none: training is not compiled")
        spec = replace(spec, training=replace(spec.training, compile=False))
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1 and options.threads == 1
    settled = options.exact or spec.training.compile
    other = options.device != "cpu" or options.shard or options.recompute
    if settled or other or not alone:
        return spec, ()
    likely = dict.fromkeys([spec.training.precision] + ["bfloat16"] * options.any_precision)
    compiled = {
        name: replace(spec, training=replace(spec.training, compile=True, precision=name))
        for name in likely
    }
    for each in (spec, *compiled.values()):
        if ((folder := _folder(options, each)) / RUN).exists():
            begun = read_about(folder)["training"]
            return (compiled.get(begun["precision"], spec) if begun.get("compile") else spec), ()
    width, tokens = spec.model.d_model, spec.training.planned_tokens
    pays = next((pays for most, pays in COMPILE_PAYS.items() if width <= most), None)
    if pays is None:
        why = f"whether compiling pays at width {width} has not been measured"
    elif tokens < pays:
        why = f"compiling pays from {pays:,} target tokens at width {width}"
    elif can_compile(options.device):
        lower = options.any_precision and has_bfloat16()
        name = "bfloat16" if lower else spec.training.precision
        why = f"compiled in {name}, which pays from {pays:,} target tokens at width {width}"
        return compiled[name], (f"training is {why}; see --exact",)
    else:
        why = "there is no C++ compiler"
    return spec, (f"training is not compiled: {why}",)


def _folder(options: TrainOptions, spec: RunSpec) -> Path:
    """Of the run; by default named by its settings."""
    from mnmt_repro.runs.folder import shape_name

    name = f"{spec.corpus}-{shape_name(spec.model)}-{spec.identity[:6]}"
    return options.out or Path("runs") / name


def _declare(
    options: TrainOptions,
    source: TextSource,
    text: TrainingText,
    model: ModelConfig,
    upgraded: UpgradedFolder | None,
) -> RunSpec:
    """The run that the options ask for.

    What cannot be trained is refused, and what would not be expected is noted on stderr.
    """
    config = options.training
    mixture = read_mixture(options, text)
    for name in ("loss_weights", "first_weights"):
        if (weights := getattr(config, name)) is not None:
            mixture.like(weights, f"--{name.replace('_', '-')}")
    tags = resolve_tags(options.tags, mixture.pairs)
    if config.keep == "best" and text.conlang is None and not set(text.valid) & set(mixture.pairs):
        raise InputError("--keep best: no pair of the mixture has validation text; see --valid")
    if without := [pair for pair in text.train if not len(text.valid.get(pair, ()))]:
        note(f"no validation text of {', '.join(without)}, and no loss of it will be shown")
    if upgraded is None:
        own = Own(text=text.hashes, pieces=source.pieces_from)
    else:
        upgraded.check_text(text, mixture, tags)
        missing = tuple(pair for pair in upgraded.about["pairs"] if pair not in mixture.pairs)
        if missing:
            tell(f"not in the text, and soon forgotten: {', '.join(missing)}")
        note(*upgraded.notes(text, config, tags))
        own = Own(text=text.hashes, continued_from=upgraded.origin, left_out=missing)
    return RunSpec(
        tier=OWN,
        corpus=text.corpus,
        mixture=mixture,
        model=model,
        training=config,
        tags=tags,
        seed=options.seed,
        conlang=text.conlang,
        own=own,
    )


def _train(options: TrainOptions, held: ExitStack) -> int:
    """Train, or go on; print where the model stands, and store its row."""
    import torch

    from mnmt_repro.runs.data import load_run_data, make_vocabulary
    from mnmt_repro.runs.execute import execute
    from mnmt_repro.runs.folder import find_run, take_run
    from mnmt_repro.runs.trained import VOCABULARY, read_vocabulary
    from mnmt_repro.training.checkpoint import read_progress
    from mnmt_repro.training.distributed import processes
    from mnmt_repro.training.loop import TrainingDiverged, how_far

    if options.shard and options.training.optimiser == "adafactor":
        raise InputError("--shard: adafactor cannot be split; add --optimiser adamw")
    source, upgraded, start = text_source(options), None, None
    if options.continue_from is not None:
        upgraded = UpgradedFolder.read(options.continue_from)
        start = upgraded.start(options.training)
        model = start.model.config
    else:  # mistakes in the options come before those in the text
        model = model_config(options, source.vocabulary_size)
    text = source.read()
    spec, path = _on_path(_declare(options, source, text, model, upgraded), options)
    folder = _folder(options, spec)
    store = options.results or folder.parent / "results"
    check_folder(folder, "--out")
    check_folder(store, "--results")
    group = processes()
    _check_memory(spec, options, group.count)
    with group.first_in_turn():
        known = find_run(folder, spec)
        if known is not None:
            vocabulary = read_vocabulary(folder, known)
        else:
            vocabulary = upgraded.vocabulary if upgraded else make_vocabulary(text, source)
            vocabulary.check_free(folder / VOCABULARY)
        data = load_run_data(spec, text, vocabulary)
        if group.first:
            note(*data.notes)
            # Nothing is wrong with text and options: only now is anything written.
            take_run(folder, spec, held)
            tell(*path)
            if upgraded is not None and known is None:  # they are not those of the old run
                tell("weights: " + ", ".join(f"{pair} {p:.3g}" for pair, p in spec.mixture.items))
    torch.set_num_threads(options.threads)
    try:
        done = execute(
            spec,
            folder,
            data=data,
            about=source.described(text),
            start=start,
            device=options.device,
            checkpoint_seconds=options.checkpoint_seconds,
            recompute=options.recompute,
            shard=options.shard,
            label=folder.name,
            stop=None if group.count > 1 else held.enter_context(asked_to_stop()),
        )
    except TrainingDiverged as error:
        if group.first:
            tell(str(error))
        return 1
    if done:
        _report(spec, folder, done, _store(store, done))
    elif group.first:
        stands = how_far(read_progress(folder / LAST), spec.training)
        tell(f"{folder}: stopped at {stands}, and saved; the same command goes on from there")
        return 130
    return 0


def _check_memory(spec: RunSpec, options: TrainOptions, processes: int) -> None:
    """Refuse a model that takes more memory to train than the device has."""
    import torch

    device = options.device
    if torch.device(device).type == "cuda":
        there = torch.cuda.get_device_properties(device).total_memory
    else:
        there = machine_memory()
    tokens = -(-spec.training.batch_tokens // processes)
    alone = replace(spec, training=replace(spec.training, batch_tokens=tokens))
    shards = processes if options.shard else 1
    needed = alone.memory(device, recompute=options.recompute, shards=shards)
    if needed > there:
        raise InputError(
            f"training takes some {needed / 2**30:,.3g} GiB, and {device} has "
            f"{there / 2**30:,.3g} GiB: use --accumulate, --recompute, --shard or fewer "
            "--batch-tokens, or make the model less wide or deep"
        )


def _store(root: Path, done: dict[str, Any]) -> Path | None:
    """Write a run's rows to the user's store, once; None where that cannot be."""
    from mnmt_repro import results

    path = results.run_file(done["run"]["corpus"], done["run"]["run_id"], root)
    try:
        return path if path.exists() else results.write_run(**done, root=root)
    except InputError as error:
        note(f"no row is stored: {error}")
        return None


def _report(spec: RunSpec, folder: Path, done: dict[str, Any], row: Path | None) -> None:
    """What was trained, how well, and what to do next."""
    run, pairs = done["run"], spec.mixture.pairs
    print(
        f"{folder}: {run['steps']:,} steps, {run['target_tokens']:,} target tokens, "
        f"{run['n_total']:,} parameters ({run['n_non_embedding']:,} without tables), "
        f"{run['wall_seconds']:.0f} s"
    )
    kind = "validation" if spec.corpus == OWN else "test"
    for score in done["rows"]:  # on all of that text; the curve is on a sample
        if (score["test_set"], score["domain"]) == ("indomain", "all"):
            print(
                f"{score['pair']}: {score['cross_entropy']:.4f} nats a token on "
                f"{score['sentences']:,} {kind} sentences{_floor(spec, score['pair'])}"
            )
    if row is not None:
        print(f"row: {row}")
    where = shlex.quote(str(folder))
    own = "".join(f" --data {pair}=FILE" for pair in pairs) if spec.corpus == OWN else ""
    to = pairs[0].partition("-")[2]
    print(f"next: mnmt-repro evaluate {where}{own}\n      mnmt-repro translate {where} --to {to}")


def _floor(spec: RunSpec, pair: str) -> str:
    """For a conlang, the least loss that any model can reach."""
    if spec.conlang is None:
        return ""
    from mnmt_repro.corpora.conlang import irreducible_entropy

    return f" (no model can go below {irreducible_entropy(spec.conlang, pair):.4f})"
