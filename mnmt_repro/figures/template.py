"""HTML of what pages display, from the files in `templates`; values in it are escaped."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from jinja2 import PackageLoader

from mnmt_repro.templates import templates

_TEMPLATES = templates(PackageLoader("mnmt_repro.figures"), newline=False)


def render(template: str, **values: Any) -> str:
    """Fill in ``templates/<template>.html``."""
    return _TEMPLATES.get_template(f"{template}.html").render(values)


def in_base64(content: str | bytes) -> str:
    """Content as an address or a notebook carries it."""
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


_TEMPLATES.filters["base64"] = in_base64


@dataclass(frozen=True, kw_only=True)
class Html:
    """What a page displays: HTML, its words for a terminal, and perhaps a picture for print."""

    html: str
    words: str
    png: bytes = b""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        picture = {"image/png": in_base64(self.png)} if self.png else {}
        return {"text/html": self.html, **picture, "text/plain": self.words}
