"""`compare`: one trained model against another, and whether the difference is chance."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd

from mnmt_repro.cli.options import (
    MODEL,
    JsonOption,
    check_device,
    comma_list,
    print_json,
)
from mnmt_repro.cli.test_sets import TestSetOptions, read_test_sets, tell_unknown
from mnmt_repro.cli.translate import SearchOptions
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError, note, show
from mnmt_repro.typed_config import Range, required, setting

if TYPE_CHECKING:
    from mnmt_repro.evaluation.significance import Difference, PairedBootstrap
    from mnmt_repro.runs.trained import Trained

FEW = 4  # directions, below which a t-test over them finds next to nothing
READING = (
    "A difference is MODEL minus BASELINE: a negative one is better for losses, a positive one for "
    "metrics. Models with different vocabularies are compared per character of the reference, "
    "because their tokens differ. No test here includes the variation between seeds: where it "
    "matters, train both models with several seeds."
)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(JsonOption, SearchOptions, TestSetOptions):
    """The options of `compare`."""

    baseline: Path = required(MODEL, flags=("baseline",), metavar="BASELINE")
    folder: Path = required(
        "the model that is compared with BASELINE", flags=("folder",), metavar="MODEL"
    )
    decode: bool = setting("compare translations, too", False)
    metric: Literal["chrfpp", "chrf", "bleu", "spbleu"] = setting("for --decode", "chrfpp")
    draws: Annotated[int, Range(1, 1_000_000)] = setting("bootstrap samples", 1000)


EXAMPLES = (
    "mnmt-repro compare runs/m20 runs/upgraded --data eng-deu=test.tsv",
    "mnmt-repro compare runs/dezh-p10 runs/dezh-p50 --test newstest21 --decode",
)
MORE = READING


def act(options: CompareOptions) -> int:
    """Print a row for each pair and measure, and where there are several pairs, over them."""
    from mnmt_repro.runs.trained import load_trained

    check_device(options.device)
    baseline, model = (
        load_trained(folder, device=options.device) for folder in (options.baseline, options.folder)
    )
    baseline, model = _of_both(baseline, model, options)
    rows = []
    # Where the baseline does not say what it was trained on, the other model may.
    for name, text in read_test_sets(model if baseline.any_pair else baseline, options):
        about = {"pair": text.pair, "test_set": name, "sentences": len(text)}
        rows.append(about | _losses(baseline, model, name, text, options.draws))
        if options.decode:
            rows.append(about | _metric(baseline, model, text, options))
    rows += list(_over_directions(rows, options.test or ["indomain"]))
    if options.json:
        print_json(rows)
        return 0
    show(pd.DataFrame(rows).to_string(index=False, na_rep="", float_format="{:.4f}".format))
    return 0


def _of_both(baseline: Trained, model: Trained, options: CompareOptions) -> tuple[Trained, Trained]:
    """The two models as if each knew just the pairs that both know.

    Models of other programs do not say which those are: then the options do, or the other model.

    Raises
    ------
    InputError
        When there are none, or the models speak different generated languages.
    """
    both = tuple(pair for pair in baseline.pairs if pair in model.pairs)
    if baseline.any_pair or model.any_pair:
        asked = [spec.partition("=")[0] for spec in options.data]
        asked += comma_list(options.pairs or "")
        both = tuple(dict.fromkeys(asked or (*baseline.pairs, *model.pairs)))
        for each in (baseline, model):
            for pair in both:
                each.check_direction(pair, f"{each.folder}")
    if not both and baseline.any_pair and model.any_pair:
        raise InputError("neither model says what it was trained on; name text with --data")
    if not both:
        raise InputError(
            f"{baseline.folder} and {model.folder} have no pair in common: "
            f"{', '.join(baseline.pairs)}; {', '.join(model.pairs)}"
        )
    generated = baseline.conlang is not None or model.conlang is not None
    if generated and baseline.vocabulary.hash != model.vocabulary.hash:
        raise InputError(
            f"{baseline.folder} and {model.folder}: not of the same generated languages"
        )
    old, new = (
        replace(each, weights={pair: each.weights.get(pair, 0.0) for pair in both})
        for each in (baseline, model)
    )
    return old, new


def _compared(
    measure: str,
    baseline: float,
    model: float,
    result: Difference | PairedBootstrap,
    test: str = "bootstrap",
) -> dict[str, Any]:
    """What a line of the answer says of a measure."""
    row: dict[str, Any] = {"measure": measure, "baseline": baseline, "model": model}
    row |= {name: getattr(result, name, None) for name in ("difference", "low", "high", "p_value")}
    return row | {"test": test}


def _losses(
    baseline: Trained, model: Trained, name: str, text: Bitext, draws: int
) -> dict[str, Any]:
    from mnmt_repro.corpora.encoding import encode
    from mnmt_repro.evaluation.significance import bootstrap_gaps
    from mnmt_repro.scoring import check_finite, sentence_losses

    nats, tokens = [], np.zeros(0)
    for each in (baseline, model):
        encoded = encode(text, each.vocabulary, each.tags)
        tell_unknown(each.folder, encoded, f"{text.pair}, {name}")
        losses, tokens = sentence_losses(each.model, encoded)
        check_finite(losses, f"{each.folder}, {text.pair}")
        nats.append(losses)
    same = baseline.vocabulary.hash == model.vocabulary.hash
    units = (tokens if same else text.characters).astype(np.float64)
    result = bootstrap_gaps(nats[1] - nats[0], units, draws=draws)
    before, after = (float(each.sum() / units.sum()) for each in nats)
    return _compared(f"nats per {'token' if same else 'character'}", before, after, result)


def _metric(
    baseline: Trained, model: Trained, text: Bitext, options: CompareOptions
) -> dict[str, Any]:
    from mnmt_repro.evaluation.significance import paired_bootstrap

    before, after = (
        options.translations(each, text.source, text.pair) for each in (baseline, model)
    )
    result = paired_bootstrap(
        after,
        before,
        text.target,
        target_language=text.pair.partition("-")[2],
        metric=options.metric,
        samples=options.draws,
    )
    return _compared(options.metric, result.baseline, result.score, result)


def _over_directions(
    rows: list[dict[str, Any]], registered: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Means over the directions, with the paired t-test of Paper B, where there are several.

    Each registered test set by itself, all of `--data` together.
    """
    from mnmt_repro.evaluation.significance import paired_t_test

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        name = row["test_set"] if row["test_set"] in registered else "--data"
        groups.setdefault((name, row["measure"]), []).append(row)
    for (name, measure), mine in groups.items():
        after, before = ([row[side] for row in mine] for side in ("model", "baseline"))
        if len({row["model"] - row["baseline"] for row in mine}) < 2:
            continue  # nothing to test against
        if len(mine) < FEW:
            note(f"{measure}: a t-test over {len(mine)} directions can hardly find a difference")
        sentences = sum(row["sentences"] for row in mine)
        about = {"pair": f"all {len(mine)}", "test_set": name, "sentences": sentences}
        old, new = (float(np.mean(each)) for each in (before, after))
        yield about | _compared(measure, old, new, paired_t_test(after, before), "t-test")
