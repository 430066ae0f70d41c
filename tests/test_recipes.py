"""Every block of code on the page of recipes runs, in order, on small files.

Commands that take long and that other tests run are only parsed.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from functools import reduce
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from small_text import small_bitext
from synthetic import rows
from test_repeats import QUICK

from mnmt_repro import results
from mnmt_repro.__main__ import build_parser, main
from mnmt_repro.cli.train_options import TrainOptions
from mnmt_repro.laws import fit_mixture_law, leave_one_mixture_out
from mnmt_repro.papers.cohorts.catalogue import get_cohort
from mnmt_repro.papers.effects.public_losses import load_external
from mnmt_repro.runs.grid import Grid

PAGE = Path(__file__).resolve().parents[1] / "book" / "recipes" / "how-do-i.md"
GRID = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
UPGRADE = PAGE.parents[1] / "paper-b" / "recipe.ipynb"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SMALLER = {  # budgets and vocabularies of the page, and what small files allow
    "--target-tokens 6000000": "--target-tokens 8000",
    "--target-tokens 12000000": "--target-tokens 16000",
    "--pieces 8000": "--pieces 350",
    "--pieces 10000": "--pieces 370",
    "--d-model 64": "--d-model 16",
    "--workers 4": "--workers 1",  # in this process, which has torch already
}
SMALLER_GRID = {
    "target_tokens: 6000000": "target_tokens: 4000",
    "pieces: 8000": "pieces: 350",
    "[16, 32, 64, 128]": "[4, 8]",
    "seeds: [1, 2]": "seeds: [1]",
}
SMALLER_MORE = {"target_tokens: 6000000": "target_tokens: 4000", "[1, 2, 3]": "[1]"}
RETRAINED = f"mnmt-repro retrain {QUICK.stem}"  # `test_repeats` runs it
PARSED = (RETRAINED, "mnmt-repro book --only ", "mnmt-repro verify", "mnmt-repro report")
"""Commands that other tests run: `test_own_pages`, `test_claims_stored` and `test_verify`."""


def blocks() -> list[tuple[str, str]]:
    """Language and code of each block of the page."""
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def commands(code: str) -> list[str]:
    """Lines of a shell block, continued ones joined."""
    return [line for line in code.replace("\\\n", "").splitlines() if line]


def write_files() -> None:
    """Write the files that the page names."""
    losses = rows("own").rename(columns={"n_non_embedding": "n", "cross_entropy": "loss"})
    losses[["pair", "p", "n", "loss"]].to_csv("losses.csv", index=False)
    for name, pair, count, seed in (
        ("talks", "eng-deu", 300, 0),
        ("talks-test", "eng-deu", 12, 7),
        ("xhosa", "eng-xho", 300, 3),
    ):
        text = small_bitext(pair, count, seed)
        lines = [f"{a}\t{b}\n" for a, b in zip(text.source, text.target, strict=True)]
        Path(f"{name}.tsv").write_text("source\ttarget\n" + "".join(lines), encoding="utf-8")
    write_domains().to_csv("domains.csv", index=False)
    grid, _, more = GRID.findall(PAGE.read_text(encoding="utf-8"))
    for name, whole, fewer in (("grid", grid, SMALLER_GRID), ("more", more, SMALLER_MORE)):
        assert all(given in whole for given in fewer)
        small = reduce(lambda text, both: text.replace(*both), fewer.items(), whole)
        Path(f"{name}.yml").write_text(small, encoding="utf-8")


def write_domains() -> pd.DataFrame:
    """Losses of models of three domains, of which the first two help each other."""
    domains, worth = ("arxiv", "book", "c4"), np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 1]])
    weights = itertools.product((0.1, 0.2, 0.4, 0.6), repeat=3)
    mixtures = [p for p in weights if np.isclose(sum(p), 1)]
    table = pd.DataFrame(
        {"model": f"{n:g} {p}", "domain": domain, "p": p[i], "n": n,
         "loss": (1 + 60 * n**-0.2) * (worth[i] @ p) ** -0.2}
        for p in mixtures for n in (1e8, 3e8, 1e9) for i, domain in enumerate(domains)
    )  # fmt: skip
    noise = np.exp(0.003 * np.random.default_rng(0).standard_normal(len(table)))
    return table.assign(loss=table["loss"] * noise)


def test_the_worked_law_of_domains_is_that_of_public_models() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = load_external(PAGE.parents[2] / "data" / "external").query("cohort == 'slimpajama'")
    weights = rows.pivot_table("p", "run_id", "pair", fill_value=0.0)
    own = rows[rows["pair"] == "c4"].join(weights, on="run_id")
    assert "mix1-122M,c4,0.218462,122000000,3.3628\n" in page
    law = fit_mixture_law(own, "c4", list(weights))
    for name in ("gamma", "t[book]", "t[commoncrawl]", "alpha", "l_inf"):
        printed = re.search(rf"^ *{re.escape(name)} +([\d.]+) ", page, re.M)
        assert printed and float(printed[1]) == pytest.approx(law.params[name], rel=1e-3), name
    left = leave_one_mixture_out(law)
    errors = [
        100 * np.sqrt(((left[name] / left["loss"] - 1) ** 2).mean())
        for name in ("predicted", "naive")
    ]
    both = "left out: {:.2g} %; of the mean of the others at the size: {:.2g} %"
    assert both.format(*errors) in page


def test_the_budgets_that_a_test_makes_smaller_are_those_of_the_page() -> None:
    text = "".join(code for _, code in blocks())
    assert not [given for given in SMALLER if given not in text]


def test_the_table_of_losses_shows_rows_of_ours() -> None:
    (table,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    shown = pd.read_csv(StringIO(table))
    stored = results.load(cohort="webtech-en-dezh", test_set="indomain", domain="all", seed=1)
    for row in shown.itertuples():
        same = (stored["pair"] == row.pair) & (stored["p"] == row.p)
        (loss,) = stored.loc[same & (stored["n_non_embedding"] == row.n), "cross_entropy"]
        assert round(loss, 3) == row.loss
    assert len(shown) == 6 and shown["p"].tolist()[:2] == [0.3, 0.7]


def test_the_page_says_how_often_a_checkpoint_is_written() -> None:
    seconds = TrainOptions.__dataclass_fields__["checkpoint_seconds"].default
    assert f"writes every {seconds:g} seconds" in PAGE.read_text(encoding="utf-8")


def test_the_errors_of_larger_models_are_those_of_the_planner() -> None:
    executed = PAGE.parents[2] / "_build" / "executed" / "book" / "paper-a" / "planner.ipynb"
    if not executed.is_file():
        pytest.skip("the book is not built: make book")
    plain = executed.read_text(encoding="utf-8").replace("\\u00a0", " ").replace("\u00a0", " ")
    (errors,) = re.findall(r"as large by (.*?), (?:\d+) models", plain)
    assert f"as large by {errors}." in PAGE.read_text(encoding="utf-8")


def test_a_grid_of_three_pairs_gives_each_four_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files()
    weights = GRID.findall(PAGE.read_text(encoding="utf-8"))[1]
    grid = yaml.safe_load(Path("grid.yml").read_text(encoding="utf-8")) | yaml.safe_load(weights)
    grid["data"]["eng-kaz"] = "xhosa.tsv"
    Path("three.yml").write_text(yaml.safe_dump(grid), encoding="utf-8")
    mixtures = [mixture.weights for mixture in Grid.read("three.yml").mixtures]
    for pair in ("eng-deu", "eng-xho", "eng-kaz"):
        assert len({each[pair] for each in mixtures if each.get(pair)}) == 4


def test_the_recipes_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files()
    found: dict[str, str] = {}  # what each command printed
    for language, code in blocks():
        if language == "python":
            exec(compile(code, str(PAGE), "exec"), {})
            found[code] = capsys.readouterr().out
            continue
        for command in commands(code):
            small = command
            for given, less in SMALLER.items():
                small = small.replace(given, less)
            program, *arguments = shlex.split(small)
            assert program == "mnmt-repro"
            if command.startswith(PARSED):
                build_parser().parse_args(arguments)
                continue
            status = main(arguments)
            printed = capsys.readouterr()
            if arguments == ["fit", "grid/results"]:
                assert printed.out.count("R²") == 2  # of models too short for a law to be sure of
                continue
            if arguments[:2] == ["recommend", "grid/results"]:  # it may find them too short, too
                assert "--weights" in printed.out or "no recommendation" in printed.err
                continue
            leak = arguments[:2] == ["data", "check"]
            assert status == (1 if leak else 0), (command, printed.err)
            found[command] = printed.out
    assert RETRAINED in [line for _, code in blocks() for line in commands(code)]

    python = [out for code, out in found.items() if "import" in code]
    assert python[0].startswith("loss = beta[p]") and "relative" in python[4]
    assert python[1].count("cells: 0.") == 3 and "measured" in python[2]
    leaks = next(out for command, out in found.items() if "data check" in command)
    assert "in training text" in leaks
    narrow, wide, exported = (
        out.split()[-3:]
        for command, out in found.items()
        if " evaluate " in command and "--add-to" not in command and "--decode" not in command
    )
    assert narrow == wide == exported  # the wider model computes the same, and so does T5
    assert len(Path("own-losses.csv").read_text(encoding="utf-8").splitlines()) == 2
    cells = json.loads(UPGRADE.read_text(encoding="utf-8"))["cells"]
    (told,) = ("".join(c["source"]) for c in cells if "The same upgrade in P" in str(c["source"]))
    code = BLOCK.findall(told)[-1][1]
    exec(compile(code, str(UPGRADE), "exec"), {})


def test_a_weight_that_is_added_to_the_grid_has_the_settings_of_its_runs(
    tmp_path: Path,
) -> None:
    more = tmp_path / "more.yml"
    more.write_text(GRID.findall(PAGE.read_text(encoding="utf-8"))[2], encoding="utf-8")
    ours = {spec.model.d_model: spec for spec in get_cohort("conlang-steady", "steady").runs()}
    for spec in Grid.read(more).runs:
        stored = ours[spec.model.d_model]
        assert (spec.model, spec.training, spec.conlang, spec.tags) == (
            stored.model, stored.training, stored.conlang, stored.tags
        )  # fmt: skip
