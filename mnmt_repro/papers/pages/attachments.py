"""What built pages carry with them, as files of their own: downloads and still charts.

A notebook's output holds its CSV, its charts as images and the identities of its runs inside the
page. In the book they become files beside it, so that a page stays small and quick to open.
"""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

_FOLDER = "_attached"
_DOWNLOAD = re.compile(
    r'download="(?P<name>[\w.-]+)" href="data:[\w/+.-]+;charset=utf-8;base64,(?P<content>[\w+/=]*)"'
)
_STILL = re.compile(
    r'data-name="(?P<name>[\w-]+)" src="data:image/svg\+xml;base64,(?P<content>[\w+/=]*)"'
)


def attach_files(html: Path, pages: Iterable[Path]) -> None:
    """Move what `pages` under `html` carry into files.

    The links stay relative, so that the book can be read from a folder.
    """
    for page in pages:
        _attach(page, html)


def _attach(page: Path, html: Path) -> None:
    inside = page.relative_to(html).with_suffix("")
    folder = html / _FOLDER / inside
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier build
    text = page.read_text(encoding="utf-8")
    if ";base64," not in text:
        return
    way = "../" * (len(inside.parts) - 1) + f"{_FOLDER}/{inside.as_posix()}"

    def write(name: str, content: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(base64.b64decode(content))
        return f"{way}/{name}"

    def download(link: re.Match[str]) -> str:
        return f'download="{link["name"]}" href="{write(link["name"], link["content"])}"'

    def still(link: re.Match[str]) -> str:
        return f'src="{write(link["name"] + ".svg", link["content"])}"'

    page.write_text(_STILL.sub(still, _DOWNLOAD.sub(download, text)), encoding="utf-8")
