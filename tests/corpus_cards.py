"""Cards of small corpora, written for a test."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping
from pathlib import Path

from mnmt_repro.corpora.registry import Card, CorpusFile


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
