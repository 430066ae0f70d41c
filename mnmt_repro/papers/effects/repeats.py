"""Stored runs that were trained again: how near they came, and what that says of noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.names import cohort_name
from mnmt_repro.papers.effects.framed import Rows, framed
from mnmt_repro.results.repeats import compare

KEY = ["run_id", "pair", "test_set", "domain"]
ONE_THREAD = ", 1 thread(s)"  # what every run of the mini tier has


@framed(
    *("run", "cohort", "size", "starts from", "stored on", "again on", "begins", "ends", "row"),
    "reproduced",
)
def repeats_table(
    rows: pd.DataFrame,
    stored: Iterable[Mapping[str, Any]],
    repeats: Iterable[Mapping[str, Any]],
) -> Rows:
    """What came of training stored runs again, a row a repeat.

    Parameters
    ----------
    rows
        From `results.load`; says which cohort a run belongs to.
    stored, repeats
        From `results.load_runs` and `results.load_repeats`.

    Returns
    -------
    DataFrame
        Run, the first cohort that declares it, size, what it `starts from`, processor of the stored
        run and of the repeat, and differences as fractions of the stored: `begins` at the first
        point of the learning curve, `ends` in the mean test loss, `row` where a test set differs
        most.

    Raises
    ------
    InputError
        When the run that was trained again is not stored.
    """
    kept = {content["run"]["run_id"]: content for content in stored}
    cohorts = rows.drop_duplicates("run_id").set_index("run_id")["cohort"]
    for again in repeats:
        first = kept.get(again["run"]["run_id"])
        if first is None:
            raise InputError(
                f"there is a repeat of run {again['run']['run_id']}, which is not stored"
            )
        run, found = first["run"], compare(first, again)
        verdict = "identical" if found.identical else "yes" if found.reproduced else "no"
        yield {
            "run": run["run_id"],
            "cohort": cohort_name(cohorts.get(run["run_id"], "")),
            "size": run["size"],
            "starts from": "an old model" if run["config"].get("upgrade") else "scratch",
            "stored on": run["hardware"].removesuffix(ONE_THREAD),
            "again on": again["run"]["hardware"].removesuffix(ONE_THREAD),
            "begins": found.beginning,
            "ends": found.mean,
            "row": found.largest,
            "reproduced": verdict,
        }


def noise_of_repeats(rows: pd.DataFrame, repeats: Iterable[Mapping[str, Any]]) -> tuple[float, int]:
    """Standard deviation of a run's loss, relative, from stored runs that were trained again.

    Two runs that begin alike and differ in rounding lie apart by the noise of both: the root mean
    square of the differences of log losses, over the square root of two. It is a lower bound on
    the noise between seeds, which draw other weights and batches besides.

    Parameters
    ----------
    rows
        From `results.load`, of one test set and domain.

    Returns
    -------
    The deviation, NaN where no run of `rows` was trained again with another outcome, and on how
    many losses it rests.
    """
    records = [
        {"run_id": again["run"]["run_id"]} | {k: row[k] for k in (*KEY[1:], "cross_entropy")}
        for again in repeats
        for row in again["rows"]
    ]
    if not records:
        return float("nan"), 0
    own = rows[rows["p"] > 0].drop_duplicates(KEY)
    both = own.merge(pd.DataFrame(records), on=KEY, suffixes=("", "_again"))
    apart = np.log(both["cross_entropy_again"] / both["cross_entropy"])
    apart = apart[apart != 0]
    deviation = float(np.sqrt(np.mean(apart**2) / 2)) if len(apart) else float("nan")
    return deviation, len(apart)
