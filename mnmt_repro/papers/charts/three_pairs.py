"""Charts of models of three pairs and more, beside the laws of two: Figure 20."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.papers.charts.loss_laws import losses_and_laws
from mnmt_repro.papers.charts.theme import CATEGORIES, GREY, INK, size_axis, tips, weight_color
from mnmt_repro.papers.cohorts.names import beside_hub, cohort_name, language, pair_name

_COLOURS = dict(zip(("deu", "zho", "fra"), CATEGORIES, strict=False))
_NAMES = {"pair": pair_name, "law of": cohort_name, "beside": cohort_name}


def mixture_name(mixture: str) -> str:
    """What a page calls a mixture.

    >>> mixture_name("eng-deu:0.5,eng-fra:0.25,eng-zho:0.25")
    'German 0.5, French 0.25, Chinese 0.25'
    >>> mixture_name("deu-eng:0.1,zho-eng:0.9")
    'German 0.1, Chinese 0.9'
    """
    shares = [item.rpartition(":")[::2] for item in mixture.split(",")]
    sources = {pair.partition("-")[0] for pair, _ in shares}
    part = 2 if len(sources) == 1 else 0
    return ", ".join(f"{language(pair.partition('-')[part])} {float(p):.3g}" for pair, p in shares)


def with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of `analysis.three_pairs` with pairs, cohorts and mixtures as pages name them."""
    names = {**_NAMES, "mixture": mixture_name}
    known = {column: frame[column].map(name) for column, name in names.items() if column in frame}
    return frame.assign(**known)


def figure_20(cells: pd.DataFrame, lines: pd.DataFrame) -> alt.ConcatChart:
    """Losses of many-pair models (dots) and what the laws of two pairs predict (lines), by pair.

    Parameters
    ----------
    cells
        From `cells_of`.
    lines
        From `law_lines`.
    """
    # A third has too many digits for a legend.
    cells, lines = (frame.assign(p=frame["p"].astype(float).round(3)) for frame in (cells, lines))
    cells = cells.assign(mixture=cells["mixture"].map(mixture_name))
    x, colour = size_axis(), weight_color(list(cells["p"]))
    tooltip = tips("mixture", "p", "n", "loss|.4f")
    panels = []
    for pair, group in cells.groupby("pair"):
        panel = losses_and_laws(group, lines[lines["pair"] == pair], x, colour, tooltip)
        panels.append(panel.properties(title=pair_name(str(pair)), width=145, height=200))
    return alt.concat(*panels, columns=3).resolve_scale(color="shared")


def company(ratios: pd.DataFrame, noise: float) -> alt.LayerChart | alt.FacetChart:
    """What a third pair changes: three-pair losses over two-pair losses at the same share.

    Parameters
    ----------
    ratios
        From `same_share`, not empty.
    noise
        From `seed_distance`; a band around zero, unless it is NaN.
    """
    shown = ratios.assign(
        change=ratios["ratio"] - 1,
        name=ratios["pair"].map(pair_name),
        row=[
            f"{beside(pair)} beside {beside(partner)},|{beside(added)} joins"
            for pair, partner, added in zip(
                ratios["pair"], ratios["partner"], ratios["added"], strict=True
            )
        ],
        mixture=ratios["mixture"].map(mixture_name),
    )[["row", "name", "mixture", "p", "n", "change"]]
    x = alt.X("change:Q", axis=alt.Axis(format="+%", tickCount=6), title="change of the loss")
    y = alt.Y("row:N", title=None, axis=alt.Axis(labelExpr="split(datum.label, '|')"))
    pairs = sorted(set(ratios["pair"]))
    colour = alt.Color("name:N", title=None, legend=None)  # the rows name the pairs
    colour = colour.scale(
        domain=list(map(pair_name, pairs)), range=[_COLOURS[beside_hub(pair)] for pair in pairs]
    )
    dots = (
        alt.Chart(shown)
        .mark_point(opacity=0.5)
        .encode(x, y, colour, tooltip=["mixture", "p", "n", "change"])
    )
    means = shown.groupby("row", as_index=False)["change"].mean()
    mean = alt.Chart(means).mark_point(shape="diamond", size=160, color=INK).encode(x, y)
    zero = alt.Chart(pd.DataFrame({"change": [0.0]})).mark_rule(color=GREY).encode(x)
    layers = [zero, dots, mean]
    if noise == noise:  # not NaN
        band = alt.Chart(pd.DataFrame({"change": [-noise], "to": [noise]}))
        layers.insert(0, band.mark_rect(color=GREY, opacity=0.15).encode(x, x2="to:Q"))
    return alt.layer(*layers).properties(width=250, height=40 * len(means))


def beside(pair: str) -> str:
    """The language of a pair that its companions do not share.

    >>> beside("eng-deu")
    'German'
    """
    return language(beside_hub(pair))
