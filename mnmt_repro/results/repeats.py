"""Stored runs that were trained again, and how near they came to what is stored.

Nothing in a row says that the code of the checkout gives it. A run that is trained again does:
``mnmt-repro retrain`` makes one, ``sweep`` does where it needs the weights of a stored run. It is
stored as ``<root>/<corpus>/repeats/<run_id>-<digest>.json``, a file of the same schema as a run's;
`digest` is that of its scores, its hardware and its torch, so that the same outcome is stored once.

A processor that adds up in another order changes the last bit of a gradient, and training doubles
such a difference again and again. So a repeat elsewhere begins as the stored run did, which shows
that text, weights and steps are the same, and then becomes another run with its luck. Both are
measured, and each has its bound.

Other batches are another run. numpy 2.5 changed what `Generator.multinomial` draws in rare cases,
so the same seed then gives a few other batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_repro.errors import InputError
from mnmt_repro.results.files import Kind, Root, results_root, write_once
from mnmt_repro.results.schema import RUN
from mnmt_repro.runs.spec import digest

BEGINNING = 0.01
"""Of each pair's validation loss at the first point of the learning curve: the most it may differ
by. After some two hundred steps rounding has grown to a third of it; of Paper B's runs with other
seeds each is nearly twice as far off, or more, in one pair or another.
"""
END = 0.05
"""Of the mean test loss: the most it may differ by. Wide: a fault that shows only after the first
point, such as in the schedule, moves it; luck moves the smallest models by half as much."""

_INPUTS = ("config_hash", "data_hash", "vocabulary_hash", "n_total")
_SAME = (*_INPUTS, "steps", "target_tokens")
_SAME_OF_ROWS = ("p", "pair_target_tokens", "passes", "test_tokens", "sentences")
_KEY = ("pair", "test_set", "domain")
_OTHER_DRAWS = (
    "numpy 2.5 draws some batches otherwise than 2.4; install the versions of requirements.lock"
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A run that was trained again, held against the stored one.

    Attributes
    ----------
    other
        Fields that have to be alike and are not: with another text, vocabulary or order of batches
        it is another run, and its losses say nothing.
    identical
        Every loss is the stored one to the last bit.
    beginning
        Of the pairs' validation losses at the first point that both learning curves have, the
        difference that is largest, as a fraction of the stored, with its sign.
    mean
        Mean test loss over all rows, as a fraction above the stored (negative: below).
    largest
        Of single rows, the difference that is largest, with its sign.
    where
        The row it is in.
    """

    run_id: str
    other: tuple[str, ...] = ()
    identical: bool = False
    beginning: float = 0.0
    mean: float = 0.0
    largest: float = 0.0
    where: str = ""

    @property
    def reproduced(self) -> bool:
        """The same run, within `BEGINNING` and `END` of the stored one."""
        return not self.other and abs(self.beginning) <= BEGINNING and abs(self.mean) <= END

    def __str__(self) -> str:
        if self.other:
            hint = "" if set(self.other) & set(_INPUTS) else f"; {_OTHER_DRAWS}"
            return f"{self.run_id}: another run: {', '.join(self.other)} differ(s){hint}"
        if self.identical:
            return f"{self.run_id}: every loss is the stored one, bit for bit"
        verdict = "reproduced" if self.reproduced else "not reproduced"
        return (
            f"{self.run_id}: {verdict}: at the first point of its curve {self.beginning:+.4%} from "
            f"the stored (bound {BEGINNING:.1%}), at the end {self.mean:+.2%} in the mean (bound "
            f"{END:.0%}) and {self.largest:+.2%} at most ({self.where})"
        )


def compare(stored: Mapping[str, Any], again: Mapping[str, Any]) -> Comparison:
    """Hold a run that was trained again against the stored one; both as files of the store.

    Raises
    ------
    InputError
        When they are not of one run id.
    """
    run_id = stored["run"]["run_id"]
    if again["run"]["run_id"] != run_id:
        raise InputError(f"{again['run']['run_id']} is no repeat of {run_id}")
    before, after = (
        {tuple(row[name] for name in _KEY): row for row in content["rows"]}
        for content in (stored, again)
    )
    other = [name for name in _SAME if stored["run"][name] != again["run"][name]]
    if before.keys() != after.keys():
        other.append("test sets")
    else:
        other += [n for n in _SAME_OF_ROWS if any(before[key][n] != after[key][n] for key in after)]
    points, again_points = (
        {(point["step"], point["pair"]): point["cross_entropy"] for point in content["curve"]}
        for content in (stored, again)
    )
    common = points.keys() & again_points.keys()  # a run that went on from a shorter one has more
    if (points or again_points) and not common:
        other.append("points of the learning curve")
    if other:
        return Comparison(run_id=run_id, other=tuple(other))
    first = min((step for step, _ in common), default=None)
    begun = [again_points[key] / points[key] - 1 for key in common if key[0] == first]
    old, new = ([rows[k]["cross_entropy"] for k in before] for rows in (before, after))
    ratios = {k: y / x - 1 for k, x, y in zip(before, old, new, strict=True)}
    farthest = max(ratios, key=lambda key: abs(ratios[key]))
    return Comparison(
        run_id=run_id,
        identical=old == new and all(points[key] == again_points[key] for key in common),
        beginning=max(begun, key=abs, default=0.0),
        mean=sum(new) / sum(old) - 1,
        largest=ratios[farthest],
        where=" ".join(farthest),
    )


def write_repeat(content: Mapping[str, Any], *, root: Root = None) -> Path:
    """Store a run that was trained again; the same outcome a second time is not stored again.

    Parameters
    ----------
    content
        ``{"run", "rows", "curve"}``, as `runs.execute.execute` returns it.

    Raises
    ------
    InputError
        When it breaks the schema.
    """
    content = _REPEAT.whole(content, content["run"].get("run_id"))
    path = results_root(root) / _REPEAT.name(content)
    return path if path.exists() else write_once(path, content)


def _name_of(content: Mapping[str, Any]) -> str:
    run = content["run"]
    outcome = digest([content["rows"], run["hardware"], run["torch"]], 8)
    return f"{run['corpus']}/repeats/{run['run_id']}-{outcome}.json"


_REPEAT = Kind(what="repeat of run", folder="repeats/", name=_name_of, file=RUN)


def load_repeats(*, root: Root = None) -> list[dict[str, Any]]:
    """All of them, in order of path, as their files hold them.

    Raises
    ------
    InputError
        As `files.Kind.read`.
    """
    return [*_REPEAT.each(root)]
