"""Find what a built page would fetch from another host, and formulas that it shows as source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_REMOTE = re.compile(r"^\s*(?:https?:|wss?:)?//", re.IGNORECASE)
_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$|\$[^$\n]*\\[a-zA-Z]+[^$\n]*\$")
_UNREAD = ("script", "style", "pre", "code", "title")  # whose text is no prose of the page
_SOURCES = {"script", "img", "iframe", "embed", "source", "audio", "video", "track", "input"}
_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "manifest"}


def remote_resources(html: Path, pages: list[Path] | None = None) -> list[tuple[Path, str]]:
    """List the resources of other hosts that pages and style sheets load.

    The pages are all those under `html`, unless some are named; the style sheets are all.

    A link that a reader may follow is no resource; a script, style sheet, image, font or frame is.

    Returns
    -------
    list of (file, address)
        Empty for a book that works with the network off.
    """
    remote = [(page, url) for page, read in _pages(html, pages) for url in read.remote]
    for sheet in sorted(html.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8", errors="replace")
        remote += [(sheet, url) for url in _CSS.findall(text)]
    return remote


def raw_formulas(html: Path, pages: list[Path] | None = None) -> list[tuple[Path, str]]:
    """List the formulas that a reader would see as their TeX source, in pages as above.

    Returns
    -------
    list of (file, first words)
        Empty where every formula is typeset.
    """
    return [
        (page, " ".join(x.split())[:80])
        for page, read in _pages(html, pages)
        for x in read.formulas
    ]


def _pages(html: Path, pages: list[Path] | None) -> Iterator[tuple[Path, _Page]]:
    for page in sorted(html.rglob("*.html")) if pages is None else pages:
        yield page, _Page(page.read_text(encoding="utf-8"))


class _Page(HTMLParser):
    """The addresses of other hosts that a page loads, and its texts with a formula's source."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.remote: list[str] = []
        self.formulas: list[str] = []
        self._unread = 0  # elements around the text whose text is no prose
        self._style = False
        self.feed(content)

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
        self.remote += [url for url in urls if _REMOTE.match(url)]
        self.remote += _CSS.findall(values.get("style", ""))
        self._style = tag == "style"
        self._unread += tag in _UNREAD

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in _UNREAD

    def handle_data(self, data: str) -> None:
        if self._style:
            self.remote += _CSS.findall(data)
            self._style = False
        if not self._unread and _FORMULA.search(data):
            self.formulas.append(data)
