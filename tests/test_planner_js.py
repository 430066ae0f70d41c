"""The planner's JavaScript gives the numbers of the library and of `mnmt-repro recommend`.

The script runs under node; skipped where there is none (Debian: `nodejs`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic import loss_of, rows

from mnmt_repro import results
from mnmt_repro.cli import main
from mnmt_repro.laws import fit_fraction, fit_joint_law
from mnmt_repro.papers.charts.planner import losses_csv
from mnmt_repro.papers.effects import scaling
from mnmt_repro.papers.pages import offline

NODE = shutil.which("node")
LAWS = Path(offline.__file__).with_name("static") / "laws.js"
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: laws.js was NOT run")


def run(body: str, given: Any) -> Any:
    """Run a function body of JavaScript with `laws` and `given`; what it returns."""
    script = f"""
    const laws = require({json.dumps(str(LAWS))});
    const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(JSON.stringify((() => {{ {body} }})()));
    """
    done = subprocess.run(
        [str(NODE), "-e", script], input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def records(points: pd.DataFrame) -> list[dict[str, float]]:
    return points[["p", "n", "loss"]].to_dict("records")


def stored(cohort: str) -> pd.DataFrame:
    """A stored cohort as the planner's table has it: ``pair, p, n, loss``."""
    tier = "steady" if "steady" in cohort else "mini"
    kept = results.load(cohort=cohort, tier=tier, test_set="indomain", domain="all")
    return scaling.observed(kept).round({"loss": 6})


@pytest.mark.parametrize(
    "cohort",
    ["webtech-en-dezh", "webtech-en-defr", "conlang-sim0", "conlang-sim1", "conlang-steady"],
)
def test_laws_are_those_of_python(cohort: str) -> None:
    for _, points in stored(cohort).groupby("pair"):
        found = run("return [laws.fitFraction(given), laws.fitJoint(given)];", records(points))
        law, joint = (fit(points, n="n", loss="loss") for fit in (fit_fraction, fit_joint_law))
        assert found[0]["reason"] == law.reason == ""
        assert found[0]["params"] == pytest.approx(law.params, rel=1e-3, abs=1e-9)
        assert found[0]["bounds"] == list(law.held)
        assert found[0]["doubts"] == list(law.doubts())
        assert (found[0]["r2"], found[0]["dof"]) == pytest.approx((law.r2, law.degrees_of_freedom))
        assert (found[1]["alpha"], found[1]["l_inf"]) == pytest.approx(
            (joint.alpha, joint.l_inf), rel=1e-3, abs=1e-9
        )


@pytest.mark.parametrize("cohort", ["webtech-en-dezh", "conlang-steady"])
def test_the_recommendation_is_that_of_the_command(
    cohort: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = stored(cohort)
    table = tmp_path / "losses.csv"
    table.write_text(losses_csv(points), encoding="utf-8")
    pairs = sorted(points["pair"].unique())
    for n, importance in ((20_000, 0.5), (1_000_000, 0.7)):
        prefer = f"{pairs[0]}={importance},{pairs[1]}={1 - importance}"
        command = ["recommend", str(table), "--n", str(n), "--prefer", prefer, "--json"]
        assert main([*command, "--force"]) == 0  # of the first cohort a coefficient is at its bound
        expected = json.loads(capsys.readouterr().out)
        given = {
            "rows": [records(points[points["pair"] == pair]) for pair in pairs],
            "n": n,
            "importance": importance,
        }
        found = run(
            """
            const fits = given.rows.map((rows) => laws.fitFraction(rows));
            fits.forEach((law, i) => (law.draws = laws.bootstrap(law, { seed: 1 + i })));
            return laws.recommend(fits, given.n, given.importance);
            """,
            given,
        )

        of = {name: [value[pair] for pair in pairs] for name, value in expected.items()
              if isinstance(value, dict)}  # fmt: skip
        assert found["weights"] == pytest.approx(of["weights"], rel=1e-3)
        assert found["losses"] == pytest.approx(of["loss"], rel=1e-3)
        # Two sets of 500 refits each: the ends agree to a quarter of the interval.
        for name, low, high in (
            ("weightIntervals", "weights_low", "weights_high"),
            ("lossIntervals", "low", "high"),
        ):
            width = np.subtract(of[high], of[low])
            assert (width > 0).all()
            difference = np.array(found[name]) - np.column_stack([of[low], of[high]])
            assert (np.abs(difference) < 0.25 * width[:, None]).all()


def reasons(points: pd.DataFrame) -> tuple[str, str]:
    """Why a law is not identified, by the script and by Python."""
    found = run("return laws.fitFraction(given).reason;", records(points))
    return found, fit_fraction(points, n="n", loss="loss").reason


def one_pair(weights: Sequence[float] = (0.1, 0.3, 0.5, 1.0), **changes: Any) -> pd.DataFrame:
    found = rows("some", pairs=("eng-deu",), weights=weights, **changes)
    return found[["p", "n_non_embedding", "cross_entropy"]].set_axis(["p", "n", "loss"], axis=1)


def rising(p: float, n: float) -> float:
    return 1 + 0.1 * np.log(n)


def flat(p: float, n: float) -> float:
    return 3.0


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (one_pair(sizes=(2_000,)), "1 distinct size(s) cannot determine 6 parameters"),
        (one_pair(weights=(0.3, 1.0)), "1 weights below 1 cannot determine 3 coefficients"),
        (one_pair(loss=rising), "the loss rises with size"),
        (one_pair(loss=flat, noise=0.0), "the loss is flat"),
        (one_pair(loss=flat, noise=0.05, seed=3), "the loss"),
        (one_pair(weights=(0.1, 0.3, 0.5)), "several parameter sets fit equally well"),
    ],
)
def test_a_law_that_is_not_identified_says_why_as_python_does(
    points: pd.DataFrame, reason: str
) -> None:
    found, expected = reasons(points)
    assert found.startswith(reason)
    assert expected.startswith(found[:40])


def test_an_exact_law_is_recovered_whatever_its_fraction() -> None:
    for bend in (0.0, 0.4, -0.4):
        points = one_pair(noise=0.0, loss=lambda p, n, b=bend: loss_of(
            p, n, fraction=lambda q: q + b * q * (1 - q)
        ))  # fmt: skip
        params = run("return laws.fitFraction(given).params;", records(points))
        found = [params[name] for name in ("alpha", "l_inf", "beta", "c1")]
        assert found == pytest.approx([0.3, 1.5, 20.0, bend], rel=1e-3, abs=1e-4)


def test_the_band_of_the_script_covers_the_truth() -> None:
    points = one_pair(noise=0.01)
    draws = run("return laws.bootstrap(laws.fitFraction(given), { draws: 400 });", records(points))
    alphas = [draw["alpha"] for draw in draws]
    low, high = fit_fraction(points, n="n", loss="loss").interval(method="residual", draws=2000)[
        "alpha"
    ]
    assert low < 0.3 < high
    assert np.quantile(alphas, [0.025, 0.975]) == pytest.approx([low, high], abs=0.2 * (high - low))


def test_the_tail_of_students_t_is_scipys() -> None:
    given = [(t, dof) for t in (-1.0, 0.0, 0.5, 2.0, 8.0) for dof in (1, 2, 3, 4, 9, 60)]
    found = run("return given.map(([t, dof]) => laws.studentTail(t, dof));", given)
    expected = [stats.t.sf(t, dof) for t, dof in given]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_whether_a_trend_beats_its_noise_is_decided_as_in_python() -> None:
    decided = []
    for seed in range(12):
        points = one_pair(loss=lambda p, n: 3 - 0.01 * np.log(n), noise=0.02, seed=seed)
        found, expected = reasons(points)
        assert (found == "") == (expected == "")
        decided.append(found == "")
    assert 0 < sum(decided) < 12
