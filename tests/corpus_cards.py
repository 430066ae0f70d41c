"""Cards of corpora: the committed ones, from the inventory beside the corpora, and small ones."""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from collections.abc import Mapping
from pathlib import Path

from mnmt_repro.corpora.registry import SPLITS, Card, CorpusFile

MULTI30K_LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "cs": "ces"}


def small_card(folder: Path, texts: Mapping[str, str], name: str = "tiny") -> Card:
    """Write TSVs with the columns split and domain to `folder`; the card that is true of them."""
    files = []
    for stem, text in texts.items():
        (folder / f"{stem}.tsv.xz").write_bytes(lzma.compress(text.encode()))
        header, *rows = (line.split("\t") for line in text.split("\n")[:-1])
        splits = [row[0] for row in rows]
        domains = [row[1] for row in rows if row[0] == "train"]
        files.append(
            CorpusFile(
                path=f"{stem}.tsv.xz",
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                hash_of="content",
                columns=tuple(header),
                sentences={split: splits.count(split) for split in dict.fromkeys(splits)},
                domains={domain: domains.count(domain) for domain in set(domains)},
            )
        )
    words = dict.fromkeys(("title", "licence", "origin", "obtained", "split_rule"), "a test")
    return Card(name=name, **words, files=tuple(files))


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
