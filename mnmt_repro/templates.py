"""Templates that are filled in as HTML or Markdown: those of pages, of reports and of charts."""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, StrictUndefined


def templates(loader: BaseLoader, *, escape: bool = True, newline: bool = True) -> Environment:
    """Templates in which a name without a value is a fault.

    Parameters
    ----------
    loader
        Where they lie.
    escape
        Whether values are escaped, as in HTML.
    newline
        Whether the newline at the end of a template is kept.
    """
    return Environment(
        loader=loader,
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=newline,
    )
