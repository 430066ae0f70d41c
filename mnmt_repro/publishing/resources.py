"""Find what a built page would fetch from another host, and formulas that it shows as source."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

_REMOTE = re.compile(r"^\s*(?:https?:|wss?:)?//", re.IGNORECASE)
_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$|\$[^$\n]*\\[a-zA-Z]+[^$\n]*\$")
_UNREAD = ("script", "style", "pre", "code", "title")  # whose text is no prose of the page
_SOURCES = {"script", "img", "iframe", "embed", "source", "audio", "video", "track", "input"}
_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "manifest"}


def remote_resources(html: Path) -> list[tuple[Path, str]]:
    """List the resources of other hosts that the pages and style sheets under `html` load.

    A link that a reader may follow is no resource; a script, style sheet, image, font or frame is.

    Returns
    -------
    list of (file, address)
        Empty for a book that works with the network off.
    """
    pages = sorted(html.rglob("*.html"))
    found = [(page, url) for page in pages for url in _Resources().read(page)]
    for sheet in sorted(html.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8", errors="replace")
        found += [(sheet, url) for url in _CSS.findall(text)]
    return found


def raw_formulas(html: Path) -> list[tuple[Path, str]]:
    """List the formulas under `html` that a reader would see as their TeX source.

    Returns
    -------
    list of (file, first words)
        Empty where every formula is typeset.
    """
    pages = sorted(html.rglob("*.html"))
    return [(page, " ".join(x.split())[:80]) for page in pages for x in _Text().read(page)]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = 0  # elements whose text is told apart from that of others

    def read(self, page: Path) -> list[str]:
        self.feed(page.read_text(encoding="utf-8"))
        return self.found


class _Resources(_Reader):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        urls = []
        if tag in _SOURCES:
            urls.append(values.get("src", ""))
            urls += [
                part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()
            ]
        if tag == "object":
            urls.append(values.get("data", ""))
        if tag == "video":
            urls.append(values.get("poster", ""))
        if tag == "link" and _LINKS & set(values.get("rel", "").lower().split()):
            urls.append(values.get("href", ""))
        self.found += [url for url in urls if _REMOTE.match(url)]
        self.found += _CSS.findall(values.get("style", ""))
        self.inside = int(tag == "style")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found += _CSS.findall(data)
            self.inside = 0


class _Text(_Reader):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside += tag in _UNREAD

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in _UNREAD

    def handle_data(self, data: str) -> None:
        if not self.inside and _FORMULA.search(data):
            self.found.append(data)
