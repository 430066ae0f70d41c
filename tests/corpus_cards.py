"""Makes the committed `cards.json` of the inventory that lies with the corpora."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from mnmt_repro.corpora.registry import SPLITS

MULTI30K_LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "cs": "ces"}


def cards_from_inventory(inventory: Mapping[str, Mapping[str, Mapping]]) -> dict[str, list[dict]]:
    """Turn the inventory that lies with the corpora into the entries of `cards.json`.

    Only hashes, names and counts are taken; no text. To renew the committed file::

        python tests/corpus_cards.py PATH/corpora.json > mnmt_repro/corpora/cards.json

    Parameters
    ----------
    inventory : mapping
        Corpus to file name to facts, as in ``corpora.json``.

    Returns
    -------
    dict
        Corpus to a list of `CorpusFile` fields, in alphabetical order of the files.
    """
    cards: dict[str, list[dict]] = {}
    for corpus, files in sorted(inventory.items()):
        entries = []
        for name, facts in sorted(files.items()):
            if corpus == "multi30k":
                split, language = name.split(".")[:2]
                split = {"train": "train", "val": "valid"}.get(split, "test")
                entry = {
                    "path": f"{corpus}/{name}",
                    "sha256": facts["sha256"],
                    "hash_of": "file",
                    "columns": [MULTI30K_LANGUAGES[language]],
                    "sentences": {split: facts["lines"]},
                }
            else:
                languages = name.rpartition(".")[2].split("-")
                in_splits = "train" in facts
                entry = {
                    "path": f"{corpus}/{name}.tsv.xz",
                    "sha256": facts["sha256_of_tsv"],
                    "hash_of": "content",
                    "columns": ["split", "domain", *languages] if in_splits else languages,
                    "sentences": {split: facts[split] for split in SPLITS}
                    if in_splits
                    else {"test": facts["pairs"]},
                }
                if "domains" in facts:
                    entry["domains"] = dict(facts["domains"])
            entries.append(entry)
        cards[corpus] = entries
    return cards


if __name__ == "__main__":
    print(json.dumps(cards_from_inventory(json.loads(Path(sys.argv[1]).read_text())), indent=1))
