"""Figure 6 on rows whose fractions are known, by the joint law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic import SIZES, loss_of, rows

from mnmt_repro.papers.charts import fraction_panels as charts
from mnmt_repro.papers.effects import fractions as panels
from mnmt_repro.papers.effects.grids import read_grid

COHORT = "webtech-en-dezh"
WEIGHTS = (0.05, 0.3, 0.5, 1.0)


def tripled(p: float) -> float:
    """f(1) = 1 and f(0.05) = 0.15: three times the weight."""
    return p ** (np.log(0.15) / np.log(0.05))


def lines(fraction=tripled, *, panel="domain", line="in-domain", **options):
    def loss(p: float, n: float) -> float:
        return loss_of(p, n, fraction=fraction)

    stored = rows(COHORT, loss=loss, noise=0.0, weights=WEIGHTS, **options)
    grid = read_grid(stored, COHORT)
    return panels.fraction_lines(grid, panel=panel, line=line)


def test_the_joint_law_finds_the_fraction():
    found = lines()
    assert set(found["language"]) == {"German", "Chinese"}
    np.testing.assert_allclose(found["f"], found["p"].map(tripled), rtol=2e-3)
    assert len(found) == 2 * 4 and (found["sizes"] == 8).all()
    assert found["f"].between(found["f_low"], found["f_high"]).all()


def test_the_lines_of_a_panel_rest_on_the_same_cells():
    """A grid of five sizes and four weights beside a whole one: f of both is read off 5 by 4."""
    few = {"sizes": SIZES[:5], "weights": (0.05, 0.5, 0.9, 1.0)}
    whole = rows(COHORT, noise=0.05, seed=1)
    stored = pd.concat([whole, rows("webtech-dezh-en", ("deu-eng", "zho-eng"), **few)])
    wanted = [
        panels.Line(panel="direction", label="out of English", cohort=COHORT),
        panels.Line(panel="direction", label="into English", cohort="webtech-dezh-en"),
        panels.Line(panel="alone", label="out of English", cohort=COHORT),
    ]
    found = panels.compare_lines(stored, wanted)
    beside = found.lines[found.lines["panel"] == "direction"]
    assert set(beside["p"]) == {0.05, 0.5, 0.9, 1.0}
    assert beside["sizes"].max() == 5
    kept = whole[whole["n_non_embedding"].isin(SIZES[:5]) & whole["p"].isin(few["weights"])]
    own = panels.fraction_lines(read_grid(kept, COHORT), panel="direction", line="out of English")
    mine = beside[beside["line"] == "out of English"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, own)
    assert set(found.lines.loc[found.lines["panel"] == "alone", "p"]) > set(beside["p"])
    far = stored[(stored["cohort"] == COHORT) | (stored["n_non_embedding"] < SIZES[4])]
    far = far[(far["cohort"] != COHORT) | (far["n_non_embedding"] > SIZES[1])]
    apart = panels.compare_lines(far, wanted)
    assert "direction" not in set(apart.lines["panel"])  # too few weights and sizes in common


@pytest.mark.parametrize(
    ("matched", "cause"),
    [((8.0, 4.0), "is not a likely cause"), ((5.0, 4.9), "is the likely cause")],
)
def test_why_the_factor_falls_is_read_off_text_matched_runs(
    matched: tuple[float, float], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {"long runs": (5.0, 3.0), "text-matched": matched}
    shares = pd.DataFrame(
        [
            {"way": way, "n": n, "times": times, "low": times - 0.1}
            for way, both in ways.items()
            for n, times in zip((100, 900), both, strict=True)
        ]
    )
    stored = pd.DataFrame(
        {"cohort": [*["conlang-settled-matched"] * 2, "conlang-settled"], "p": 0.05}
        | {"pair": "a-b", "n_non_embedding": 100}
        | {"seed": [1, 2, 1], "target_tokens": 2_000_000}
    )
    monkeypatch.setattr(charts.results, "load", lambda **_: stored)
    monkeypatch.setattr(charts, "fractions_by_way", lambda *_: shares)
    said = charts.why_it_falls().data
    assert (
        cause in said and "from 5.0 at N = 100, the smallest" in said and "3.0 at N = 900" in said
    )
    assert "have 2 seeds a pair" in said and "log f on log N is" in said
