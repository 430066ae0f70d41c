"""What an upgrade does to a model, drawn of its settings: Paper B's Figures 1 and 2. No runs."""

from __future__ import annotations

import altair as alt
import pandas as pd

from mnmt_repro.architecture import parameter_counts
from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.theme import CATEGORIES, tips
from mnmt_repro.papers.cohorts.software25 import KINDS, SHARES
from mnmt_repro.papers.cohorts.software25_runs import MINI, PAPER, Tier, recipe
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.upgrading.config import Kind, gamma_at
from mnmt_repro.upgrading.places import place_layers

_TIERS = {tier.name: tier for tier in (MINI, PAPER)}
TITLES: dict[Kind, str] = {"same": "M20", "wide": "wider", "deep": "deeper"}
"""A panel a shape; that of the old model is also that of Mt25."""
_OLD, _NEW = "from the old model", "new"
PIXELS = 42  # of the width of the model, in Figure 2

_COLOUR = alt.Color("part:N", title=None).scale(domain=[_OLD, _NEW], range=list(CATEGORIES[:2]))


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
    """Figure 1: every layer of each shape, with the old and the new hidden units of its block.

    Returns
    -------
    DataFrame
        ``model, stack, place`` (from the bottom, 1 first), ``part, units, left, right`` (hidden
        units, as a share of the widest block, about the middle) and ``old layer`` (from 1; NaN for
        a new one).
    """
    for kind in KINDS:
        config, d_ff = recipe(tier, kind), tier.model(kind).d_ff
        added = {"encoder": config.deeper.encoder, "decoder": config.deeper.decoder}
        at = {"encoder": config.deeper.encoder_at, "decoder": config.deeper.decoder_at}
        for stack, count in added.items():
            for place, old in enumerate(place_layers(tier.layers, count, at[stack]), start=1):
                units = {_NEW: d_ff} if old is None else {_OLD: tier.d_ff, _NEW: d_ff - tier.d_ff}
                start = -d_ff / 2
                for part, number in units.items():
                    if not number:
                        continue
                    yield {
                        "model": TITLES[kind],
                        "stack": stack,
                        "place": place,
                        "part": part,
                        "units": number,
                        "left": start / (tier.wider * tier.d_ff),
                        "right": (start + number) / (tier.wider * tier.d_ff),
                        "old layer": None if old is None else old + 1,
                    }
                    start += number


def layers_chart(table: pd.DataFrame) -> alt.ConcatChart:
    """Figure 1: encoder and decoder of each shape as stacks of feed-forward blocks.

    Both stacks of a model stay together where a screen is narrow.

    Parameters
    ----------
    table
        From `layers`.
    """
    tallest = int(table["place"].max())
    pairs = []
    for model, whole in table.groupby("model", sort=False):
        panels = []
        for stack, group in whole.groupby("stack", sort=False):
            boxes = group.assign(low=group["place"] - 0.9, high=group["place"] - 0.1)
            panel = (
                alt.Chart(boxes)
                .mark_rect(stroke="white")
                .encode(
                    alt.X("left:Q", scale=alt.Scale(domain=[-0.5, 0.5]), axis=None),
                    alt.X2("right:Q"),
                    alt.Y("low:Q", scale=alt.Scale(domain=[0, tallest]), axis=None),
                    alt.Y2("high:Q"),
                    _COLOUR,
                    tooltip=["model", "stack", "place", "part", "units", "old layer"],
                )
                .properties(title=[model, stack], width=90, height=16 * tallest)
            )
            panels.append(panel)
        pairs.append(alt.hconcat(*panels, spacing=8))
    return alt.concat(*pairs, columns=len(pairs), spacing=8).resolve_scale(color="shared")


@framed()
def blocks(tier: Tier) -> Rows:
    """Figure 2: the blocks of the two matrices of a widened feed-forward layer.

    Returns
    -------
    DataFrame
        ``matrix, block, part, rows, columns``; ``left, right, low, high`` (in units of the width
        of the model); ``begins as`` and ``rate``, the factor of its learning rate.
    """
    config, d, half = recipe(tier, "wide"), tier.d_model, tier.d_ff
    extra = tier.model("wide").d_ff - half
    for matrix, along in (("up", "rows"), ("out", "columns")):
        start = 0
        for block, part, units in (("M1", _OLD, half), ("M2", _NEW, extra)):
            size = {"rows": d, "columns": d} | {along: units}
            low, left = (start, 0) if along == "rows" else (0, start)
            yield {
                "matrix": matrix,
                "block": block,
                "part": part,
                **size,
                "left": left / d,
                "right": (left + size["columns"]) / d,
                "low": low / d,
                "high": (low + size["rows"]) / d,
                "begins as": "M" if part == _OLD else f"M + noise ({config.width.noise:g})",
                "rate": gamma_at(config.gamma_old if part == _OLD else config.gamma_new, 1),
            }
            start += units


def blocks_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Figure 2: both matrices to scale, a block a colour, with its factor of the learning rate.

    Parameters
    ----------
    table
        From `blocks`.
    """
    panels = []
    for matrix, group in table.groupby("matrix", sort=False):
        right, high = float(group["right"].max()), float(group["high"].max())
        shown = group.assign(
            label=[f"{row.block}\n× {row.rate:g}" for row in group.itertuples()],
            x=(group["left"] + group["right"]) / 2,
            y=(group["low"] + group["high"]) / 2,
        )
        across, up = alt.Scale(domain=[0, right]), alt.Scale(domain=[0, high])
        base = alt.Chart(shown)
        boxes = base.mark_rect(stroke="white").encode(
            alt.X("left:Q", scale=across, axis=None),
            alt.X2("right:Q"),
            alt.Y("low:Q", scale=up, axis=None),
            alt.Y2("high:Q"),
            _COLOUR,
            tooltip=["matrix", "block", "rows", "columns", "begins as", "rate"],
        )
        text = base.mark_text(color="white", lineBreak="\n").encode(
            alt.X("x:Q", scale=across, axis=None), alt.Y("y:Q", scale=up, axis=None), text="label:N"
        )
        size = {"width": right * PIXELS, "height": high * PIXELS}
        panels.append((boxes + text).properties(title=str(matrix), **size))
    return alt.hconcat(*panels, spacing=40).resolve_scale(color="shared")


@framed()
def rates(tier: Tier, points: int = 300) -> Rows:
    """Learning rate of old and of new weights, step by step, before the upgrade and after.

    Returns
    -------
    DataFrame
        ``model, part, updates`` (those after the upgrade follow the old model's) and ``rate``.
    """
    behind = tier.steps(1.0)
    for step in _spread(behind, points):
        yield from [
            {"model": TITLES[kind], "part": _OLD, "updates": step, "rate": tier.training.rate(step)}
            for kind in KINDS
        ]
    for kind in KINDS:
        config = recipe(tier, kind)
        start = behind if config.schedule == "continued" else 0
        for step in _spread(tier.steps(SHARES[kind][-1]), points):
            for part, gamma in ((_OLD, config.gamma_old), (_NEW, config.gamma_new)):
                rate = tier.training.rate(start + step) * gamma_at(gamma, step)
                found = {"model": TITLES[kind], "part": part, "updates": behind + step}
                yield {**found, "rate": rate}


def _spread(steps: int, points: int) -> list[int]:
    return sorted({1, *(round(steps * (i + 1) / points) for i in range(points))} - {0})


def rates_chart(table: pd.DataFrame) -> alt.HConcatChart:
    """Learning rates against updates, a panel an upgrade: old weights drop where it begins.

    Parameters
    ----------
    table
        From `rates`.
    """
    y = alt.Y("rate:Q", title="learning rate")
    panels = [
        alt.Chart(group)
        .mark_line()
        .encode(
            alt.X("updates:Q", axis=alt.Axis(format="~s", tickCount=3), title="updates"),
            y,
            _COLOUR,
            tooltip=tips("part", "updates", "rate|.2e"),
        )
        .properties(
            title="same size" if model == TITLES["same"] else str(model), width=135, height=180
        )
        for model, group in table.groupby("model", sort=False)
    ]
    return alt.hconcat(*panels).resolve_scale(color="shared", y="shared")


@framed()
def shapes(tier: Tier) -> Rows:
    """How much of each model is new, but for its vocabulary.

    Returns
    -------
    DataFrame
        ``model, layers, feed-forward, parameters`` (without embeddings), ``new, %`` of them.
    """
    old = parameter_counts(tier.model("same"))["non_embedding"]
    for kind in KINDS:
        config = tier.model(kind)
        count = parameter_counts(config)["non_embedding"]
        yield {
            "model": TITLES[kind],
            "layers": f"{config.encoder_layers} + {config.decoder_layers}",
            "feed-forward": config.d_ff,
            "parameters": count,
            "new, %": 100 * (count - old) / count,
        }
