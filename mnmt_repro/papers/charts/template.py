"""HTML of what pages display, from the files in `templates`; values in it are escaped."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from jinja2 import PackageLoader

from mnmt_repro.templates import templates

_TEMPLATES = templates(PackageLoader("mnmt_repro.papers.charts"), newline=False)


def render(template: str, **values: Any) -> str:
    """Fill in ``templates/<template>.html``."""
    return _TEMPLATES.get_template(f"{template}.html").render(values)


_TEMPLATES.filters["base64"] = lambda text: base64.b64encode(text.encode()).decode()


@dataclass(frozen=True, kw_only=True)
class Html:
    """What a page displays: HTML, and its words for a terminal."""

    html: str
    words: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.words}
