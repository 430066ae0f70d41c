"""The store of results: one JSON file a run, written once and whole, read as data frames.

A run lies in ``<root>/<corpus>/<run_id>.json`` as ``{"schema": 1, "run", "rows", "curve"}``: what
the run was, its scores for each pair, test set and domain, and its learning curve. Scores of
translations, made later from the run's checkpoint, lie apart in ``<root>/<corpus>/decoded`` (see
`results.decodings`), and so do analyses of its weights (`results.analyses`). A run that was trained
again lies in ``<root>/<corpus>/repeats`` (`results.repeats`). A file is never replaced; many
processes may write at once. The root is ``data/results`` of a checkout, or the folder named by
``MNMT_REPRO_RESULTS``, or the argument `root`.

>>> from mnmt_repro import results
>>> frame = results.load(tier="mini", test_set="indomain")      # doctest: +SKIP
"""

from mnmt_repro.results.analyses import load_analyses, write_analyses
from mnmt_repro.results.decodings import load_decodings, write_decoding
from mnmt_repro.results.files import results_root, use
from mnmt_repro.results.frames import load, load_curves
from mnmt_repro.results.repeats import load_repeats, write_repeat
from mnmt_repro.results.store import load_runs, read_run, run_file, write_run
