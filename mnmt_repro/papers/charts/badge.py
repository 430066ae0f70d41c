"""The badge of a verdict, shown beside figures and in tables."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from mnmt_repro.errors import InputError

NOT_MEASURED = "not measured yet"
"""What pages call an undecided verdict without a value; see `verdicts.shown_verdict`."""
# A verdict's sign says it without colour; each colour has a contrast of at least 4.5 to white.
STYLE: dict[str, tuple[str, str]] = {
    "reproduced": ("✓", "#00694e"),
    "not reproduced": ("✗", "#a8360b"),
    "undecided": ("?", "#5c6670"),
    NOT_MEASURED: ("…", "#0b5394"),
    "out of reach": ("–", "#6b4a86"),
}


def typeset(text: str) -> str:
    """Write minus signs and per cents as print does: −2.1 and 4 %, and not -2.1 and 4%.

    >>> typeset("-2.1 to 3% (Mt25-v1, 0-1)").replace(chr(160), "_")
    '−2.1 to 3_% (Mt25-v1, 0-1)'
    """
    return re.sub(r"(?<=\d) ?%", "\u00a0%", re.sub(r"(?<![\w)])-(?=\d)", "−", text))


@dataclass(frozen=True, kw_only=True)
class Badge:
    """The verdict shown beside a figure.

    Parameters
    ----------
    verdict
        One of the verdicts of `STYLE`; it gives the sign and the colour.
    text
        What the badge says, such as ``"A2 reproduced"``; default the verdict itself.
    title
        One sentence with the measured number and the rule; shown on hovering and read aloud.
    href
        Where the badge leads, relative to the page; empty for nowhere.
    about
        The claim in a few words, for a list of badges.
    """

    verdict: str
    text: str = ""
    title: str = ""
    href: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        """Check the verdict."""
        if self.verdict not in STYLE:
            raise InputError(f"verdict {self.verdict!r}: use one of {', '.join(STYLE)}")

    @property
    def label(self) -> str:
        """The badge in plain text, its sign included."""
        return f"{STYLE[self.verdict][0]} {self.text or self.verdict}"

    def to_html(self) -> str:
        """Write the badge as HTML."""
        label, title, there = map(html.escape, (self.label, self.title, self.href))
        tag, link = ("a", f' href="{there}"') if there else ("span", ' role="img"')
        said = f"{label}. {title}" if title else label
        # JupyterLab has no style sheet of ours.
        style = f"background-color:{STYLE[self.verdict][1]};color:#fff;padding:0 0.7em"
        return (
            f'<{tag} class="mnmt-badge" data-verdict="{self.verdict}" style="{style}"{link} '
            f'title="{title}" aria-label="{said}">{label}</{tag}>'
        )

    def __str__(self) -> str:
        return self.label

    __html__ = _repr_html_ = to_html
