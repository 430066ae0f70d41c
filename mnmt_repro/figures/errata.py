"""Slips found in Paper A: where, what is printed, what we think is meant, and the evidence.

Evidence is computed wherever arithmetic can give it; the rest compares one place of the paper with
another. `errata()` lists the slips, `followed()` what looked like one and is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from mnmt_repro.errors import InputError
from mnmt_repro.experiments.cohorts import WEIGHTS
from mnmt_repro.figures.audit import appendix_a

WMT19_FROM_ENGLISH = ("cs", "de", "fi", "gu", "kk", "lt", "ru", "zh")
"""Target languages of newstest2019 with English as the source; French was paired with German."""

KINDS = ("count", "caption", "equation", "text", "reference")
CERTAINTY = ("certain", "very likely", "unresolved", "wording")


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """One slip.

    Attributes
    ----------
    where : str
        Place in the paper.
    kind : str
        One of `KINDS`.
    printed, meant : str
        A few words or a number; and what we think should stand there.
    evidence : str
    certainty : str
        ``"certain"`` when another place of the paper or arithmetic excludes what is printed,
        ``"very likely"`` when several things speak against it, ``"unresolved"`` when it cannot be
        as printed but several readings are open, ``"wording"`` when it can be read
        as true but says less, or more, than is meant.
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
    """List every slip, in the order of the paper.

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
            f"of the {sum(steps.values())} steps between Appendix A's sizes {steps['both']} "
            f"increases both, {steps['depth only']} only the layers and {steps['width only']} only "
            "the width; encoder and decoder always have equally many layers"
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
            "a constant is subtracted from losses over size; those are in Figure 2, while Figure 4 "
            "has coefficients over weights"
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
        meant="its reducible loss, above L∞, falls to 2^−α of what it was",
        evidence=(
            f"by Eq. 6 at α = {alpha:g}, with half of the loss irreducible, doubling multiplies "
            f"the reducible loss by {part:.3f} = 2^−{alpha:g} and the loss by {whole:.3f}; the two "
            "agree only where L∞ = 0"
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
            "same authors, title and arXiv number (1907.05019) in both; §1 cites the one, §3.4 the "
            "other"
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
            f"in the other {len(table) - len(wrong)} rows the total is the non-embedding count "
            f"plus two tables of 128,000 × d; here it is {excess:,} = {more} × {d} more, "
            f"as if each table had {128_000 + more // 2:,} rows"
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
            "newstest2019 has no English–French: from English it goes to "
            f"{', '.join(WMT19_FROM_ENGLISH)}; Appendix B.1 holds the out-of-domain counterpart of "
            "§3.2, B.2 is the section of German and French; and what else the paper shows of "
            "cross-entropy on newstest2019, Figure 6 left and Figure 15, is of En→{De, Zh}"
        ),
        certainty="very likely",
    )


def _figure_8() -> Erratum:
    return Erratum(
        where="Figure 8, caption, left panel",
        kind="caption",
        printed="positive correlations between ChrF and cross-entropy loss",
        meant="negative ones: the lower the loss, the higher chrF",
        evidence=(
            "larger models have the lower loss (Figure 2) and the higher chrF (the law of the "
            "right panel rises with size), so the two go opposite ways, as in our runs (claim "
            "A16); “positive” is true of qualities, of which the loss is the reverse"
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
            "§3.1 names {De, Zh}→En as the only models into English; the heading of B.3 and "
            "Figures 13 and 17 say so too"
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
            "the figure stands in Appendix E, on the linear form, and its own first sentence names "
            "Equations 11 and 13; Figure 7's caption has the same words with 12"
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
            "the sentence is about BLEURT on newstest2019, and Figure 8 shows chrF in-domain; it "
            "repeats a sentence of §3.4 on Figure 8 with the metric changed"
        ),
        certainty="certain",
    )


def _figure_19_test_set() -> Erratum:
    return Erratum(
        where="Figure 19, right, and its caption",
        kind="caption",
        printed="En→{De, Fr} in BLEURT on newstest19",
        meant="not said: another French test set, or models of En→{De, Zh}",
        evidence=(
            "a frontier needs scores of both pairs, and newstest2019 has no English–French (as "
            "above); the left panel, of German alone, does exist. If the paper had a French "
            "newstest of its own, this speaks against the reading of Figures 9 and 10 above"
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
            "Eq. 8 defines N_eff by the loss of the single pair, and the line before has β of p = "
            f"1; with α = 0.5, β(1) = 10, β(p) = 20, L∞ = 1 and N = 400: {values}"
        ),
        certainty="certain",
    )


# What looked like a slip


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
            "p = 0 is zero-shot and has no law",
        ),
        (
            "§1, number of models",
            "over 200",
            f"{weights} × {sizes} × {cohorts} − {sizes} = {models}",
            "with every size in every cohort; Figure 14 says that fewer were used into English, "
            "Appendix H adds three-pair models",
        ),
        (
            "Appendix G, weights below 0.1 see less than an epoch in 1M steps",
            "less than 600M sentences",
            f"p = 0.05: true above {sentence[0.05]:.0f} tokens a sentence; p = 0.1: above "
            f"{sentence[0.1]:.0f}",
            "the length of a sentence is not given, nor whether a batch counts both sides; 0.05 is "
            "the only weight below 0.1",
        ),
        (
            "Appendix G, what the correction touches",
            "two models per scenario",
            f"the 2 largest of {sizes} sizes at p = 0.05 of one pair, or one size for both pairs: "
            "2; both pairs and sizes: 4 a cohort",
            "what a scenario is, and how many sizes are “largest”, is not said; we correct both "
            "largest sizes for either pair",
        ),
        (
            "§3.4 and Appendix F, the law fitted to chrF and BLEURT",
            "Equation 7",
            "–",
            "needs the sign of Eq. 7 turned round, since quality rises with size, and Eq. 11 to "
            "hold the function of Eq. 12; the two are the same law otherwise",
        ),
    )
    return pd.DataFrame(rows, columns=["where", "stated", "recomputed", "remark"])
