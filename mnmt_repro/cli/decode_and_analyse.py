"""`sweep --decode` and `sweep --analyse`: work with the checkpoints of a cohort's finished runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mnmt_repro.declared import cohorts_module
from mnmt_repro.errors import InputError
from mnmt_repro.runs.order import with_parents
from mnmt_repro.runs.spec import RunSpec

if TYPE_CHECKING:
    from mnmt_repro.cli.sweep_options import SweepOptions

SHOWN = 5  # runs named of a longer list


def work_through(
    options: SweepOptions,
    specs: Sequence[RunSpec],
    stored: Mapping[str, Mapping[str, Any]],
    *,
    todo: Mapping[str, str],
    needs: Callable[[RunSpec], Iterable[RunSpec]],
    verb: str,
    work: Callable[..., dict[str, Any]],
    arguments: Callable[[RunSpec], tuple[Any, ...]],
    store: Callable[[dict[str, Any]], object],
) -> int:
    """Do some work with the checkpoint of each finished run, and store what comes of it.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.
    todo
        Ids of those of `specs` that are finished, and for which it is not done; with what
        ``--dry-run`` says of each, beside its label.
    needs
        The runs without whose checkpoints it cannot be done for a run.
    verb
        What is done: ``"decode"``.
    work
        Done for a run, its folder, what the store says of it, and `arguments` of it; see
        `runs.decoding.decode`.

    Returns
    -------
    1 where it is not done for all of `specs` after that, else 0.

    Raises
    ------
    InputError
        When it can be done for none of `todo`.
    """
    from mnmt_repro.runs.finished import without_checkpoint
    from mnmt_repro.runs.sweep import process_pool, sweep

    mine = [spec for spec in specs if spec.run_id in todo]
    needed = {spec.run_id: spec for each in mine for spec in needs(each)}
    absent = without_checkpoint(list(needed.values()), options.runs)
    there = [spec for spec in mine if not without_checkpoint(list(needs(spec)), options.runs)]
    finished = sum(spec.run_id in stored for spec in specs)
    print(
        f"{len(specs)} runs: {finished} trained, {finished - len(todo)} {verb}d before, "
        f"{len(there)} to {verb}, {len(todo) - len(there)} without a checkpoint in {options.runs}"
    )
    if absent:
        lines = [f"  {spec.run_id}  {spec.label}" for spec in absent[:SHOWN]]
        if len(absent) > SHOWN:
            lines.append(f"  and {len(absent) - SHOWN} more")
        lines.append(
            f"no checkpoint in {options.runs} of the run(s) above; the store keeps scores, not "
            "weights. Give --runs the folder that they were trained in, or train them again with "
            f"`mnmt-repro sweep {' '.join(options.names)} --runs {options.runs} --results FOLDER`, "
            f"FOLDER being an empty one, and then {verb}"
        )
        print("\n".join(lines), file=sys.stderr)
    if options.dry_run:
        for spec in there:
            print(f"{spec.run_id}  {spec.label}{todo[spec.run_id]}")
        return 0
    if todo and not there:
        raise InputError(f"--runs {options.runs}: no run to {verb} has its checkpoints here")

    def job(spec: RunSpec) -> Callable[[], dict[str, Any]]:
        about = (options.runs / spec.run_id, stored[spec.run_id])
        return partial(work, spec, *about, *arguments(spec), device=options.device)

    with process_pool(options.workers) as executor:
        failures = sweep(
            there,
            is_done=lambda spec: False,
            store=store,
            runs_folder=options.runs,
            executor=executor,
            work=job,
        )
    return 1 if failures or absent or finished < len(specs) else 0


def analyse_runs(
    options: SweepOptions, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
) -> int:
    """Analyse the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.

    Raises
    ------
    InputError
        When there is nothing that can be analysed.
    """
    from mnmt_repro import results
    from mnmt_repro.results import analyses, sentences
    from mnmt_repro.runs.analysing import analyse_and_score

    cohorts = cohorts_module("analysed")
    analyses_of, scored_by_sentence = cohorts.analyses_of, cohorts.scored_by_sentence
    root = results.results_root(options.results)
    specs = [spec for spec in specs if analyses_of(spec) or scored_by_sentence(spec)]
    finished = [spec for spec in specs if spec.run_id in stored]

    def lacking(file: Any) -> frozenset[str]:
        paths = {spec.run_id: file.path_of(root, spec.corpus, spec.run_id) for spec in finished}
        return frozenset(run_id for run_id, path in paths.items() if not path.exists())

    names = {spec.run_id: analyses_of(spec) for spec in finished}
    analysed = {run_id: names[run_id] for run_id in lacking(analyses) if names[run_id]}
    scored = lacking(sentences) & {s.run_id for s in finished if scored_by_sentence(s)}

    made = {run_id: list(names) for run_id, names in analysed.items()}
    for run_id in scored:
        made.setdefault(run_id, []).append("losses by sentence")

    def store(done: dict[str, Any]) -> None:
        corpus = done["corpus"]
        if "sentences" in done:
            results.write_sentence_losses(done["sentences"], corpus=corpus, root=root)
        if "analyses" in done:
            results.write_analyses(done["analyses"], corpus=corpus, root=root)

    return work_through(
        options,
        specs,
        stored,
        todo={run_id: f": {', '.join(names)}" for run_id, names in made.items()},
        needs=lambda spec: with_parents([spec]),
        verb="analyse",
        work=analyse_and_score,
        arguments=lambda spec: (analysed.get(spec.run_id, ()), spec.run_id in scored),
        store=store,
    )


def decode_runs(
    options: SweepOptions, specs: Sequence[RunSpec], stored: Mapping[str, Mapping[str, Any]]
) -> int:
    """Decode the runs of `specs` that are finished and have a checkpoint; 1 while some are not.

    Parameters
    ----------
    options
        Of the command `sweep`.
    stored
        Run id to what the store says of the run.

    Raises
    ------
    InputError
        When the cohort has been decoded with other settings, BLEURT's weights are not where they
        should be, or there is nothing that can be decoded.
    """
    from mnmt_repro import results
    from mnmt_repro.runs.decoding import decode, settings_of, usual

    sentences = options.sentences
    if sentences is None:
        sentences = usual({spec.corpus for spec in specs})
    settings = settings_of(sentences)
    scorer = "sacrebleu" if options.bleurt is None else "bleurt"
    if options.bleurt is not None:
        from mnmt_repro.evaluation.learned_metrics import bleurt_weights

        bleurt_weights(options.bleurt)
    decodings = [content["decoding"] for content in results.load_decodings(options.results)]
    wanted = {spec.run_id for spec in specs}
    _check_settings([d for d in decodings if d["run_id"] in wanted], settings)
    decoded = {d["run_id"] for d in decodings if d["scorer"] == scorer}

    return work_through(
        options,
        specs,
        stored,
        todo=dict.fromkeys((wanted & stored.keys()) - decoded, ""),
        needs=lambda spec: [spec],
        verb="decode",
        work=partial(decode, bleurt=options.bleurt),
        arguments=lambda spec: (sentences,),
        store=lambda content: results.write_decoding(content, root=options.results),
    )


def _check_settings(decodings: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Refuse to mix: one cohort is decoded in one way."""
    from mnmt_repro.results.decodings import in_words

    for decoding in decodings:
        if decoding["settings"] != settings:
            raise InputError(
                f"run {decoding['run_id']} has been decoded with {in_words(decoding['settings'])}, "
                f"not with {in_words(settings)}; decode all runs of a cohort alike (--sentences)"
            )
