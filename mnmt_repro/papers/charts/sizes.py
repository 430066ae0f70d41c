"""Paper A's Appendix A: the printed model sizes beside the arithmetic."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import pandas as pd

from mnmt_repro.architecture import PublishedSize, parameter_counts
from mnmt_repro.papers.charts.theme import CATEGORIES, INK
from mnmt_repro.papers.effects.cells import Rows, framed

_PARTS = ("encoder", "decoder", "input_embedding", "output_projection")


@framed()
def model_sizes(published: Iterable[PublishedSize]) -> Rows:
    """One row a published size: its shape, both printed counts, ours, and the differences."""
    for row in published:
        shape, counts = row.config, parameter_counts(row.config)
        yield {
            "layers": f"{shape.encoder_layers} + {shape.decoder_layers}",
            "d": shape.d_model,
            "heads": shape.heads,
            "feed-forward": shape.d_ff,
            "total, printed": row.published_total,
            "total, counted": counts["total"],
            "printed − counted": row.published_total - counts["total"],
            "N, printed": row.published_non_embedding,
            "N, counted": counts["non_embedding"],
            "printed − counted N": row.published_non_embedding - counts["non_embedding"],
        }


def sizes_chart(published: Iterable[PublishedSize]) -> alt.LayerChart | alt.FacetChart:
    """Counted parameters of each size, stacked by part, with both printed counts as marks."""
    bars, marks = [], []
    for row in published:
        config, counts = row.config, parameter_counts(row.config)
        size = f"{config.encoder_layers}+{config.decoder_layers}, {config.d_model}"
        bars += [
            {
                "size": size,
                "part": part.replace("_", " "),
                "order": k,
                "millions": counts[part] / 1e6,
            }
            for k, part in enumerate(_PARTS)
        ]
        printed = {
            "N": row.published_non_embedding,
            "total": row.published_total,
        }
        marks += [
            {"size": size, "mark": mark, "millions": count / 1e6} for mark, count in printed.items()
        ]
    y = alt.Y("size:N", sort=None, title="layers, width d")
    x = alt.X("millions:Q", title="millions of parameters")
    parts = [part.replace("_", " ") for part in _PARTS]
    colour = alt.Color("part:N", title="counted")
    colour = colour.scale(domain=parts, range=[CATEGORIES[k] for k in (0, 5, 4, 1)])
    colour = colour.legend(columns=2)
    shape = alt.Shape("mark:N", title="printed")
    shape = shape.scale(domain=["N", "total"], range=["triangle-down", "diamond"]).legend(columns=1)
    number = alt.Tooltip("millions:Q", format=",.3f")
    bar = alt.Chart(pd.DataFrame(bars)).mark_bar(height=16)
    mark = alt.Chart(pd.DataFrame(marks)).mark_point(color=INK, size=60, opacity=1)
    return alt.layer(
        bar.encode(x.stack("zero"), y, colour, order="order:Q", tooltip=["size", "part", number]),
        mark.encode(x, y, shape, tooltip=["size", "mark", number]),
    ).properties(width=300, height=230)
