"""Models of other programs, in and out: Hugging Face and CTranslate2, with their tokenizers.

`read_folder` reads a folder of `transformers`: M2M-100, NLLB-200 without experts, T5 v1.1, mT5 and
MADLAD-400. `write_hf` and `write_ct2` write a model of ours as such a folder, or as one that
CTranslate2 runs. `mnmt-repro export` is the command, and `translate`, `evaluate`, `compare` and
`upgrade --from` take such a folder in place of a run's.
"""

from mnmt_repro.interchange.ctranslate import Ct2, write_ct2
from mnmt_repro.interchange.folder import Imported, is_ct2, is_hf, read_folder
from mnmt_repro.interchange.pieces import Pieces
from mnmt_repro.interchange.weights import from_transformers
from mnmt_repro.interchange.writing import write_hf
