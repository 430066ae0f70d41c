"""The badge of a verdict, shown beside figures and in tables."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mnmt_repro.errors import InputError

# A verdict's sign says it without colour; each colour has a contrast of at least 4.5 to white.
STYLE: dict[str, tuple[str, str]] = {
    "reproduced": ("✓", "#00694e"),
    "direction only": ("↗", "#0b62a4"),
    "not reproduced": ("✗", "#a8360b"),
    "undecided here": ("?", "#5c6670"),
    "inconclusive": ("○", "#5c6670"),  # of a published cell, or of a rule by itself
    "out of reach here": ("–", "#6b4a86"),
    "no rows yet": ("…", "#5c6670"),
}
_SAID = {"no rows yet": "not enough runs yet"}  # the rest are said as they are named


def typeset(text: str) -> str:
    """Write minus signs and per cents as print does: −2.1 and 4 %, and not -2.1 and 4%.

    >>> typeset("-2.1 to 3% (Mt25-v1, 0-1)").replace(chr(160), "_")
    '−2.1 to 3_% (Mt25-v1, 0-1)'
    """
    return re.sub(r"(?<=\d) ?%", "\u00a0%", re.sub(r"(?<![\w)])-(?=\d)", "−", text))


def said(verdict: str) -> str:
    """Say a verdict to a reader, who need not know the name of its state.

    >>> said("reproduced"), said("no rows yet")
    ('reproduced', 'not enough runs yet')
    """
    return _SAID.get(verdict, verdict)


def told(verdict: Mapping[str, Any]) -> str:
    """Say the verdict of a claim or of a setting, and whether its rule came after the rows.

    >>> told({"verdict": "reproduced", "post_hoc": True})
    'reproduced, post hoc'
    """
    return said(verdict["verdict"]) + ", post hoc" * bool(verdict["post_hoc"])


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
        return f"{STYLE[self.verdict][0]} {self.text or said(self.verdict)}"

    def to_html(self) -> str:
        """Write the badge as HTML."""
        tag, link = ("a", f' href="{html.escape(self.href)}"') if self.href else ("span", "")
        colour = STYLE[self.verdict][1]
        title = f' title="{html.escape(self.title)}"' if self.title else ""
        spoken = f'<span class="mnmt-spoken">. {html.escape(self.title)}</span>' * bool(self.title)
        return (
            f'<{tag} class="mnmt-badge" data-verdict="{self.verdict}" '
            f'style="background-color:{colour}"{link}{title}>{html.escape(self.label)}{spoken}</{tag}>'
        )

    def __str__(self) -> str:
        return self.label

    __html__ = _repr_html_ = to_html
