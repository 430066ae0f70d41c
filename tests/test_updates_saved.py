"""Paper B with a finished baseline: the factor where the truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from stored_claims import declared_claims

from mnmt_repro.papers.claims.judging import judge
from mnmt_repro.papers.cohorts.catalogue import find_cohort
from mnmt_repro.papers.cohorts.languages25 import LANGUAGES, directions
from mnmt_repro.papers.cohorts.variants import VariantCohort
from mnmt_repro.papers.effects import updates_saved
from mnmt_repro.papers.effects.evidence import Evidence
from mnmt_repro.papers.effects.noise import Measures, NoRowsYet
from mnmt_repro.papers.effects.updates_saved import (
    Arm,
    arm,
    factors_saved,
    pace,
    share_reached,
)

ALL = directions(tuple(LANGUAGES))
UP, BASE = (0.1, 0.3, 1.0), (0.1, 1.0, 2.0)
SLOPE = 0.08
"""Nats that an upgrade's curve falls when its updates are multiplied by e."""


def curve(share: float) -> float:
    """An upgrade's loss, linear in log updates: 3.8 after all of them."""
    return 3.8 - SLOPE * math.log(share)


def table(losses: dict[float, float], *, seeds: int = 1, noise: float = 0, at: int = 0) -> Any:
    """A row a seed, whose luck moves all of its budgets, and each budget by a tenth of that."""
    random = np.random.default_rng(at)
    luck = noise * (random.standard_normal((seeds, 1)) + random.standard_normal((seeds, 3)) / 10)
    return pd.DataFrame(np.array(list(losses.values())) + luck, columns=list(losses))


def upgrade(**more: Any) -> Arm:
    return arm(table({share: curve(share) for share in UP}, **more), 0)


def baseline(once: float, twice: float, early: float = 4.5, **more: Any) -> Arm:
    return arm(table(dict(zip(BASE, (early, once, twice), strict=True)), **more), 1)


# ------------------------------------------------------------------ the factor


@pytest.mark.parametrize("share", [0.15, 0.3, 0.45, 0.9])
def test_a_straight_curve_gives_the_factor_exactly(share: float) -> None:
    """The baseline ends where the upgrade is at this share, and at twice the updates at another."""
    later = share**0.5
    found = factors_saved(upgrade(), baseline(curve(share), curve(later)))
    assert found["factor"].value == pytest.approx(1 / share)
    assert found["factor_with_old"].value == pytest.approx(1 / (1 + share))
    assert found["factor_at_two"].value == pytest.approx(2 / later)
    assert found["factor_with_old_at_two"].value == pytest.approx(2 / (1 + later))
    fall = 100 * (1 - curve(later) / curve(share))
    assert found["baseline_fall"].value == pytest.approx(fall)
    assert found["censored"].value == 0 and math.isnan(found["factor"].low)  # one seed


def test_a_smaller_old_model_counts_by_its_hours() -> None:
    """Its fastest run takes 60 s for what the baseline does in 80."""
    columns = ["variant", "wall_seconds", "target_tokens"]
    runs = pd.DataFrame([("M20", 60, 1), ("M20", 900, 1), ("M25-wide", 160, 2)], columns=columns)
    old = pace(runs)["M20"] / pace(runs)["M25-wide"]
    saved = factors_saved(upgrade(), baseline(curve(0.15), curve(0.15)), old=old)
    assert saved["factor_with_old"].value == pytest.approx(1 / (0.15 + 0.75))


def test_a_share_of_the_gap_is_reached_earlier() -> None:
    target = 4.5 - 0.864 * (4.5 - curve(1.0))
    found = factors_saved(upgrade(), baseline(curve(1.0), curve(1.0)), 0.864)
    assert found["factor"].value == pytest.approx(1 / math.exp((3.8 - target) / SLOPE))


def test_a_bent_curve_is_read_between_neighbouring_budgets() -> None:
    bent = Arm(shares=np.array(UP), losses=np.array([[4.0, 3.9, 3.7]]))
    assert share_reached(bent, np.array([3.95]))[0] == pytest.approx(math.sqrt(0.1 * 0.3))
    assert share_reached(bent, np.array([3.8]))[0] == pytest.approx(math.sqrt(0.3 * 1.0))
    back = Arm(shares=np.array(UP), losses=np.array([[4.0, 3.7, 3.9]]))
    assert share_reached(back, np.array([3.85]))[0] < 0.3  # the first time


def test_what_is_reached_early_or_never_is_at_a_bound_and_marked() -> None:
    noise: dict[str, Any] = {"noise": 0.01}
    arms = upgrade(seeds=6, **noise), baseline(4.2, 3.4, seeds=5, at=1, **noise)
    found = factors_saved(*arms)
    first, second = found["factor"], found["factor_at_two"]
    assert (first.low, first.value, first.high) == (10.0, 10.0, 10.0)  # 10 or more
    assert (second.low, second.value, second.high) == (2.0, 2.0, 2.0)  # 2 or less
    assert found["factor_with_old"].value == 1 / 1.1 and found["censored"].value == 1
    assert found["factor_with_old_at_two"].value == 1.0 and found["censored_at_two"].value == 1
    near = factors_saved(arms[0], baseline(curve(0.11), curve(0.3), seeds=5, at=1, **noise))
    assert near["factor"].low < 1 / 0.11 < near["factor"].high == 10.0
    assert 0.02 < near["censored"].value < 0.9  # draws at a bound count as at the bound


def test_arms_are_resampled_apart() -> None:
    """The SD of the log factor is that of both arms' means over the slope, by hand."""
    seeds = {"up": table({s: curve(s) for s in UP}, seeds=6, noise=0.017),
             "base": table(dict(zip(BASE, (4.5, curve(0.4), 3.7), strict=True)), seeds=5,
                           noise=0.012, at=1)}  # fmt: skip
    one, other = arm(seeds["up"], 0), arm(seeds["base"], 1)
    share = share_reached(one, other.losses[:, 1])
    assert not np.isin(share, [0.1, 1.0]).any()
    # The curve lies between 0.3 and 1 where it is read: 0.4 of the updates.
    part = math.log(0.4 / 0.3) / math.log(1 / 0.3)
    read = (1 - part) * seeds["up"][0.3] + part * seeds["up"][1.0]
    wanted = math.sqrt(read.var() / 6 + seeds["base"][1.0].var() / 5) / SLOPE
    assert np.log(1 / share[1:]).std() == pytest.approx(wanted, rel=0.1)
    assert abs(np.corrcoef(one.losses[1:, 0], other.losses[1:, 0])[0, 1]) < 0.1
    low, high = np.log(np.quantile(share[1:], (0.025, 0.975)))
    assert high - low == pytest.approx(2 * 1.96 * wanted, rel=0.15)


# ------------------------------------------------------------------ the effect on rows


def rows(cohort: str, losses: dict[tuple[str, float], float], seeds: int, **more: Any) -> Any:
    records = [
        {"run_id": f"{name}-{share}-{seed}", "tier": "settled", "cohort": cohort, "variant": name,
         "updates_share": share, "seed": seed, "pair": pair, "test_set": "indomain",
         "domain": "all", "p": 0.02, "commit": "c0ffee",
         "cross_entropy": loss + 0.01 * (ALL.index(pair) - 24.5) + 0.001 * seed}
        for (name, share), loss in losses.items()
        for seed in range(1, seeds + 1)
        for pair in ALL
    ]  # fmt: skip
    return pd.DataFrame(records).assign(**more)


def compared(seeds: int = 2, **more: Any) -> pd.DataFrame:
    """At 0.1 and 0.3 both arms are known; the baseline ends where the upgrade is at 0.4."""
    losses = {("M25", 0.1): 4.5, ("M25", 0.5): 4.0, ("M25", 1.0): curve(0.4), ("M25", 2.0): 3.8}
    losses |= {("Mt25", share): curve(share) for share in UP}
    return rows("software25-settled", losses, seeds, **more)


def effect(frame: pd.DataFrame, **options: Any) -> Measures:
    headline = declared_claims()["B1"].headline
    setting = replace(headline, options={"upgrades": {"Mt25": "M25"}} | options)
    return updates_saved.updates_saved(Evidence(frame=frame), setting)["Mt25"]


def test_the_effect_reads_means_over_all_directions() -> None:
    frame = compared()
    assert effect(frame)["factor"].value == pytest.approx(2.5)
    wild = [frame.assign(cross_entropy=9.0, **{column: value}) for column, value in
            (("test_set", "other"), ("tier", "mini"), ("domain", "gnome"), ("p", 0.0))]  # fmt: skip
    assert effect(pd.concat([frame, *wild])) == effect(frame)
    # A run that lacks a direction, such as one of the old model's, is none of the arm's seeds.
    lacking = (frame["seed"] == 2) & (frame["pair"] == ALL[0]) & (frame["variant"] == "M25")
    assert math.isnan(effect(frame[~lacking])["factor"].low)


def test_earlier_grids_have_no_baseline_of_twice_the_updates() -> None:
    found = effect(compared().query("updates_share < 2"))
    assert found["factor"].value == pytest.approx(2.5)
    assert all(math.isnan(found[name].value) for name in ("factor_at_two", "baseline_fall"))
    for gone in ("variant != 'Mt25'", "variant != 'M25' or updates_share != 1"):
        with pytest.raises(NoRowsYet, match="settled, same size: no seed of M"):
            effect(compared().query(gone))


def test_a_claim_is_judged_once_all_declared_runs_are_stored() -> None:
    """Run ids as declared; without one run the verdict is open, whatever the others say."""
    cohort = find_cohort("software25-settled", "settled")
    assert isinstance(cohort, VariantCohort)
    ids = {(v.name, v.updates_share, v.spec.seed): v.spec.run_id for v in cohort.variants}
    frame = compared(seeds=6)
    keys = zip(frame["variant"], frame["updates_share"], frame["seed"], strict=True)
    frame["run_id"] = [ids.get(key, "") for key in keys]
    frame = frame[frame["run_id"] != ""]
    assert frame["run_id"].nunique() == 38
    claim = declared_claims()["B1"]
    found = judge(claim, claim.headline, Evidence(frame=frame))
    assert found.verdict == "not reproduced" and found.effect.high < 3.33
    assert found.effect.value == pytest.approx(2.5, rel=0.05)
    some = frame[frame["run_id"] != ids["M25", 2.0, 5]]
    found = judge(claim, claim.headline, Evidence(frame=some))
    why = "1 of its 38 runs are still to be trained"
    assert (found.verdict, found.why) == ("undecided", why)
