"""How pages name languages, language pairs and cohorts."""

from __future__ import annotations

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
    "-rates": "trials of learning rates", "-wide": "wider",
}  # fmt: skip
"""Of names of cohorts, and what a page says for each."""


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
    if "-steady-sim" in cohort:
        return f"{cohort_name(cohort.replace('-steady', ''))}, with decay"
    return {
        "": "your own runs",  # which no declared cohort holds
        "webtech-en-dezh": "English→{German, Chinese}",
        "webtech-en-defr": "English→{German, French}",
        "webtech-dezh-en": "{German, Chinese}→English",
        "webtech-en-dezh-8m": "English→{German, Chinese}, 8M tokens",
        "webtech-en-dezh-16m": "English→{German, Chinese}, 16M tokens",
        "webtech-en-defrzh": "English→{German, French, Chinese}",
        "shared-en-dezh": "English→{German, Chinese}, the same English sentences",
        "shared-en-defr": "English→{German, French}, the same English sentences",
        "shared-dezh-en": "{German, Chinese}→English, the same English sentences",
        "conlang-sim0": "generated languages, two unrelated targets",
        "conlang-sim025": "generated languages, two targets of similarity 0.25",
        "conlang-sim05": "generated languages, two targets of similarity 0.5",
        "conlang-sim075": "generated languages, two targets of similarity 0.75",
        "conlang-sim1": "generated languages, two related targets",
        "conlang-many2one": "generated languages, two sources to one target",
        "conlang-three": "generated languages, three unrelated targets",
        "conlang-five": "generated languages, five unrelated targets",
        "webtech-steady": "English→{German, French}, with decay",
        "webtech-settled": "English→{German, French}, long runs",
        "conlang-steady": "generated languages, with decay",
        "conlang-steady-middle": "generated languages, with decay, middle sizes",
        "conlang-settled": "generated languages, long runs",
        "conlang-settled-middle": "generated languages, long runs, p = 0.3",
        "conlang-settled-many2one": "generated languages into one, long runs",
        "conlang-steady-three": "generated languages, three targets, with decay",
        "conlang-steady-five": "generated languages, five targets, with decay",
        "conlang-steady-many2one": "generated languages into one, with decay",
        "software25-main": "software25, main condition",
        "software25-full": "software25, full corpus",
        "software25-total": "software25, old training counted",
        "software25-settled": "software25, long runs",
        "software25-starts": "software25, starts of new pieces",
        **{f"software25-table{n}": f"software25, Table {n}" for n in (3, 4, 5, 6, 7, 11)},
        "software25-unsaid": "software25, what is not said",
        "software25-noise": "software25, footnote 10",
        "software25-schedule": "software25, footnote 7",
        "software25-insertion": "software25, §4.2",
        "upgrade-sim0": "upgrade of generated languages, similarity 0",
        "upgrade-sim05": "upgrade of generated languages, similarity 0.5",
        "upgrade-sim1": "upgrade of generated languages, similarity 1",
    }.get(cohort, cohort)


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
