"""Every field of every configuration refuses what its type does not allow, by its name."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest

from mnmt_repro.architecture import ModelConfig
from mnmt_repro.corpora.conlang import ConlangConfig
from mnmt_repro.corpora.vocabulary import VocabularyConfig
from mnmt_repro.errors import InputError
from mnmt_repro.evaluation.search import SearchConfig
from mnmt_repro.training.config import usual_training
from mnmt_repro.typed_config import FieldError, Range
from mnmt_repro.upgrading.config import DepthConfig, Ramp, UpgradeConfig, WidthConfig

CONFIGURATIONS = (
    ModelConfig.t5(vocab_size=9, d_model=8, layers=1, heads=2),
    usual_training(steps=3),
    VocabularyConfig(pieces=400),
    ConlangConfig(),
    SearchConfig(),
    WidthConfig(),
    DepthConfig(),
    Ramp(start=0.0, end=1.0, steps=5),
    UpgradeConfig(),
)


def refused(hint: Any) -> Iterator[Any]:
    """Values that a field of this type must refuse."""
    if get_origin(hint) is Annotated:
        kind, allowed = get_args(hint)
        yield from ("x", -math.inf, math.nan, True)
        yield from (end for end in edges(allowed, kind) if math.isfinite(end))
    elif get_origin(hint) is Literal:
        yield "no such"
    elif isinstance(hint, UnionType):
        yield from refused(get_args(hint)[0])


def edges(allowed: Range, kind: type) -> Iterator[float]:
    """The nearest numbers outside a range."""
    step = 1 if kind is int else 1e-3
    yield allowed.low if allowed.above else allowed.low - step
    yield allowed.high if allowed.below else allowed.high + step


FIELDS = [
    (config, name, hint)
    for config in CONFIGURATIONS
    for name, hint in get_type_hints(type(config), include_extras=True).items()
]


@pytest.mark.parametrize(
    ("config", "name", "hint"), FIELDS, ids=[f"{type(c).__name__}.{n}" for c, n, _ in FIELDS]
)
def test_a_field_refuses_what_its_type_does_not_allow(config: Any, name: str, hint: Any) -> None:
    for value in refused(hint):
        with pytest.raises(InputError, match=name):
            replace(config, **{name: value})


def test_a_mistake_in_a_field_can_be_sent_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(FieldError(("sizes", 1), "is missing")))
    assert (str(error), error.at) == ("sizes[1]: is missing", ("sizes", 1))
