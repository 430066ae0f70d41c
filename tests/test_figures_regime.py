"""How near to convergence the runs are."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_repro.papers.charts.regime import beside_the_paper, half_against_whole, learning_curves
from mnmt_repro.papers.effects import settled


def test_a_cohort_is_counted_by_runs_not_by_rows() -> None:
    rows = pd.DataFrame(
        {
            "cohort": ["webtech-en-dezh"] * 3 + [""],
            "run_id": ["r1", "r1", "r2", "r3"],  # the first holds two pairs
            "seed": [1, 1, 2, 1],
            "size": ["a", "a", "b", "a"],
            "n_non_embedding": [2_000, 2_000, 100_000, 1],
            "target_tokens": [4_000_000, 4_000_000, 4_000_000, 1],
            "passes": [0.5, 1.234, 0.1, 9.0],
        }
    )
    assert settled.cohort_table(rows).to_dict("records") == [
        {
            "cohort": "English→{German, Chinese}",
            "runs": 2,
            "seeds": 2,
            "sizes": 2,
            "N": "2,000 to 100k",
            "target tokens": "4M",
            "tokens a parameter": "40 to 2,000",
            "most passes": 1.23,
        }
    ]


def test_the_papers_tokens_a_parameter() -> None:
    # 500k and 1M steps of 500k tokens over the printed 18,881,024 and 1,019,312,128 parameters.
    paper = settled.paper_sizes()
    assert len(paper) == 8
    assert paper["per"].iloc[0] == pytest.approx(250e9 / 18_881_024)
    assert paper["per"].iloc[-1] == pytest.approx(500e9 / 1_019_312_128)


def curves() -> pd.DataFrame:
    """Loss falls by 0.1 per doubling in the small model and by 0.3 in the large one."""
    return pd.DataFrame(
        [
            {
                "cohort": "webtech-en-dezh",
                "run_id": f"r{n}",
                "pair": "eng-deu",
                "p": 1.0,
                "size": str(n),
                "n_non_embedding": n,
                "target_tokens": 1000 * 2**k,
                "cross_entropy": 5 - slope * k,
            }
            for n, slope in ((100, 0.1), (1000, 0.3))
            for k in range(6)
        ]
    )


def test_sizes_have_their_budget_and_slope() -> None:
    rows = pd.DataFrame(
        {
            "cohort": "webtech-en-dezh",
            "corpus": "webtech",
            "run_id": ["r100", "r1000"],
            "size": ["100", "1000"],
            "n_non_embedding": [100, 1000],
            "n_total": [150, 1500],
            "target_tokens": 32_000,
            "passes": [0.5, 0.7],
        }
    )
    table = settled.by_size(rows, curves())
    assert table["n"].tolist() == [100, 1000]
    assert table["per"].tolist() == [320, 32]
    assert table["end_slope"].tolist() == pytest.approx([-0.1, -0.3])
    assert set(table["group"]) == {"real text"}
    beside_the_paper(table).to_dict()


def test_learning_curves_are_of_the_two_ends() -> None:
    chart = learning_curves(curves(), "eng-deu").to_dict()
    assert [panel["title"] for panel in chart["hconcat"]] == [
        "English→German, N = 100",
        "English→German, N = 1,000",
    ]
    assert chart["resolve"]["scale"]["y"] == "shared"


def test_a_cell_at_half_the_budget_is_compared_with_the_same_seed_at_all_of_it() -> None:
    rows = pd.DataFrame(
        [
            ("x-half", 1, 0.1 + 0.2, 2.0),
            ("x", 1, 0.1 + 0.2, 1.5),
            ("x", 2, 0.1 + 0.2, 9.0),  # a seed that has no half
            ("other", 1, 0.1 + 0.2, 9.0),
        ],
        columns=["cohort", "seed", "p", "cross_entropy"],
    ).assign(pair="src-aaa", n_non_embedding=100)
    table = settled.half_and_whole(rows, "x")
    assert table[["p", "n", "seed", "half", "whole", "change"]].to_dict("records") == [
        {"p": 0.3, "n": 100, "seed": 1, "half": 2.0, "whole": 1.5, "change": -0.25}
    ]
    (panel,) = half_against_whole(table).to_dict()["hconcat"]
    assert panel["title"] == "S→A"
