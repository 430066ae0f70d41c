"""The artificial languages: streams, splits, similarity, and their exactly known entropy."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from mnmt_repro.corpora.conlang import (
    Conlang,
    ConlangConfig,
    irreducible_entropy,
    split_of,
    zipf_probabilities,
)
from mnmt_repro.corpora.ragged import Ragged
from mnmt_repro.corpora.registry import SPLITS
from mnmt_repro.errors import InputError


def rows_of(rows: Ragged) -> list[tuple[int, ...]]:
    return [tuple(rows.flat[a:b].tolist()) for a, b in itertools.pairwise(rows.offsets)]


def tiny(**changes) -> ConlangConfig:
    """Three concepts, one or two a sentence: small enough to write all sentences down."""
    fields = {"concepts": 3, "syllables": 3, "min_concepts": 1, "max_concepts": 2, "seed": 3}
    return ConlangConfig(**(fields | {"synonymy": 0.3} | changes))


# Streams


@pytest.mark.parametrize(("split", "block"), [("train", 8192), ("valid", 1024), ("test", 1024)])
def test_a_sentence_depends_on_its_number_only(split, block):
    config = ConlangConfig(concepts=200, min_concepts=3, max_concepts=5)
    source, target = Conlang(config).sentences("src-aaa", 0, 2 * block + 10, split=split)
    whole = list(zip(rows_of(source), rows_of(target), strict=True))
    assert len(whole) == 2 * block + 10
    for start, count in ((0, 1), (block - 3, 6), (block, 2), (2 * block - 1, 11), (7, block)):
        source, target = Conlang(config).sentences("src-aaa", start, count, split=split)
        part = list(zip(rows_of(source), rows_of(target), strict=True))
        assert part == whole[start : start + count]
    assert whole[:100] != whole[block : block + 100]


def test_streams_differ_by_pair_and_seed_and_not_by_similarity():
    first = Conlang(ConlangConfig())
    aaa, _ = first.concepts("src-aaa", 0, 500)
    assert (aaa != first.concepts("src-bbb", 0, 500)[0]).any()
    assert (aaa != Conlang(ConlangConfig(seed=1)).concepts("src-aaa", 0, 500)[0]).any()
    assert (aaa == Conlang(ConlangConfig(similarity=0.5)).concepts("src-aaa", 0, 500)[0]).all()


def test_test_sets_are_parallel_across_pairs_and_directions():
    conlang = Conlang(ConlangConfig())
    forth = conlang.text("src-aaa", 0, 50, split="test")
    back = conlang.text("aaa-src", 0, 50, split="test")
    other = conlang.text("src-bbb", 0, 50, split="test")
    assert [(a, s) for s, a in forth] == back
    assert [s for s, _ in other] == [s for s, _ in forth]


def test_splits_share_no_concept_sequence():
    config = ConlangConfig(concepts=40, min_concepts=3, max_concepts=4)
    conlang, seen = Conlang(config), {}
    for split, count in (("train", 20_000), ("valid", 1_000), ("test", 1_000)):
        seen[split] = set()
        for pair in ("src-aaa", "bbb-src"):
            concepts, lengths = conlang.concepts(pair, 0, count, split=split)
            assert (split_of(concepts, lengths) == SPLITS.index(split)).all()
            seen[split] |= {
                tuple(row[:n]) for row, n in zip(concepts.tolist(), lengths, strict=True)
            }
    for one, other in itertools.combinations(SPLITS, 2):
        assert not seen[one] & seen[other]
    everything = np.array(list(itertools.product(range(40), repeat=3)))
    shares = np.bincount(split_of(everything, np.full(len(everything), 3))) / len(everything)
    np.testing.assert_allclose(shares, [0.98, 0.01, 0.01], atol=4 * math.sqrt(0.01 / 64_000))


def test_concepts_follow_zipf():
    config = ConlangConfig(zipf=1.2)
    concepts, _ = Conlang(config).concepts("src-aaa", 0, 200_000)
    counts = np.bincount(concepts.ravel(), minlength=config.concepts)
    rank = np.arange(1, 31)
    slope = np.polyfit(np.log(rank), np.log(counts[:30]), 1)[0]
    assert slope == pytest.approx(-1.2, abs=0.02)
    # Splits take whole sequences away, so frequencies may move by little more than chance.
    expected = zipf_probabilities(config) * concepts.size
    frequent = expected > 100
    assert abs(counts / expected - 1)[frequent].max() < 0.5
    assert counts[:10].sum() / expected[:10].sum() == pytest.approx(1, abs=0.005)


# Lexicons


def overlap(conlang: Conlang, a: str, b: str) -> float:
    """Share of concepts spelled alike in two languages."""
    return float((conlang.spellings[a] == conlang.spellings[b]).all(axis=(1, 2)).mean())


@pytest.mark.parametrize("similarity", [0.0, 0.25, 1.0])
def test_measured_overlap_is_the_similarity(similarity):
    config = ConlangConfig(languages=("src", "aa", "bb", "cc"), similarity=similarity)
    conlang = Conlang(config)
    words = {
        name: {tuple(word) for word in table.reshape(-1, 2).tolist()}
        for name, table in conlang.spellings.items()
    }
    for a, b in (("aa", "bb"), ("aa", "cc"), ("bb", "cc")):
        assert overlap(conlang, a, b) == pytest.approx(similarity, abs=0.5 / config.concepts)
        # Only spellings of the same concept coincide: there are no false friends.
        assert len(words[a] & words[b]) == 2 * round(similarity * config.concepts)
    assert not words["src"] & words["aa"]
    if similarity == 0:
        ids = [set(conlang.spellings[name].ravel().tolist()) for name in config.languages]
        assert sum(map(len, ids)) == len(set().union(*ids))
    if similarity == 1:
        assert (conlang.spellings["aa"] == conlang.spellings["cc"]).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_spellings_of_a_language_are_distinct_words(k):
    config = ConlangConfig(
        concepts=100, syllables={1: 250, 2: 20, 3: 8}[k], syllables_per_concept=k, similarity=0.5
    )
    conlang = Conlang(config)
    for table in conlang.spellings.values():
        assert table.shape == (100, 2, k)
        assert len({tuple(word) for word in table.reshape(-1, k).tolist()}) == 200
    assert overlap(conlang, "aaa", "bbb") == 0.5


def test_a_reversed_language_writes_the_last_concept_first():
    config = ConlangConfig(concepts=50, min_concepts=1, max_concepts=5, synonymy=0.0)
    conlang = Conlang(config)
    concepts, lengths = conlang.concepts("src-bbb", 0, 200)
    source, target = conlang.sentences("src-bbb", 0, 200)
    assert set(lengths.tolist()) == {1, 2, 3, 4, 5}
    for rows, name, step in ((source, "src", 1), (target, "bbb", -1)):
        for sentence, n, written in zip(concepts, lengths, rows_of(rows), strict=True):
            expected = conlang.spellings[name][sentence[:n][::step], 0].ravel().tolist()
            assert list(written) == expected


def test_text_round_trip():
    conlang = Conlang(ConlangConfig(similarity=0.4, min_concepts=1, max_concepts=8))
    assert len(set(conlang.pieces)) == len(conlang.pieces)
    source, target = conlang.sentences("aaa-bbb", 100, 300)
    for rows in (source, target):
        again = conlang.encode(conlang.decode(rows))
        assert (again.flat == rows.flat).all()
        assert (again.offsets == rows.offsets).all()
    lines = [line for pair in conlang.text("aaa-bbb", 100, 300) for line in pair]
    assert conlang.decode(conlang.encode(lines)) == lines
    # Written without spaces a word still falls into its syllables in one way only.
    run_on = [line.replace(" ", "") for line in lines]
    assert (conlang.encode(run_on).flat == conlang.encode(lines).flat).all()


def test_what_is_not_conlang_is_refused():
    conlang = Conlang(ConlangConfig())
    good = conlang.text("src-aaa", 0, 1)[0][0]
    for bad in ("Hello", "e", good + " xx", good + "'"):
        with pytest.raises(InputError, match="line 2"):
            conlang.encode([good, bad])


# Entropy


def test_irreducible_entropy_by_hand():
    # One fair bit a concept, two concepts of two syllables and an end of sentence.
    config = ConlangConfig(min_concepts=2, max_concepts=2, synonymy=0.5)
    assert irreducible_entropy(config, "src-aaa") == pytest.approx(2 * math.log(2) / 5)
    assert irreducible_entropy(ConlangConfig(synonymy=0.0), "aaa-src") == 0.0


@pytest.mark.parametrize(("pair", "similarity"), [("src-aaa", 0.0), ("aaa-bbb", 1.0)])
def test_irreducible_entropy_against_the_joint_distribution_of_strings(pair, similarity):
    config = tiny(similarity=similarity)
    conlang, q = Conlang(config), config.synonymy
    zipf = np.array([1.0, 2**-1.2, 3**-1.2]) / (1 + 2**-1.2 + 3**-1.2)

    def strings(language, sentence):
        """All ways to write a sentence, with their probabilities; two concepts are turned round."""
        sentence = sentence if language == "src" else sentence[::-1]
        for choice in itertools.product((0, 1), repeat=len(sentence)):
            words = [
                conlang.spellings[language][c, v] for c, v in zip(sentence, choice, strict=True)
            ]
            weight = math.prod(q if v else 1 - q for v in choice)
            yield "".join(conlang.pieces[i] for word in words for i in word), weight

    joint, tokens = defaultdict(float), 0.0
    source, target = pair.split("-")
    for n in (1, 2):
        sentences = list(itertools.product(range(3), repeat=n))
        padded = np.array([s + (0,) * (2 - n) for s in sentences])
        kept = split_of(padded, np.full(len(padded), n)) == 0
        mass = {s: zipf[list(s)].prod() for s, keep in zip(sentences, kept, strict=True) if keep}
        for sentence, weight in mass.items():
            weight *= 0.5 / sum(mass.values())  # both lengths are equally likely
            tokens += weight * (2 * n + 1)
            for (s, ps), (t, pt) in itertools.product(
                strings(source, sentence), strings(target, sentence)
            ):
                joint[s, t] += weight * ps * pt
    marginal = defaultdict(float)
    for (s, _), p in joint.items():
        marginal[s] += p
    assert sum(marginal.values()) == pytest.approx(1.0)
    entropy = -sum(p * math.log(p / marginal[s]) for (s, _), p in joint.items())
    assert irreducible_entropy(config, pair) == pytest.approx(entropy / tokens, rel=1e-12)

    # What the generator writes is that distribution: plug-in entropy of 200,000 sentences.
    count = 200_000
    drawn = Counter(
        zip(*map(rows_of, conlang.sentences(pair, 0, count)), strict=True)  # pairs of strings
    )
    assert len(drawn) <= len(joint)
    seen = Counter()
    for (s, _), times in drawn.items():
        seen[s] += times
    plug_in = -sum(n / count * math.log(n / seen[s]) for (s, _), n in drawn.items())
    assert plug_in == pytest.approx(entropy, abs=0.01)


# Mistakes


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("languages", ("src",)),
        ("syllables", 63),  # 63 ** 2 < 2 * 2048
        ("syllables", 2000),  # more than there are
        ("max_concepts", 5),  # below min_concepts
        ("families", (("aaa", "zzz"),)),
        ("families", (("aaa",), ("aaa", "bbb"))),
        ("orders", ("forward", "sideways", "forward")),
    ],
)
def test_a_bad_field_is_named(field, value):
    with pytest.raises(InputError, match=f"conlang {field}"):
        ConlangConfig(**{field: value})


def test_similarity_that_the_syllables_cannot_carry_is_refused():
    # 64 ** 2 words are exactly enough at 0 and 1, but no square is just a tenth of them.
    ConlangConfig(syllables=64, similarity=0.0)
    ConlangConfig(syllables=64, similarity=1.0)
    with pytest.raises(InputError, match="syllables"):
        ConlangConfig(syllables=64, similarity=0.1)


def test_bad_requests_are_refused():
    conlang = Conlang(ConlangConfig())
    with pytest.raises(InputError, match="'src-zzz'"):
        conlang.sentences("src-zzz", 0, 1)
    with pytest.raises(InputError, match="'src-src'"):
        irreducible_entropy(conlang.config, "src-src")
    with pytest.raises(InputError, match="'dev'"):
        conlang.sentences("src-aaa", 0, 1, split="dev")
    with pytest.raises(InputError, match="start"):
        conlang.sentences("src-aaa", -1, 1)
    with pytest.raises(InputError, match="'test' holds hardly a sentence"):
        Conlang(tiny()).sentences("src-aaa", 0, 1, split="test")
