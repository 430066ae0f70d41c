"""Upgrade a model to more languages: new vocabulary, more width and depth, two learning rates.

Where is which part of the paper on upgrading (Paper B)?

=================================  ==============================================================
Section 2, Figure 1                `recipe`: one call does all; `assemble`: tensor by tensor
Section 3, footnote 7              `config`: every choice, and the `published` settings
Section 2, embeddings; Table 4     `vocabulary`: which piece was which, rows for the others
Figure 1 left; Table 4             `width`: random, interpolation, concatenation; footnotes 10, 11
Figure 1 right; Table 4            `depth`: random, closest, average; footnote 12; where to insert
Section 4.4, Figure 2, Table 6     `learning_rate`: a factor for old blocks and one for new ones
Section 3, training details        `start`: what training goes on from, to a file and back
Table 3, "random init all"         `config.UpgradeConfig(keep="nothing")`
Table 4, "all emb random"          `config.UpgradeConfig(keep="body")`
Section 5.2, Figures 3 and 6 left  `analyses`: the old model with the new one's embeddings
Appendix C, Figure 5               `analyses`: how far layers and halves of matrices have moved
Appendix D, Table 11 right         `learning_rate`: Fisher information, thresholds; `start`
Appendix D, Figure 6 right         `analyses`: Fisher information by layer, and its distribution
Section 5.3, Figure 4              `compute`: what it takes to reach a share of a baseline
=================================  ==============================================================

`config` and `compute` need no torch.
"""
