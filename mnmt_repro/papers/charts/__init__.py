"""Charts: one function per figure, a tidy frame of `papers.effects` in, an altair chart out.

`display` shows a chart or a table with all that a page needs (`show`, `show_table`). `theme` holds
what all charts share. Where is which figure of the papers?

===============================  ==================================================================
Paper A
Figures 2, 5 (9, 11, 13, 15-17)  `loss_laws.loss_against_size`
Figure 3                         `loss_laws.reducible_against_size`
Figure 4 (10, 12, 14)            `loss_laws.coefficients_against_weight`
Figure 6                         `fraction_panels.fraction_panels`
Figures 7, 18                    `fractions.form_chart` (left), `fractions.frontier_chart` (right)
Figures 8, 19                    `quality.score_against_loss` (left), `quality.score_frontier`
Figure 20                        `three_pairs.figure_20`
Appendix A, Appendix G           `sizes.sizes_chart`; `convergence`
Paper B
Figures 1, 2                     `upgrade_pictures.boxes`
Figures 3, 5, 6                  `forest.forest`, `lines.lines`
Figure 4, Table 1                `lines.lines`, `upgrades.lead_chart`
Tables 3 to 8, 11                `forest.gains_forest`
===============================  ==================================================================
"""
