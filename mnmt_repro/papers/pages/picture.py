"""Draw the picture at the top of the README from the stored runs: `make picture`."""

from __future__ import annotations

from mnmt_repro import results
from mnmt_repro.atomic import write_bytes
from mnmt_repro.papers.charts.display import show
from mnmt_repro.papers.charts.loss_laws import loss_against_size
from mnmt_repro.papers.charts.provenance import Provenance
from mnmt_repro.papers.effects import scaling
from mnmt_repro.repository import ROOT

PATH = ROOT / "book" / "images" / "loss-against-size.svg"


def draw_picture(cohort: str = "webtech-en-dezh") -> None:
    """Write Figure 2 of a cohort as SVG."""
    rows = results.load(cohort=cohort, tier="mini", test_set="indomain", domain="all", seed=1)
    points = scaling.observed(rows)
    curves = scaling.per_weight_curves(points, scaling.fit_pairs(points))
    figure = show(
        loss_against_size(points, curves),
        name="picture",
        alt="Test loss against model size for two language pairs, a colour a weight.",
        data=points,
        provenance=Provenance.of(rows),
    )
    write_bytes(PATH, figure.svg.encode())
    print(PATH.relative_to(ROOT))


if __name__ == "__main__":
    draw_picture()
