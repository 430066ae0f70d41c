"""HTML of what pages display, from the files in `templates`; values in it are escaped."""

from __future__ import annotations

import base64
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
