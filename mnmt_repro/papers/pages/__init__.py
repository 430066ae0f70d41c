"""The room of pages: notebooks in, a book that works with the network off out.

`notebooks` executes pages with papermill, `executed` decides which of them have changed, and `book`
builds the whole. `lessons` keeps pages that train models with their outputs. `offline` is the
Sphinx extension that serves every script and font from the book itself; `resources` checks that.
"""

from __future__ import annotations

from mnmt_repro.papers.pages.book import build_book, make_lessons
from mnmt_repro.papers.pages.notebooks import (
    PageError,
    declared_parameters,
    execute_page,
    execute_pages,
)
from mnmt_repro.papers.pages.resources import remote_resources

__all__ = [
    "PageError",
    "build_book",
    "declared_parameters",
    "execute_page",
    "execute_pages",
    "make_lessons",
    "remote_resources",
]
