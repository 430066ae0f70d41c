"""What a perfect reader of a conlang knows, to hold generated text against."""

from __future__ import annotations

import numpy as np

from mnmt_repro.corpora.conlang import SPELLINGS, Conlang
from mnmt_repro.corpora.ragged import Ragged


def read(conlang: Conlang, language: str, rows: Ragged) -> tuple[np.ndarray, np.ndarray]:
    """Concept and spelling of each word of each row; concept -1 for what is no word."""
    table = conlang.spellings[language]
    known = {
        tuple(word): divmod(i, SPELLINGS)
        for i, word in enumerate(table.reshape(-1, table.shape[-1]).tolist())
    }
    words = rows.flat.reshape(-1, table.shape[-1]).tolist()
    found = np.array([known.get(tuple(word), (-1, 0)) for word in words], dtype=np.int64)
    return found[:, 0], found[:, 1]


def log_likelihood(conlang: Conlang, pair: str, source: Ragged, target: Ragged) -> np.ndarray:
    """Log-probability of each target given its source, in nats, (rows,).

    The best that any model can do on these very sentences; minus infinity for a target that is
    no translation of its source. Its mean over (tokens + sentences) estimates
    `-irreducible_entropy`.
    """
    first, second = conlang.config.split_pair(pair)
    k = conlang.config.syllables_per_concept
    meant, _ = read(conlang, first, source)
    written, spelling = read(conlang, second, target)
    q = conlang.config.synonymies[conlang.config.languages.index(second)]
    with np.errstate(divide="ignore"):
        cost = np.log(np.array([1.0 - q, q]))[spelling]
    result = np.full(len(target), -np.inf)
    for i in range(len(target)):
        left = meant[source.offsets[i] // k : source.offsets[i + 1] // k]
        words = slice(target.offsets[i] // k, target.offsets[i + 1] // k)
        right, n = written[words], len(left)
        if n != len(right) or n > conlang.config.max_concepts or (left < 0).any():
            continue
        plain = np.empty(n, dtype=np.int64)
        plain[conlang._orders[first][n][:n]] = left
        if (plain[conlang._orders[second][n][:n]] == right).all():
            result[i] = cost[words].sum()
    return result


def overlap(conlang: Conlang, a: str, b: str) -> float:
    """Share of concepts spelled alike in two languages."""
    return float((conlang.spellings[a] == conlang.spellings[b]).all(axis=(1, 2)).mean())
