from __future__ import annotations

import base64
import json
import re

import altair
import pandas as pd
import pytest

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import STYLE, Badge
from mnmt_repro.papers.charts.display import show, show_table
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.charts.theme import weight_colours

FRAME = pd.DataFrame({"n": [1, 10], "loss": [2.0, 1.0]})
CHART = altair.Chart(FRAME).mark_line().encode(x="n", y="loss")
ROWS = pd.DataFrame(
    {
        "run_id": ["r1", "r1", "r2"],
        "config_hash": ["c1", "c1", "c2"],
        "data_hash": ["d", "d", "d"],
        "commit": ["0123456789abcdef"] * 3,
        "tier": ["mini"] * 3,
        "corpus": ["webtech"] * 3,
        "seed": [1, 1, 2],
        "hardware": ["cpu"] * 3,
        "wall_seconds": [3600.0, 3600.0, 7200.0],
    }
)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_run_counts_once_in_the_provenance() -> None:
    provenance = Provenance.of(ROWS)
    assert provenance.line() == (
        "2 runs · tier mini · corpus webtech · seeds 1, 2 · commit 0123456789 · data d"
        " · 3.0 h of computing"
    )
    figure = show(CHART, name="a", alt="falls", data=FRAME, provenance=provenance)
    carried = re.search(
        r'download="a-runs.json" href="data:application/json;charset=utf-8;base64,([^"]+)"',
        figure.to_html(),
    )
    assert carried is not None
    listed = json.loads(base64.b64decode(carried[1]))
    assert listed["runs"] == ["r1", "r2"] and listed["configurations"] == ["c1", "c2"]
    assert listed["commits"] == ["0123456789abcdef"] and "r1" not in figure.to_html()
    named = show(CHART, name="a", alt="falls", data=FRAME, provenance="See data/README.md, too.")
    assert 'download="data-README.md"' in named.to_html() and ", too.<" in named.to_html()


def test_a_figure_carries_a_page_and_a_terminal_version() -> None:
    about = {"alt": "It falls.", "caption": "Down.", "provenance": "By hand."}
    figure = show(CHART, name="fig", data=FRAME, **about)
    bundle = figure._repr_mimebundle_()
    assert bundle["text/plain"] == "Down.\nIt falls.\nBy hand."
    spec = re.search(
        r'<script type="application/json">(.*?)</script>', bundle["text/markdown"], re.S
    )
    assert spec is not None
    read = json.loads(spec[1])
    assert read["description"] == "It falls."
    assert next(iter(read["datasets"].values())) == [{"n": 1, "loss": 2.0}, {"n": 10, "loss": 1.0}]
    assert "http" not in re.sub(r'"\$schema":"[^"]*"', "", spec[1])
    drawn = bundle["application/vnd.vegalite.v5+json"]  # in JupyterLab, which prefers text/html
    assert drawn["title"]["text"] == ["Down."] and "text/html" not in bundle
    assert "\n\n" not in bundle["text/markdown"]  # where the HTML would end


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Fig 2"}, "small letters"),
        ({"alt": " "}, "text alternative"),
        ({"provenance": ""}, "where the numbers come from"),
    ],
)
def test_what_a_page_owes_its_reader_cannot_be_left_out(change: dict, message: str) -> None:
    given = {"name": "a", "alt": "falls", "data": FRAME, "provenance": "By hand."}
    with pytest.raises(InputError, match=message):
        show(CHART, **(given | change))


def test_a_table_shows_numbers_as_asked() -> None:
    frame = pd.DataFrame(
        {"pair": ["a<b"], "n": [18881024], "loss": [0.123456], "gap": [float("nan")], "ok": [True]}
    )
    table = show_table(frame, name="t", provenance="By hand.", formats={"loss": ".2f"})
    assert table.shown.iloc[0].tolist() == ["a<b", "18,881,024", "0.12", "–", "yes"]
    assert '<td class="mnmt-name">a&lt;b</td>' in table.to_html()
    assert '<td class="mnmt-number">18,881,024</td>' in table.to_html()
    assert table.csv == "pair,n,loss,gap,ok\na<b,18881024,0.123456,,True\n"
    assert table._repr_mimebundle_()["text/markdown"].count("18,881,024") == 1
    with pytest.raises(InputError, match="not there: los"):
        show_table(frame, name="t", provenance="By hand.", formats={"los": ".2f"})


def test_a_sentence_may_stand_below_its_row() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "why": ["because", ""], "b": [1, 2]})
    table = show_table(frame, name="t", provenance="By hand.", below="why")
    below = (
        '<tr><td class="mnmt-below" colspan="2"><div><b>why:</b> because</div></td></tr></tbody>'
    )
    assert below in table.to_html()
    assert "because" in table._repr_mimebundle_()["text/markdown"]
    with pytest.raises(InputError, match="no column 'wy'"):
        show_table(frame, name="t", provenance="By hand.", below="wy")


def test_badges_can_be_read() -> None:
    signs = set()
    for verdict in STYLE:
        sign, colour = STYLE[verdict]
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5  # white text on it, WCAG AA
        signs.add(sign)
    assert len(signs) == len(STYLE)
    with pytest.raises(InputError, match="verdict 'good'"):
        Badge(verdict="good")  # type: ignore[arg-type]
    assert Badge(verdict="reproduced", href="a.html").to_html().startswith('<a class="mnmt-badge"')
    assert 'aria-label="✓ reproduced">' in Badge(verdict="reproduced").to_html()


def test_weights_are_told_apart_without_colour_vision() -> None:
    weights = (0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1)
    light = [luminance(colour) for colour in weight_colours(weights)]
    assert light == sorted(light) and len(set(light)) == len(weights)  # lines have labels besides
    assert 1.05 / (light[-1] + 0.05) > 3.5  # on white, where labels have the colour of their line
