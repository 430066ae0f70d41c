"""How much a built page asks of its reader: visible words, sentences, weight, first chart.

Run as a script to see a page: `python tests/reading.py _build/html/book/paper-a/scaling-laws.html`.
"""

from __future__ import annotations

import re
import statistics
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"img", "br", "hr", "input", "meta", "link", "source", "wbr", "col"}
_UNREAD = {"script", "style", "pre", "svg", "button", "nav", "mjx-container"}
_UNREAD_CLASSES = {
    "mnmt-spoken",
    "headerlink",
    "mnmt-provenance",
    "mnmt-download",
    "prev-next-footer",
}
_FOLDED_CLASSES = {"dropdown", "toggle"}
_BLOCKS = {"p", "li", "dd", "dt", "figcaption", "blockquote", "div", "summary"}
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"“(\[])")
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Reading:
    """Measures of one page; folded text is what shows only after a click."""

    words: int
    folded: int
    sentences: tuple[str, ...] = field(repr=False)
    bytes: int

    @property
    def lengths(self) -> list[int]:
        """Words of each visible sentence."""
        return [_count(sentence) for sentence in self.sentences]

    @property
    def median(self) -> float:
        """Words of the middle sentence."""
        return statistics.median(self.lengths or [0])

    @property
    def longest(self) -> int:
        """Words of the longest sentence."""
        return max(self.lengths, default=0)


def _count(text: str) -> int:
    return sum(bool(_WORD.search(word)) for word in text.split())


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[tuple[str, str]] = []  # tag, and what it does to what is inside
        self.visible: list[str] = []
        self.folded: list[str] = []
        self.prose: list[str] = [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        values = {name: value or "" for name, value in attrs}
        classes = set(values.get("class", "").split())
        kind = ""
        if tag == "article":
            kind = "article"
        elif tag in _UNREAD or classes & _UNREAD_CLASSES:
            kind = "unread"
        elif (tag == "details" and "open" not in values) or classes & _FOLDED_CLASSES:
            kind = "folded"
        elif tag == "summary" and self.stack and self.stack[-1][1] == "folded":
            kind = "summary"
        elif tag in ("table", "h1", "h2", "h3", "h4"):
            kind = "no prose"
        elif "math" in classes:
            kind = "formula"
        self.stack.append((tag, kind))
        if tag in _BLOCKS:
            self.prose.append("")

    def handle_endtag(self, tag: str) -> None:
        if any(opened == tag for opened, _ in self.stack):
            while self.stack.pop()[0] != tag:
                pass
        if tag in _BLOCKS:
            self.prose.append("")

    def handle_data(self, data: str) -> None:
        kinds = [kind for _, kind in self.stack]
        if "article" not in kinds or "unread" in kinds:
            return
        if "formula" in kinds:
            data = " x "
        folded = kinds.count("folded") - ("summary" in kinds)
        (self.folded if folded > 0 else self.visible).append(data)
        if folded <= 0 and "no prose" not in kinds:
            self.prose[-1] += data


def read(page: Path) -> Reading:
    """Measure a built page."""
    text = page.read_text(encoding="utf-8")
    parser = _Page()
    parser.feed(text)
    prose = [" ".join(block.split()) for block in parser.prose]
    sentences = [s for block in prose if block for s in _SENTENCE.split(block) if _count(s)]
    return Reading(
        words=_count(" ".join(parser.visible)),
        folded=_count(" ".join(parser.folded)),
        sentences=tuple(sentences),
        bytes=len(text.encode()),
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        found = read(Path(name))
        print(f"{name}: {found}, median {found.median}, longest {found.longest}")
        for sentence in found.sentences:
            if _count(sentence) > 28:
                print("   long:", sentence)
