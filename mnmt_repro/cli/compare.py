"""`compare`: losses of one trained model against another, and whether the difference is chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mnmt_repro.cli.options import MODEL, JsonOption, check_device, comma_list, print_json
from mnmt_repro.cli.test_sets import TestSetOptions, read_test_sets, tell_unknown
from mnmt_repro.corpora.formats import Bitext
from mnmt_repro.errors import InputError, show
from mnmt_repro.typed_config import required, setting

if TYPE_CHECKING:
    from mnmt_repro.runs.trained import Trained

MORE = (
    "A difference is MODEL minus BASELINE: a negative one is better. Models with different "
    "vocabularies are compared per character of the reference, because their tokens differ. The "
    "test resamples sentences, and does not include the variation between seeds: where it matters, "
    "train both models with several seeds. `sacrebleu --paired-bs` compares translations."
)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(JsonOption, TestSetOptions):
    """The options of `compare`."""

    baseline: Path = required(MODEL, flags=("baseline",), metavar="BASELINE")
    folder: Path = required(
        "the model that is compared with BASELINE", flags=("folder",), metavar="MODEL"
    )
    device: str = setting("cpu, cuda, cuda:1, ...", "cpu")


EXAMPLES = (
    "mnmt-repro compare runs/m20 runs/upgraded --data eng-deu=test.tsv",
    "mnmt-repro compare runs/dezh-p10 runs/dezh-p50 --test newstest21",
)


def act(options: CompareOptions) -> int:
    """Print a row for each pair and test set."""
    from mnmt_repro.runs.trained import load_trained

    check_device(options.device)
    baseline, model = (
        load_trained(folder, device=options.device) for folder in (options.baseline, options.folder)
    )
    baseline, model = _of_both(baseline, model, options)
    # Where the baseline does not say what it was trained on, the other model may.
    sets = read_test_sets(model if baseline.any_pair else baseline, options)
    rows = [_compared(baseline, model, name, text) for name, text in sets]
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


def _compared(baseline: Trained, model: Trained, name: str, text: Bitext) -> dict[str, Any]:
    """What a line of the answer says of a test set."""
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
    before, after = (float(each.sum() / units.sum()) for each in nats)
    return {
        "pair": text.pair,
        "test_set": name,
        "sentences": len(text),
        "measure": f"nats per {'token' if same else 'character'}",
        "baseline": before,
        "model": after,
        **asdict(bootstrap_gaps(nats[1] - nats[0], units)),
    }
