"""Judge models: beam search, the metrics of its output, and whether differences are chance.

Cross-entropy is in `mnmt_repro.scoring`, which training uses too.
"""
