"""What an upgrade does to a model, drawn of its settings: Paper B's Figures 1 and 2. No runs."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.theme import looks
from mnmt_repro.papers.cohorts.software25 import KINDS
from mnmt_repro.papers.cohorts.software25_runs import MINI, PAPER, Tier, recipe
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.upgrading.config import Kind, gamma_at
from mnmt_repro.upgrading.places import place_layers

_TIERS = {tier.name: tier for tier in (MINI, PAPER)}
TITLES: dict[Kind, str] = {"same": "M20", "wide": "wider", "deep": "deeper"}
"""A panel a shape; that of the old model is also that of Mt25."""
_OLD, _NEW = "from the old model", "new"


def find_tier(name: str) -> Tier:
    """The settings of a tier.

    Raises
    ------
    InputError
        When Paper B's runs are not declared at it.
    """
    if name not in _TIERS:
        raise InputError(f"tier {name!r}: Paper B's runs are declared at {', '.join(_TIERS)}")
    return _TIERS[name]


@framed()
def layers(tier: Tier) -> Rows:
    """Figure 1: the feed-forward block of every layer, of old and of new hidden units.

    Returns
    -------
    DataFrame
        ``panel`` (model and stack), ``model, stack, place`` (from the bottom, 1 first), ``part,
        units``, ``old layer`` (from 1; NaN for a new one), and for `boxes` ``label, left, right``
        (hidden units, as a share of the widest block) and ``low, high`` (places).
    """
    for kind in KINDS:
        config, d_ff = recipe(tier, kind), tier.model(kind).d_ff
        added = {"encoder": config.deeper.encoder, "decoder": config.deeper.decoder}
        at = {"encoder": config.deeper.encoder_at, "decoder": config.deeper.decoder_at}
        for stack, count in added.items():
            for place, old in enumerate(place_layers(tier.layers, count, at[stack]), start=1):
                units = {_NEW: d_ff} if old is None else {_OLD: tier.d_ff, _NEW: d_ff - tier.d_ff}
                start = 0
                for part, number in units.items():
                    if not number:
                        continue
                    yield {
                        "panel": f"{TITLES[kind]}, {stack}",
                        "model": TITLES[kind],
                        "stack": stack,
                        "place": place,
                        "part": part,
                        "units": number,
                        "old layer": None if old is None else old + 1,
                        "label": "",
                        "left": start / (tier.wider * tier.d_ff),
                        "right": (start + number) / (tier.wider * tier.d_ff),
                        "low": place - 0.9,
                        "high": place - 0.1,
                    }
                    start += number


@framed()
def blocks(tier: Tier) -> Rows:
    """Figure 2: the blocks of the two matrices of a widened feed-forward layer.

    Returns
    -------
    DataFrame
        ``panel`` (the matrix), ``block, part, rows, columns``; ``begins as`` and ``rate``, the
        factor of its learning rate; for `boxes` ``label, left, right, low, high`` (in units of the
        width of the model).
    """
    config, d, half = recipe(tier, "wide"), tier.d_model, tier.d_ff
    extra = tier.model("wide").d_ff - half
    for matrix, along in (("up", "rows"), ("out", "columns")):
        start = 0
        for block, part, units in (("M1", _OLD, half), ("M2", _NEW, extra)):
            size = {"rows": d, "columns": d} | {along: units}
            low, left = (start, 0) if along == "rows" else (0, start)
            rate = gamma_at(config.gamma_old if part == _OLD else config.gamma_new, 1)
            yield {
                "panel": matrix,
                "block": block,
                "part": part,
                **size,
                "left": left / d,
                "right": (left + size["columns"]) / d,
                "low": low / d,
                "high": (low + size["rows"]) / d,
                "begins as": "M" if part == _OLD else f"M + noise ({config.width.noise:g})",
                "rate": rate,
                "label": f"{block}\n× {rate:g}",
            }
            start += units


def boxes(
    table: pd.DataFrame, *, pixels: tuple[float, float], ends: tuple[float, float] | None = None
) -> alt.ConcatChart:
    """Figures 1 and 2: a panel of rectangles each, old weights and new ones in two colours.

    Parameters
    ----------
    table
        From `layers` or `blocks`.
    pixels
        Of a unit across and up.
    ends
        Of all panels across and up; by default each panel is as large as its boxes.
    """
    colour = looks("part:N", (_OLD, _NEW), alt.Legend(title=None))["color"]
    drawn = ["label", "left", "right", "low", "high"]
    panels = []
    for panel, group in table.groupby("panel", sort=False):
        right, high = ends or (float(group["right"].max()), float(group["high"].max()))
        across, up = alt.Scale(domain=[0, right]), alt.Scale(domain=[0, high])
        x_and_y = (group[["left", "right"]].mean(axis=1), group[["low", "high"]].mean(axis=1))
        base = alt.Chart(group.assign(x=x_and_y[0], y=x_and_y[1]))
        x, y = (alt.X("left:Q", scale=across, axis=None), alt.Y("low:Q", scale=up, axis=None))
        tooltip = [name for name in group if name not in drawn]
        rectangles = base.mark_rect(stroke="white").encode(
            x, alt.X2("right"), y, alt.Y2("high"), colour, tooltip=tooltip
        )
        text = base.mark_text(color="white", lineBreak="\n").encode(
            alt.X("x:Q", scale=across, axis=None), alt.Y("y:Q", scale=up, axis=None), text="label:N"
        )
        size = {"width": right * pixels[0], "height": high * pixels[1]}
        panels.append((rectangles + text).properties(title=str(panel).split(", "), **size))
    return alt.concat(*panels, columns=len(panels), spacing=24).resolve_scale(color="shared")
