"""A small made-up bitext with words enough for a vocabulary of some hundred pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mnmt_repro.corpora.formats import Bitext

WORDS = {
    "window": "Fenster", "file": "Datei", "folder": "Ordner", "screen": "Bildschirm",
    "printer": "Drucker", "network": "Netzwerk", "password": "Kennwort", "account": "Konto",
    "message": "Nachricht", "keyboard": "Tastatur", "picture": "Bild", "sentence": "Satz",
    "morning": "Morgen", "question": "Frage", "answer": "Antwort", "language": "Sprache",
}  # fmt: skip
VERBS = {
    "open": "öffne", "close": "schließe", "save": "sichere", "delete": "lösche",
    "rename": "benenne", "print": "drucke", "search": "suche", "share": "teile",
}  # fmt: skip


def small_bitext(pair: str = "eng-deu", count: int = 400, seed: int = 0) -> Bitext:
    """English commands and their word-by-word German; the same English for every pair."""
    rng = np.random.default_rng(seed)
    source, target = [], []
    for _ in range(count):
        verb, noun, other = rng.choice(list(VERBS)), *rng.choice(list(WORDS), 2)
        k = int(rng.integers(2, 100))
        source.append(f"{verb} the {noun} and the {other} number {k}")
        target.append(f"{VERBS[str(verb)]} {WORDS[str(noun)]} und {WORDS[str(other)]} Nummer {k}")
    if pair.startswith("deu-"):
        source, target = target, source
    return Bitext(pair=pair, source=source, target=target)


def write_tsv(path: Path, pair: str, source: list[str], target: list[str]) -> None:
    """Write a bitext whose header has the languages of the pair."""
    rows = ["\t".join(pair.split("-")), *map("\t".join, zip(source, target, strict=True))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
