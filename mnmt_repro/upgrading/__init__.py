"""Upgrade a model to more languages: new vocabulary, more width and depth, two learning rates.

Where is which part of the paper on upgrading (Paper B)?

=================================  ==============================================================
Section 2, Figure 1; Section 3     `recipe`: one call does all; `published` settings
Section 2, embeddings; Table 4     `vocabulary`: which piece was which, rows for the others
Figure 1 left; Table 4             `width`: random, interpolation, concatenation; footnotes 10, 11
Figure 1 right; Table 4            `depth`: random, closest, average; footnote 12; where to insert
Section 4.4, Figure 2, Table 6     `learning_rate`: a factor for old blocks and one for new ones
Appendix D, Table 11 right         `learning_rate`: Fisher information and thresholds
Table 3, "random init all"         `recipe.UpgradeConfig(keep="nothing")`
Table 4, "all emb random"          `recipe.UpgradeConfig(keep="body")`
=================================  ==============================================================
"""
