"""Draw the README's picture from the stored runs: `make picture`."""

from __future__ import annotations

from mnmt_repro import results
from mnmt_repro.atomic import write_bytes
from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.grid_figures import law_figure
from mnmt_repro.papers.effects.grids import read_grid
from mnmt_repro.repository import ROOT

PATH = ROOT / "book" / "images" / "loss-against-size.svg"


def draw_picture() -> None:
    """Write Figure 2 as SVG."""
    grid = read_grid(results.load(tier="mini", domain="all", seed=1), "webtech-en-dezh")
    if grid is None:
        raise InputError("webtech-en-dezh: no runs are stored")
    figure = law_figure(grid, "separate")
    write_bytes(PATH, figure.svg.encode())
    print(PATH.relative_to(ROOT))


if __name__ == "__main__":
    draw_picture()
