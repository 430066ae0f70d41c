"""The publishing room: notebooks in, a book that works with the network off out.

`notebooks` executes pages with papermill, `book` builds the whole, `offline` is the Sphinx
extension that serves every script and font from the book itself, `resources` proves that it does.
`stored` keeps the outputs of pages that train models, for a book that is built without torch.
"""

from __future__ import annotations

from mnmt_repro.papers.pages.book import build_book, store_lessons, watch_book
from mnmt_repro.papers.pages.notebooks import PageError, declared_parameters, execute_pages
from mnmt_repro.papers.pages.resources import remote_resources

__all__ = [
    "PageError",
    "build_book",
    "declared_parameters",
    "execute_pages",
    "remote_resources",
    "store_lessons",
    "watch_book",
]
