"""How near to convergence the runs are."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.figures import regime


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
    assert regime.cohort_table(rows).to_dict("records") == [
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
    said = regime.papers_regime()
    assert f"{250e9 / 18_881_024:,.0f} tokens a parameter (the smallest)" in said
    assert f"{500e9 / 1_019_312_128:,.0f} (the largest)" in said
