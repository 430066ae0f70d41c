"""Numbers that verdicts and pages share, each computed in one place.

`claims` and `figures` import from here, never the reverse.

==============================================  ==============================================
cells of a grid, and its laws                   `cells`, `grids`, `scaling`
intervals, losses under noise                   `intervals`, `noise`
R² and errors on a size left out (A2, A6)       `fit_quality`
coefficients that move with the weight (A3-A5)  `drift`, `uncertainty`
effective fractions (A7 to A13, A21)            `fractions`, `fraction_draws`, `fraction_lines`
errors on held-out weights and sizes (A14-A17)  `held_out`
translation quality (A16 to A18)                `quality`
convergence (A19), budgets, learning curves     `convergence`, `budget`, `regime`
three pairs from laws of two (A20)              `three_pairs`
public losses of larger runs                    `public_losses`
variants of Paper B compared                    `variants`, `ablations`, `upgrades`, `groupings`
what the old model forgets (B12, B14, B21)      `forgetting`
printed tables, and their audit                 `published`, `audit`
==============================================  ==============================================
"""
