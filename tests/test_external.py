"""Public losses of larger runs: our selection of them, and the laws that they follow."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.laws import fit_joint_law, fit_per_weight_laws
from mnmt_repro.papers.effects.public_losses import (
    domain_laws,
    forecast_errors,
    forecasts,
    load_external,
    lowest_weights,
    relative_fractions,
)

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "external"


def test_the_files_are_those_that_the_readme_names() -> None:
    readme = (FOLDER / "README.md").read_text().partition("The two Parquet files")[0]
    named = dict(re.findall(r"([0-9a-f]{64})  (\S+)", readme))
    others = {"originals.csv", "published_fits.csv"}
    assert {*named.values()} == {path.name for path in FOLDER.glob("*.csv")} - others
    for digest, name in named.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name


def test_a_joint_law_groups_by_mixture_where_the_weight_does_not_tell_them_apart() -> None:
    n = np.geomspace(1e8, 1e9, 5)
    parts = [
        pd.DataFrame({"mixture": name, "p": 0.5, "n": n, "loss": beta * n**-0.3 + 1.5})
        for name, beta in (("with code", 200.0), ("with prose", 300.0))
    ]
    frame = pd.concat(parts)
    law = fit_joint_law(frame, n="n", loss="loss", by="mixture")
    assert law.law.keys == ("with code", "with prose") and law.law.p == ()
    assert law.alpha == pytest.approx(0.3) and law.l_inf == pytest.approx(1.5)
    assert law.beta == pytest.approx({"with code": 200.0, "with prose": 300.0})
    assert law.predict(["with prose"], [1e8])[0] == pytest.approx(parts[1]["loss"].iloc[0])
    assert list(fit_per_weight_laws(frame, n="n", loss="loss", by="mixture")) == list(law.law.keys)
    with pytest.raises(InputError, match="with news was not fitted; there are .*with code"):
        law.predict(["with news"], [1e8])
    with pytest.raises(InputError, match="blend"):
        fit_joint_law(frame, n="n", loss="loss", by="blend")
    by_weight = fit_joint_law(frame, n="n", loss="loss")  # takes them for repeats
    assert by_weight.law.p == (0.5,) and not by_weight.identified


def test_relative_fractions_by_hand() -> None:
    n = np.geomspace(1e8, 1e9, 5)
    parts = [
        pd.DataFrame(
            {"pair": "d", "mixture": name, "p": p, "n_non_embedding": n,
             "cross_entropy": 100 * (f * n) ** -0.25 + 1}
        )
        for name, p, f in (("low", 0.1, 0.4), ("high", 0.5, 1.0))
    ]  # fmt: skip
    rows = pd.concat(parts)
    fractions = relative_fractions(rows, domain_laws(rows))
    low = fractions[fractions["mixture"] == "low"].iloc[0]
    assert low["weight_ratio"] == pytest.approx(0.2)
    assert low["fraction_ratio"] == pytest.approx(0.4)
    assert lowest_weights(fractions)["gain"].tolist() == pytest.approx([2.0])


def test_laws_of_the_pile_are_at_their_known_optimum() -> None:
    rows = load_external(FOLDER)
    rows = rows[rows["cohort"] == "pile"]
    assert (rows["p"] > 0).all() and rows["mixture"].nunique() == 26
    raw = pd.read_csv(FOLDER / "pile.csv").assign(mixture=lambda table: table["mixture"].map(str))
    for domain, alpha, l_inf in (("pile-cc", 0.144236, 1.14450), ("books3", 0.259558, 2.16323)):
        # Found by another fitter from all mixtures, also those without the domain.
        table = raw.assign(p=1.0)  # a row of weight 0 would be left out
        law = fit_joint_law(table, n="model_size", loss=f"{domain}_loss", by="mixture")
        assert law.alpha == pytest.approx(alpha, abs=2e-6)
        assert law.l_inf == pytest.approx(l_inf, abs=2e-5)


def by_size(name: str) -> pd.DataFrame:
    table = pd.read_csv(FOLDER / f"{name}_by_size.csv").set_index(["mixture", "n_non_embedding"])
    return table.rename_axis(columns="pair").stack().rename("cross_entropy").reset_index()


def test_a_forecast_does_not_read_what_it_forecasts() -> None:
    rows = by_size("pile")
    rows = rows[rows["pair"].isin(["Github", "PhilPapers"])]
    made = forecasts(rows, 1e9)
    assert set(made["mixture"]) == {17, 21, 23, 24} and len(made) == 2 * 4
    large = rows["n_non_embedding"] == 1e9
    shuffled = rows.copy()
    shuffled.loc[large, "cross_entropy"] = rows.loc[large, "cross_entropy"].to_numpy()[::-1]
    again = forecasts(shuffled, 1e9)
    assert again["loss"].tolist() != made["loss"].tolist()
    columns = ["pair", "mixture", "law", "naive"]
    pd.testing.assert_frame_equal(again[columns], made[columns])


def test_forecasts_and_their_errors_by_hand() -> None:
    beta, n = {0: 200.0, 1: 300.0}, np.array([1e8, 2e8, 4e8, 1e9])
    rows = pd.concat(
        pd.DataFrame({"pair": "d", "mixture": mixture, "n_non_embedding": n}).assign(
            cross_entropy=factor * n**-0.3 + 1.5
        )
        for mixture, factor in beta.items()
    )
    made = forecasts(rows, 1e9)
    assert made["law"].tolist() == pytest.approx(made["loss"].tolist(), rel=1e-5)
    assert made["naive"].tolist() == rows["cross_entropy"].iloc[[2, 6]].tolist()
    table = pd.DataFrame(
        {"pair": "d", "loss": [1.0, 2.0], "law": [1.03, 1.92], "naive": [1.1, 2.2]}
    )
    errors = forecast_errors(table).iloc[0]
    assert (errors["law"], errors["naive"]) == pytest.approx((np.sqrt(0.00125), 0.1))


def test_the_law_forecasts_the_largest_redpajama_models_better_than_no_change() -> None:
    errors = forecast_errors(forecasts(by_size("redpajama"), 1e9))
    assert len(errors) == 22 and (errors["law"] < errors["naive"]).all()
    assert errors["law"].median() == pytest.approx(0.0168, abs=0.0003)
