"""Figures: one function per figure, a tidy frame of `mnmt_repro.analysis` in, an altair chart out.

`display` shows a chart or a table with all that a page needs (`show`, `show_table`). `theme` holds
what all charts share.
"""
