"""Frames of what training changes in old weights, on analyses made up by hand."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, directions
from mnmt_repro.papers.effects import forgetting
from mnmt_repro.results.analyses import ANALYSIS_COLUMNS

OLD = directions(GROUPINGS["Mt25"].original)
SCALED, UNSCALED = "with scaling", "without scaling"


def of_run(cohort: str, variant: str, items: list[dict[str, Any]], seed: int = 1) -> pd.DataFrame:
    about = {
        "run_id": f"{variant}-{seed}", "tier": "mini", "cohort": cohort, "variant": variant,
        "updates_share": 0.3, "seed": seed, "commit": "c0ffee", "layer": "", "block": "",
        "pair": "",
    }  # fmt: skip
    return pd.DataFrame([about | item for item in items], columns=ANALYSIS_COLUMNS)


def substituted(model: str = "Mt25-wide") -> pd.DataFrame:
    """Means over two seeds: scaled 0.2 nats; 0.5 without, but for Kyrgyz, 1.5."""

    def rises(value: float, small: float) -> list[dict[str, Any]]:
        return [
            {"analysis": "substituted", "pair": pair, "value": small if "kir" in pair else value}
            for pair in OLD
        ]

    full, none = f"{model}, full recipe", f"{model}, no learning-rate scaling"
    return pd.concat(
        [
            of_run("software25-table3", full, rises(0.1, 0.1), seed=1),
            of_run("software25-table3", full, rises(0.3, 0.3), seed=2),
            of_run("software25-table3", none, rises(0.4, 1.4), seed=1),
            of_run("software25-table3", none, rises(0.6, 1.6), seed=2),
            of_run("software25-table3", full, rises(9.0, 9.0), seed=3),  # of one setting alone
            of_run("software25-main", full, rises(9.0, 9.0)),  # the same run elsewhere
        ],
        ignore_index=True,
    )


def test_what_each_direction_loses() -> None:
    points = forgetting.forgotten(substituted(), "Mt25-wide")
    assert len(points) == 2 * 40
    found = points.set_index(["pair", "setting"])
    assert found.loc[("eng-fra", SCALED), "rise"] == pytest.approx(0.2)  # mean of two seeds
    assert found.loc[("eng-fra", SCALED), "seeds"] == 2
    assert found.loc[("kir-eng", UNSCALED), "rise"] == pytest.approx(1.5)
    assert found.loc[("kir-eng", UNSCALED), "direction"] == "into English"
    assert found.loc[("eng-fra", SCALED), "direction"] == "out of English"
    assert forgetting.forgotten(substituted(), "Mt25").empty


def test_the_pieces_that_both_vocabularies_have_are_counted() -> None:
    counts = {"all, kept": 6.0, "all, added": 3.0, "all, dropped": 2.0}
    items = [{"analysis": "overlap", "block": of, "value": count} for of, count in counts.items()]
    assert forgetting.shared_pieces(of_run("software25-main", "Mt25", items)) == (6, 8)


def moved() -> pd.DataFrame:
    def items(scale: float) -> list[dict[str, Any]]:
        return [
            {"analysis": "moved", "layer": f"{stack}.{k}", "block": block, "value": scale * value}
            for stack in ("decoder", "encoder")
            for k in (10, 2)
            for block, value in (("old", 1.0), ("new", 2.0 + k), ("between", 3.0))
        ]

    return pd.concat(
        [
            of_run("software25-table3", "Mt25-wide, full recipe", items(1.0)),
            of_run("software25-table3", "Mt25-wide, no learning-rate scaling", items(3.0)),
            of_run("software25-table3", "Mt25-wide, no up-sampling", items(9.0)),
        ],
        ignore_index=True,
    )


def test_distances_by_layer() -> None:
    points = forgetting.moved(moved())
    assert len(points) == 2 * 12
    assert points["stack"].drop_duplicates().tolist() == ["encoder", "decoder"]
    assert points["layer"].drop_duplicates().tolist() == [2, 10]  # by number, not by name
    found = points.set_index(["stack", "layer", "setting", "block"])["distance"]
    assert found["decoder", 10, SCALED, forgetting.BLOCKS["new"]] == 12.0
    assert found["encoder", 2, UNSCALED, forgetting.BLOCKS["between"]] == 9.0
    thirds = {half: pytest.approx(-200 / 3) for half in ("old", "new")}
    assert forgetting.change_by_scaling(points) == thirds


def fisher() -> pd.DataFrame:
    def items(threshold: tuple[str, float]) -> list[dict[str, Any]]:
        shares = {"0": 0.1, "1e-08": 0.2, "1e-09": 0.3, "3.16e-09": 0.4}
        bins = [{"analysis": "fisher", "block": b, "value": v} for b, v in shares.items()]
        block, value = threshold
        return [*bins, {"analysis": "threshold", "block": block, "value": value}]

    return pd.concat(
        [
            of_run("software25-table11", "f 1e-6, gamma 0.1", items(("0.5", 2e-9))),
            of_run("software25-table11", "f 1e-6, gamma 0.25", items(("0.5", 2e-9))),
            of_run("software25-table11", "f 1e-5, gamma 0.1", items(("0.1", 2e-8))),
        ],
        ignore_index=True,
    )


def test_fisher_information_and_its_thresholds() -> None:
    bins = forgetting.fisher(fisher())
    assert bins["low"].tolist() == [0, 1e-9, 3.16e-9, 1e-8]
    assert bins["high"].tolist() == [1e-9, 3.16e-9, 1e-8, math.inf]
    assert bins["share"].tolist() == pytest.approx([0.1, 0.3, 0.4, 0.2])
    assert bins["share above"].tolist() == pytest.approx([1.0, 0.9, 0.6, 0.2])
    assert forgetting.thresholds(fisher()).to_dict("records") == [
        {"paper": 1e-6, "share": 0.5, "ours": 2e-9},
        {"paper": 1e-5, "share": 0.1, "ours": 2e-8},
    ]


def test_where_widening_keeps_the_function() -> None:
    def items(kept: float, lost: float) -> list[dict[str, Any]]:
        return [
            {"analysis": "widened", "block": block, "pair": pair, "value": value}
            for block, values in {
                "frobenius, noise 0": (kept, -kept), "none, noise 0.01": (lost, 2 * lost)
            }.items()
            for pair, value in zip(OLD[:2], values, strict=True)
        ]  # fmt: skip

    both = pd.concat(
        [
            of_run("software25-main", "M20", items(1e-7, 0.4)),
            of_run("software25-main", "M20", items(3e-7, 0.2), seed=2),
            of_run("software25-table7", "M20", items(9.0, 9.0)),  # the same run elsewhere
            of_run("webtech-en-dezh", "", items(-0.1, 0.3)),
        ],
        ignore_index=True,
    )
    table = forgetting.widened(both).set_index(["model", "normalisation"])
    relu, gated = forgetting.MODELS.values()
    assert table["keeps the function"].tolist() == [True, False, False, False]
    assert table.loc[(relu, "none"), ["noise", "mean", "least", "most", "directions"]].tolist() == [
        0.01, pytest.approx(0.45), 0.2, 0.8, 2,
    ]  # fmt: skip
    assert table.loc[(relu, "frobenius"), "most"] == 3e-7
    assert table.loc[(gated, "frobenius"), "least"] == -0.1  # a loss that falls is a change too


def test_up_sampled_relatives_are_told_apart_from_small_languages() -> None:
    """Relatives lose 0.1 where up-sampled; without it everybody loses 0.3, French most."""
    related = GROUPINGS["Mt25"].related
    assert len(related) == 3

    def run(setting: str, relatives: float) -> pd.DataFrame:
        items = [
            {
                "analysis": "substituted",
                "pair": pair,
                "value": relatives if set(pair.split("-")) & set(related) else 0.3,
            }
            for pair in OLD
        ]
        items[OLD.index("eng-fra")]["value"] = 0.31
        return of_run("software25-table3", f"Mt25, {setting}", items)

    full, without = run("full recipe", 0.1), run("no up-sampling", 0.3)
    table = forgetting.relatives_apart(pd.concat([full, without]), "Mt25").set_index("directions")
    assert table["count"].to_dict() == {"related": 6, "others": 34, "all": 40}
    assert table.loc["related", "up-sampled"] == pytest.approx(0.1)
    assert table.loc["others", "up-sampled"] == pytest.approx(0.3 + 0.01 / 34)
    assert table.loc["all", "rank, up-sampled"] > 0.5 > table.loc["all", "rank, not up-sampled"] > 0
    assert forgetting.relatives_apart(full, "Mt25").empty


def test_changes_in_per_cent_are_means_of_logs_over_the_seeds_that_have_both_sides() -> None:
    found = forgetting.in_per_cent(pd.Series([0.0, math.log(1.21), math.nan]))
    assert found.value == pytest.approx(10) and found.low < -50 and found.high > 200


def test_what_the_upgraded_model_forgets_is_compared_with_its_own_old_model() -> None:
    """Losses of 2 nats on 10 tokens become 1.9 on 11, 4.5 % more; relatives lose a tenth."""

    def runs(cohort: str, variant: str, seed: int, loss: float, tokens: int) -> pd.DataFrame:
        table = pd.DataFrame({"pair": OLD, "cross_entropy": loss * seed, "test_tokens": tokens})
        return table.assign(cohort=cohort, variant=variant, seed=seed, chrfpp=10 * loss)

    rows = pd.concat(
        runs(cohort, variant, seed, loss, tokens)
        for seed in (1, 2)
        for cohort, variant, loss, tokens in (
            ("software25-main", "M20", 2.0, 10),
            ("software25-table3", "Mt25-wide, full recipe", 1.9, 11),
            ("software25-table3", "Mt25-wide, no learning-rate scaling", 2.2, 10),
        )
    )
    kyrgyz = rows["pair"].str.contains("kir") & rows["variant"].str.contains("full")
    rows.loc[kyrgyz, "cross_entropy"] *= 0.9 * 20 / 20.9
    table = forgetting.kept(rows, "Mt25-wide").set_index(["label", "series"])
    others = table.loc[("others, out of English", SCALED)]
    assert others["value"] == pytest.approx(4.5) == others["low"] == others["high"]
    assert (others["worse"], others["directions"], others["seeds"]) == (17, 17, 2)
    assert others["nats"] == pytest.approx((0.09 + 0.18) / 2)  # of a token of the old vocabulary
    assert others["chrF++"] == pytest.approx(-1) == others["chrF++ low"]
    whole = table.loc[("all old directions", SCALED)]
    assert (whole["worse"], whole["directions"]) == (38, 40)
    assert table.loc[("others, into English", UNSCALED), "value"] == pytest.approx(10)
