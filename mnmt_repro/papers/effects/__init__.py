"""Numbers that verdicts, charts and sentences share, each computed in one place.

From a row of the store to a number: `cells` (means over seeds), a law or a difference, an interval
(`noise`), and for claims a function of evidence and setting. `claims` and `charts` import from
here, never the reverse.

==============================================  ================================
rows, cells and grids                           `cells`, `evidence`, `grids`
draws and intervals                             `noise`
laws of size and weight (A2 to A6)              `scaling`, `uncertainty`
effective fractions (A8 to A10, A21)            `fractions`
effects in regime (A3, A7, A11 to A13, A19)     `settled`
unseen weights, sizes, mixtures (A14 to A20)    `prediction`, `three_pairs`
translation quality (A16 to A18)                `quality`
upgrades against scratch (B1 to B3, B13, B20)   `upgrades`, `updates_saved`
variants, ablations, groupings (B5 to B19)      `variants`, `ablations`
what the old model forgets (B12, B14, B21)      `forgetting`
losses of others                                `public_losses`
printed tables, their audit, and misprints      `published`, `audit`, `errata`
algebra; text                                   `derivations`, `corpora`
==============================================  ================================
"""
