"""How pages name languages, language pairs and cohorts."""

from __future__ import annotations

LANGUAGES = {
    "eng": "English",
    "deu": "German",
    "fra": "French",
    "zho": "Chinese",
    "src": "language S",
    "aaa": "language A",
    "bbb": "language B",
}


def language(code: str) -> str:
    """Name of a language, or its code where we have none.

    >>> language("deu"), language("xyz")
    ('German', 'xyz')
    """
    return LANGUAGES.get(code, code)


def pair_name(pair: str) -> str:
    """Name of a directed language pair.

    >>> pair_name("eng-deu")
    'English→German'
    """
    source, _, target = pair.partition("-")
    return f"{language(source)}→{language(target)}"


def cohort_name(cohort: str) -> str:
    """What a page calls a cohort.

    >>> cohort_name("webtech-en-dezh")
    'English→{German, Chinese}'
    """
    return {
        "webtech-en-dezh": "English→{German, Chinese}",
        "webtech-en-defr": "English→{German, French}",
        "webtech-dezh-en": "{German, Chinese}→English",
        "conlang-sim0": "conlang, two unrelated targets",
        "conlang-sim1": "conlang, two related targets",
        "conlang-many2one": "conlang, two sources to one target",
    }.get(cohort, cohort)
