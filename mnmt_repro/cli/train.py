"""`train`: train a model, or an upgraded one on, on your own bitext, a corpus or a conlang."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.cli.options import add_command, check_device, check_seed
from mnmt_repro.cli.presets import with_preset
from mnmt_repro.cli.stopping import asked_to_stop
from mnmt_repro.cli.train_options import (
    declare,
    model_config,
    resolve_tags,
    training_config,
)
from mnmt_repro.cli.training_text import (
    TrainingText,
    check_used,
    read_mixture,
    read_training_text,
)
from mnmt_repro.corpora.mixture import Mixture
from mnmt_repro.errors import InputError
from mnmt_repro.training.config import TrainingConfig

if TYPE_CHECKING:
    from mnmt_repro.cli.continuing import Upgraded
    from mnmt_repro.model import Transformer
    from mnmt_repro.training.checkpoint import Progress


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
    declare(parser)


def act(options: argparse.Namespace) -> int:
    """Train, alone or as one of `torchrun`'s processes; 1 where the loss diverged."""
    check_device(options.device)
    with ExitStack() as held:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from mnmt_repro.training.distributed import process_group

            device = held.enter_context(process_group(options.device))
            options = argparse.Namespace(**{**vars(options), "device": device})
        return _train(options, held)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What the options come to, before there is a vocabulary, and anything is written."""

    options: argparse.Namespace
    upgraded: Upgraded | None
    config: TrainingConfig
    text: TrainingText
    mixture: Mixture
    tags: Any
    left_out: tuple[str, ...]  # pairs of the old model that the mixture lacks

    @property
    def about(self) -> dict[str, Any]:
        """What `run.json` says of it."""
        options, pairs = self.options, (*self.mixture.pairs, *self.left_out)
        return {
            "corpus": "own" if options.data else options.corpus or "conlang",
            "pairs": list(pairs),
            "mixture": self.mixture.weights,
            "tags": self.tags,
            "languages": sorted({name for pair in pairs for name in pair.split("-")}),
            "conlang": None if self.text.conlang is None else dataclasses.asdict(self.text.conlang),
            "training": self.config.settings(),
            "seed": options.seed,
            **({} if self.upgraded is None else {"continued_from": self.upgraded.origin}),
        }


def _plan(options: argparse.Namespace) -> _Plan:
    """Read options and text, and refuse what cannot be trained; notes go to stderr."""
    if options.threads < 1:
        raise InputError(f"--threads {options.threads}: give a number of threads, 1 or more")
    check_seed(options.seed)
    options = with_preset(options)
    if options.preset is not None and not (options.data or options.corpus):
        raise InputError(f"--preset {options.preset}: name its text, with --data or --corpus")
    upgraded = None
    if options.continue_from is not None:
        from mnmt_repro.cli.continuing import read_upgraded, settle

        upgraded = read_upgraded(options.continue_from)
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
        from mnmt_repro.cli.continuing import check_text, left_out, notes

        check_text(upgraded, text, mixture, tags)
        missing = left_out(upgraded, mixture)
        if missing:
            forgotten = ", ".join(missing)
            print(f"mnmt-repro: not in the text, and soon forgotten: {forgotten}", file=sys.stderr)
        for note in notes(upgraded, text, mixture, config, tags):
            print(f"mnmt-repro: note: {note}", file=sys.stderr)
    return _Plan(
        options=options,
        upgraded=upgraded,
        config=config,
        text=text,
        mixture=mixture,
        tags=tags,
        left_out=tuple(missing),
    )


def _train(options: argparse.Namespace, held: ExitStack) -> int:
    """Train, or go on; print where the model stands."""
    import torch

    from mnmt_repro.cli.continuing import check_optimiser
    from mnmt_repro.cli.encoded import encode_text, make_vocabulary
    from mnmt_repro.cli.run_identity import (
        check_budget,
        differences,
        leave_decay,
        run_identity,
        same_budget,
        shape_name,
    )
    from mnmt_repro.corpora.encoding import SyllableVocabulary
    from mnmt_repro.corpora.formats import content_hash
    from mnmt_repro.runs.sweep import run_lock
    from mnmt_repro.runs.trained import (
        RUN,
        VOCABULARY,
        check_free,
        read_run,
        read_vocabulary,
        write_run,
    )
    from mnmt_repro.training.distributed import processes
    from mnmt_repro.training.loop import TrainingDiverged, finished, standing, train

    plan = _plan(options)
    options, config, text, mixture = plan.options, plan.config, plan.text, plan.mixture
    about, start = plan.about, None
    if plan.upgraded is not None:
        start = plan.upgraded.start()
        check_optimiser(plan.upgraded, start, config)
    identity = run_identity(options, text, about)
    size = f"d{options.d_model}x{options.layers}"
    if start is not None:
        size = shape_name(start.model.config)
    folder = options.out or Path("runs") / f"{about['corpus']}-{size}-{identity[:6]}"
    group = processes()
    with group.first_in_turn():
        known = read_run(folder) if (folder / RUN).exists() else None
        if known is not None and known["identity"] != identity:
            raise InputError(
                f"--out {folder}: holds another run ({differences(options, known, about)}); "
                "choose another folder, or remove this one"
            )
        if known is not None:
            check_budget(folder, known, config)
            vocabulary = read_vocabulary(folder, known)
        else:
            check_free(folder, ours=("lock", VOCABULARY))
            vocabulary = make_vocabulary(options, text, plan.upgraded)
            vocabulary.check_free(folder / VOCABULARY)
        model = model_config(options, len(vocabulary)) if start is None else start.model.config
        about = {
            "identity": identity,
            **about,
            "vocabulary": vocabulary.hash,
            "model": dataclasses.asdict(model),
        }
        if options.data:
            about["validation"] = {p: content_hash(bitext) for p, bitext in text.valid.items()}
        encoded = encode_text(text, vocabulary, mixture, plan.tags, config, options.seed)
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
        if known is None or not same_budget(known, config):
            if known is not None and group.first:
                leave_decay(folder, known, identity)
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
    _report(plan, folder, trained, progress)
    return 0


def _report(plan: _Plan, folder: Path, trained: Transformer, progress: Progress) -> None:
    """What was trained, how well, and what to do next."""
    counts, pairs = parameter_counts(trained.config), plan.mixture.pairs
    print(
        f"{folder}: {progress.step:,} steps, {progress.target_tokens:,} target tokens, "
        f"{counts['total']:,} parameters ({counts['non_embedding']:,} without tables), "
        f"{progress.seconds:.0f} s"
    )
    for pair in pairs:
        losses = [p["cross_entropy"] for p in progress.curve if p["pair"] == pair]
        best = min(losses, default=None) if plan.config.keep == "best" else (losses or [None])[-1]
        if best is not None:
            print(f"{pair}: validation {best:.4f} nats a token{_floor(plan.text, pair)}")
    where = shlex.quote(str(folder))
    own = "".join(f" --data {pair}=FILE" for pair in pairs) if plan.options.data else ""
    to = pairs[0].partition("-")[2]
    print(f"next: mnmt-repro evaluate {where}{own}\n      mnmt-repro translate {where} --to {to}")


def _floor(text: TrainingText, pair: str) -> str:
    """For a conlang, the least loss that any model can reach."""
    if text.conlang is None:
        return ""
    from mnmt_repro.corpora.conlang import irreducible_entropy

    return f" (no model can go below {irreducible_entropy(text.conlang, pair):.4f})"
