"""Misprints found in Paper A: where, what is printed, what we think is meant, and the evidence.

Evidence is computed wherever arithmetic can give it. Elsewhere one place of the paper is compared
with another. `errata()` lists the misprints, and `followed()` what looked like one and can stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from mnmt_repro.analysis.audit import appendix_a
from mnmt_repro.cohorts.grids import WEIGHTS
from mnmt_repro.errors import InputError

WMT19_FROM_ENGLISH = ("cs", "de", "fi", "gu", "kk", "lt", "ru", "zh")
"""Target languages of newstest2019 with English as the source; French was paired with German."""

KINDS = ("count", "caption", "equation", "text", "reference")
CERTAINTY = {
    "certain": "arithmetic or another place of the paper excludes what is printed",
    "very likely": "several things speak against it",
    "unresolved": "it cannot be as printed, and several readings are open",
    "wording": "it can be read as true, but misleads",
}


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """One misprint.

    Attributes
    ----------
    where : str
        Place in the paper.
    kind : str
        One of `KINDS`.
    printed, meant : str
        A few words or a number, and what we think should stand there.
    evidence : str
        In full sentences.
    certainty : str
        A key of `CERTAINTY`.
    """

    where: str
    kind: str
    printed: str
    meant: str
    evidence: str
    certainty: str

    def __post_init__(self) -> None:
        """Check kind and certainty."""
        if self.kind not in KINDS or self.certainty not in CERTAINTY:
            raise InputError(f"{self.where}: {self.kind!r}, {self.certainty!r}")


def errata() -> pd.DataFrame:
    """List every misprint, in the order of the paper.

    Returns
    -------
    DataFrame
        The attributes of `Erratum` as columns.
    """
    found = (
        _tandem(),
        _curves_of_figure_4(),
        _doubling(),
        _figure_8(),
        _duplicate_reference(),
        _appendix_a(),
        _newstest_french(),
        _into_english_french(),
        _derivation(),
        _figure_18(),
        _figure_19(),
        _figure_19_test_set(),
    )
    return pd.DataFrame([asdict(erratum) for erratum in found])


def as_list(found: pd.DataFrame) -> str:
    """One line a misprint, as Markdown, the most certain first.

    Parameters
    ----------
    found
        From `errata`.
    """
    parts = []
    for certainty, meaning in CERTAINTY.items():
        lines = [
            f"- **{row['where']}.** Printed: {row['printed']}. Meant: {row['meant']}."
            for row in found[found["certainty"] == certainty].to_dict("records")
        ]
        parts.append(f"**{certainty.capitalize()}** ({meaning}):\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


# Text and counts


def growth_steps() -> dict[str, int]:
    """Count how Appendix A's sizes grow from one to the next: in width, in depth, or in both.

    >>> growth_steps()
    {'both': 1, 'depth only': 3, 'width only': 3}
    """
    sizes = appendix_a()
    deeper = sizes["encoder_layers"].diff().iloc[1:] > 0
    wider = sizes["d_model"].diff().iloc[1:] > 0
    return {
        "both": int((deeper & wider).sum()),
        "depth only": int((deeper & ~wider).sum()),
        "width only": int((wider & ~deeper).sum()),
    }


def _tandem() -> Erratum:
    steps = growth_steps()
    return Erratum(
        where="§3.1, how models grow",
        kind="text",
        printed="width and layers increased “in tandem”",
        meant="encoder and decoder in step; width and depth in turns",
        evidence=(
            f"Appendix A has {sum(steps.values())} steps from one size to the next. "
            f"{steps['both']} increases both, {steps['depth only']} only the layers and "
            f"{steps['width only']} only the width. Encoder and decoder always have equally many "
            "layers."
        ),
        certainty="wording",
    )


def _curves_of_figure_4() -> Erratum:
    return Erratum(
        where="§3.2, on Figure 3",
        kind="text",
        printed="“Figure 4 curves”",
        meant="the curves of Figure 2",
        evidence=(
            "The paper subtracts a constant from losses over size. Figure 2 shows losses over "
            "size; Figure 4 shows coefficients over weights."
        ),
        certainty="certain",
    )


def doubling(alpha: float, beta: float, l_inf: float, n: float) -> tuple[float, float]:
    """Factor by which doubling the size changes the loss of Eq. 6, and its reducible part.

    >>> doubling(alpha=0.5, beta=10.0, l_inf=1.0, n=100.0)
    (0.8535533905932737, 0.7071067811865475)
    """
    small, large = beta * n**-alpha, beta * (2 * n) ** -alpha
    return (large + l_inf) / (small + l_inf), large / small


def _doubling() -> Erratum:
    alpha, l_inf = 0.3, 1.0
    whole, part = doubling(alpha, 1.0, l_inf, 1.0)  # reducible loss as large as the rest
    return Erratum(
        where="§3.2, what doubling the capacity does",
        kind="text",
        printed="its loss falls by the factor 1/2^α",
        meant="only its reducible loss, above L∞, falls by this factor",
        evidence=(
            f"Take Eq. 6 with α = {alpha:g} and half of the loss irreducible. Doubling multiplies "
            f"the reducible loss by {part:.3f} = 2^−{alpha:g}, and the loss by {whole:.3f}. The "
            "two agree only where L∞ = 0."
        ),
        certainty="certain",
    )


def _duplicate_reference() -> Erratum:
    return Erratum(
        where="References, Arivazhagan et al. 2019a and 2019b",
        kind="reference",
        printed="two entries",
        meant="one",
        evidence=(
            "Both have the same authors, title and arXiv number (1907.05019). §1 cites the first, "
            "and §3.4 the second."
        ),
        certainty="certain",
    )


def total_excess() -> pd.DataFrame:
    """Appendix A's totals less its own non-embedding counts and two tables of V × d.

    Returns
    -------
    DataFrame
        ``layers, d, total, expected, excess``: `expected` uses only the printed row itself.
    """
    sizes = appendix_a()
    expected = sizes["parameters_non_embedding"] + 2 * sizes["vocabulary"] * sizes["d_model"]
    return pd.DataFrame(
        {
            "layers": sizes["encoder_layers"],
            "d": sizes["d_model"],
            "total": sizes["parameters_total"],
            "expected": expected,
            "excess": sizes["parameters_total"] - expected,
        }
    )


def _appendix_a() -> Erratum:
    table = total_excess()
    wrong = table[table["excess"] != 0]
    d, total, expected, excess = (
        int(wrong[name].iloc[0]) for name in ("d", "total", "expected", "excess")
    )
    more = excess // d
    return Erratum(
        where=f"Appendix A, row of d = {d}, total",
        kind="count",
        printed=f"{total:,}",
        meant=f"{expected:,}",
        evidence=(
            f"In the other {len(table) - len(wrong)} rows the total is the non-embedding count "
            f"plus two tables of 128,000 × d. Here it is {excess:,} = {more} × {d} more, "
            f"as if each table had {128_000 + more // 2:,} rows."
        ),
        certainty="certain",
    )


# Captions


def _newstest_french() -> Erratum:
    return Erratum(
        where="Figures 9 and 10, captions",
        kind="caption",
        printed="En→{De, Fr}; French (right)",
        meant="En→{De, Zh}; Chinese (right)",
        evidence=(
            "From English, newstest2019 goes to "
            f"{', '.join(WMT19_FROM_ENGLISH)}, and not to French. Appendix B.1 is the "
            "out-of-domain counterpart of §3.2, while B.2 is the section on German and French. "
            "Figure 6 (left) and Figure 15 show cross-entropy on newstest2019, too, for "
            "En→{De, Zh}."
        ),
        certainty="very likely",
    )


def _figure_8() -> Erratum:
    return Erratum(
        where="Figure 8, caption, left panel",
        kind="caption",
        printed="positive correlations between ChrF and cross-entropy loss",
        meant="negative correlations, because chrF rises as the loss falls",
        evidence=(
            "Larger models have a lower loss (Figure 2) and a higher chrF (right panel). The two "
            "go opposite ways in our runs, too (claim A16). “Positive” may refer to quality, which "
            "rises as the loss falls."
        ),
        certainty="wording",
    )


def _into_english_french() -> Erratum:
    return Erratum(
        where="Figure 14, caption",
        kind="caption",
        printed="French (right) into English",
        meant="Chinese (right) into English",
        evidence=(
            "§3.1 names {De, Zh}→En as the only models into English. So do the heading of B.3 and "
            "Figures 13 and 17."
        ),
        certainty="certain",
    )


def _figure_18() -> Erratum:
    return Erratum(
        where="Figure 18, caption, left panel",
        kind="caption",
        printed="Equation 12",
        meant="Equation 13",
        evidence=(
            "The figure is in Appendix E, on the linear form, and its first sentence names "
            "Equations 11 and 13. Figure 7's caption has the same words with 12."
        ),
        certainty="certain",
    )


def _figure_19() -> Erratum:
    return Erratum(
        where="Figure 19, caption",
        kind="caption",
        printed="Figure 8 (right)",
        meant="Figure 19 (right)",
        evidence=(
            "The sentence is about BLEURT on newstest2019, and Figure 8 shows chrF in-domain. It "
            "repeats a sentence of §3.4 on Figure 8, with another metric."
        ),
        certainty="certain",
    )


def _figure_19_test_set() -> Erratum:
    return Erratum(
        where="Figure 19, right, and its caption",
        kind="caption",
        printed="En→{De, Fr} in BLEURT on newstest19",
        meant="either another French test set or models of En→{De, Zh}",
        evidence=(
            "A frontier needs scores of both pairs, and newstest2019 has no English–French. If the "
            "paper had another French newstest, our reading of Figures 9 and 10 would be less "
            "likely."
        ),
        certainty="unresolved",
    )


# Equations


def derivation(
    alpha: float, beta_one: float, beta_p: float, l_inf: float, n: float
) -> dict[str, float]:
    """Three losses of Appendix D: the pair's own, and at N_eff under weight 1 and under weight p.

    Eq. 8 wants the first two to be equal.

    >>> losses = derivation(alpha=0.5, beta_one=10.0, beta_p=20.0, l_inf=1.0, n=400.0)
    >>> {name: round(loss, 9) for name, loss in losses.items()}
    {'L(N; p)': 2.0, 'L(N_eff; 1)': 2.0, 'L(N_eff; p)': 3.0}
    """
    effective = (beta_one / beta_p) ** (1 / alpha) * n  # Eq. 9
    return {
        "L(N; p)": beta_p * n**-alpha + l_inf,
        "L(N_eff; 1)": beta_one * effective**-alpha + l_inf,
        "L(N_eff; p)": beta_p * effective**-alpha + l_inf,
    }


def _derivation() -> Erratum:
    losses = derivation(alpha=0.5, beta_one=10.0, beta_p=20.0, l_inf=1.0, n=400.0)
    values = ", ".join(f"{name} = {loss:g}" for name, loss in losses.items())
    return Erratum(
        where="Appendix D, last line",
        kind="equation",
        printed="L(N_eff; p)",
        meant="L(N_eff; 1)",
        evidence=(
            "Eq. 8 defines N_eff by the loss of the single pair, and the line before has β at p = "
            f"1. With α = 0.5, β(1) = 10, β(p) = 20, L∞ = 1 and N = 400: {values}."
        ),
        certainty="certain",
    )


# What looked like a misprint


def followed(steps: float = 1e6, batch_tokens: float = 5e5) -> pd.DataFrame:
    """Counts and statements of Paper A that were checked and can stand.

    Parameters
    ----------
    steps, batch_tokens
        Of the paper's larger models.

    Returns
    -------
    DataFrame
        ``where, stated, recomputed, remark``.
    """
    weights, sizes, cohorts = len(WEIGHTS), len(appendix_a()), 3
    fitted = sum(p > 0 for p in WEIGHTS)
    models = weights * sizes * cohorts - sizes  # English→German alone is in two cohorts
    sentence = {p: p * steps * batch_tokens / 600e6 for p in (0.05, 0.1)}
    rows: Sequence[tuple[str, str, str, str]] = (
        (
            "§3.2, parameters of the joint law and of separate laws",
            "10 and 24 a pair",
            f"{fitted} + 2 = {fitted + 2} and {fitted} × 3 = {fitted * 3}",
            "p = 0 is zero-shot and has no law.",
        ),
        (
            "§1, number of models",
            "over 200",
            f"{weights} × {sizes} × {cohorts} − {sizes} = {models}",
            "Every size in every cohort. Figure 14 states that fewer were used into English, and "
            "Appendix H adds three-pair models.",
        ),
        (
            "Appendix G, weights below 0.1 see less than an epoch in 1M steps",
            "less than 600M sentences",
            f"p = 0.05: true above {sentence[0.05]:.0f} tokens a sentence; p = 0.1: above "
            f"{sentence[0.1]:.0f}",
            "The paper gives neither the length of a sentence nor whether a batch counts both "
            "sides. 0.05 is the only weight below 0.1.",
        ),
        (
            "Appendix G, what the correction touches",
            "two models per scenario",
            f"the 2 largest of {sizes} sizes at p = 0.05 of one pair, or one size for both pairs: "
            "2; both pairs and sizes: 4 a cohort",
            "The paper defines neither a scenario nor how many sizes are “largest”. We correct the "
            "two largest sizes of each pair.",
        ),
        (
            "§3.4 and Appendix F, the law fitted to chrF and BLEURT",
            "Equation 7",
            "–",
            "Quality rises with size, so Eq. 7 needs the opposite sign. The function of Eq. 12 "
            "goes into Eq. 11. The two equations are the same law otherwise.",
        ),
    )
    return pd.DataFrame(rows, columns=["where", "stated", "recomputed", "remark"])
