"""Upgrade a model to more languages: new vocabulary, more width and depth, two learning rates.

Where is which part of the paper on upgrading (Paper B)?

=================================  ==============================================================
Section 2, Figure 1                `recipe`: one call does all
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
Appendix D, Table 11 right         `learning_rate`: Fisher information, thresholds
Appendix D, Figure 6 right         `analyses`: the distribution of Fisher information
=================================  ==============================================================

`config` needs no torch. `mnmt-repro upgrade` is the command; in Python, of a model
that another program has trained (`interchange` reads five families). Here its tables have
a row more than its vocabulary has tokens, and no `<s>`, like T5's; the new vocabulary is one of
`mnmt-repro data vocabulary`, and `vocabulary.meanings` gives the meaning of its pieces.

>>> from mnmt_repro.architecture import ModelConfig
>>> from mnmt_repro.model import Transformer
>>> from mnmt_repro.training.checkpoint import Checkpoint
>>> from mnmt_repro.upgrading.config import UpgradeConfig
>>> from mnmt_repro.upgrading.recipe import upgrade
>>> from mnmt_repro.upgrading.vocabulary import ROLES, Piece, match_meanings
>>> old = Transformer(ModelConfig.fairseq(vocab_size=6, d_model=8, layers=1, heads=2))
>>> special = [Piece(kind="special", text=role) for role in ROLES]
>>> the, cat, ikati = (Piece(kind="text", text=text) for text in ("▁the", "▁cat", "▁ikati"))
>>> known = [*special[:3], the, cat, Piece(kind="text", text="unused")]
>>> wanted = [*special, Piece(kind="tag", text="<2xho>"), the, cat, ikati]  # here typed out
>>> config = UpgradeConfig(wider=2, gamma_old=0.5, optimiser="reset", schedule="reset")
>>> pieces = match_meanings(known, wanted)
>>> start = upgrade(Checkpoint.of(old), config, pieces=pieces)
>>> start.model.config.d_ff, start.report.normalisation, [p.text for p in pieces.overlap.added]
(64, 'as published', ['bos', '<2xho>', '▁ikati'])

`training.loop.train(start.model, ..., prepare=start.prepare, schedule_start=start.schedule_start)`
trains it on, with the learning rates of `config`; `save_upgraded(path, start)`, of the module
`upgrading.start`, keeps it in a file.
"""
