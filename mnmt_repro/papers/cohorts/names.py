"""How pages name languages, language pairs and cohorts."""

from __future__ import annotations

from collections.abc import Iterable

from mnmt_repro.papers.cohorts import languages25

HUBS = ("eng", "src")  # the language that all pairs of a corpus share
LANGUAGE_NAMES = {
    "eng": "English",
    "zho": "Chinese",
    "src": "language S",
    **{3 * letter: f"language {letter.upper()}" for letter in "abcdef"},
    **{code: printed.name for code, printed in languages25.LANGUAGES.items()},
}


def language(code: str) -> str:
    """Name of a language, or its code where we have none.

    >>> language("deu"), language("xyz")
    ('German', 'xyz')
    """
    return LANGUAGE_NAMES.get(code, code)


def pair_name(pair: str) -> str:
    """Name of a directed language pair.

    >>> pair_name("eng-deu"), pair_name("src-aaa")
    ('English→German', 'S→A')
    """
    source, _, target = pair.partition("-")
    return "→".join(language(code).removeprefix("language ") for code in (source, target))


def pair_title(pair: str) -> str:
    """Name of a directed language pair as a heading, which says what its letters are.

    >>> pair_title("eng-deu"), pair_title("src-aaa")
    ('English→German', 'S→A, generated languages')
    """
    return pair_name(pair) + ", generated languages" * ("src" in pair)


def beside_hub(pair: str) -> str:
    """The language of a directed pair that the other pairs of its corpus do not share.

    >>> beside_hub("zho-eng")
    'zho'
    """
    source, _, target = pair.partition("-")
    return source if target in HUBS else target


_ENDINGS = {
    "-fresh": "fresh seeds", "-seeds": "further seeds", "-half": "half of the text",
    "-alone": "single pairs", "-matched": "text-matched", "-equal-first": "equal-first",
    "-swapped": "weights swapped", "-small": "smallest sizes", "-more": "more seeds",
    "-rates": "trials of learning rates", "-wide": "wider", "-settled-middle": "long runs, p = 0.3",
    "-middle": "middle sizes", "-steady": "with decay", "-settled": "long runs",
    "-8m": "8M tokens", "-16m": "16M tokens", "-many2one": "two sources to one target",
    "-three": "three targets", "-five": "five targets", "-sim0": "similarity 0",
    "-sim025": "similarity 0.25", "-sim05": "similarity 0.5", "-sim075": "similarity 0.75",
    "-sim1": "similarity 1", "-main": "main condition", "-full": "full corpus",
    "-total": "old training counted", "-starts": "starts of new pieces",
    "-unsaid": "what is not said", "-noise": "footnote 10", "-schedule": "footnote 7",
    "-insertion": "§4.2", **{f"-table{n}": f"Table {n}" for n in (3, 4, 5, 6, 7, 11)},
}  # fmt: skip
"""Of names of cohorts, and what a page says for each."""
_BEGINNINGS = {
    "": "your own runs",  # which no declared cohort holds
    "conlang": "generated languages",
    "upgrade": "upgrade of generated languages",
    "webtech": "English→{German, French}",
    "webtech-en-defr": "English→{German, French}",
    "webtech-en-dezh": "English→{German, Chinese}",
    "webtech-dezh-en": "{German, Chinese}→English",
    "webtech-en-defrzh": "English→{German, French, Chinese}",
}


def cohort_name(cohort: str) -> str:
    """What a page calls a cohort.

    >>> cohort_name("webtech-en-dezh")
    'English→{German, Chinese}'
    >>> cohort_name("software25-table4-fresh")
    'software25, Table 4, fresh seeds'
    >>> cohort_name("conlang-settled-alone-half")
    'generated languages, long runs, single pairs, half of the text'
    """
    for ending, words in _ENDINGS.items():
        if cohort.endswith(ending):
            return f"{cohort_name(cohort.removesuffix(ending))}, {words}"
    if cohort.startswith("shared"):
        return f"{cohort_name(cohort.replace('shared', 'webtech'))}, the same English sentences"
    return _BEGINNINGS.get(cohort, cohort)


def setting_label(setting: str, pair: str) -> str:
    """Name a row of a chart by a claim's setting and the language beside the hub.

    >>> setting_label("En→{De,Zh}, in-domain", "eng-deu")
    'En→{De,Zh}: German'
    >>> setting_label("SlimPajama, language models of 122M to 2.7B parameters", "github")
    'SlimPajama: github'
    >>> setting_label("conlang, many-to-one", "aaa-src")
    'conlang, many-to-one: A'
    >>> setting_label("both ways", "deu-eng against eng-deu")
    'both ways: German'
    """
    pair = pair.partition(" ")[0]
    public = "models of" in setting  # whose name stands before the comma
    place = setting.partition(",")[0] if public else setting.removesuffix(", in-domain")
    name = language(beside_hub(pair)) if "-" in pair else pair
    return f"{place.replace('newstest21', 'news')}: {name.removeprefix('language ')}"


def span(values: Iterable[int]) -> str:
    """The least and the largest of some numbers; nothing of none.

    >>> span([7, 5, 12_000]), span([5, 5]), span([])
    ('5 to 12,000', '5', '')
    """
    known = sorted({*values})
    return " to ".join(f"{value:,}" for value in dict.fromkeys([*known[:1], *known[-1:]]))
