"""Figures: one function per figure, a tidy frame in, an altair chart out.

`house` holds what they share: the chart theme, the colours of weights, and `show` and `show_table`,
which display a chart or a table with all that a page needs.
"""

from __future__ import annotations
