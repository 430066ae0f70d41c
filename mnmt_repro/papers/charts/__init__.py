"""Charts: a tidy frame of `papers.effects` in, an altair chart out.

`lines` and `forest` draw most of them, from frames that a page makes in its visible cells.
`display` shows a chart or a table with all that a page needs (`show`, `show_table`), `opening` the
sentence and the three lines of a results page, and `theme` holds what all charts share. Which
figure of the papers is on which page: `data/papers/exhibits.yml`.
"""
