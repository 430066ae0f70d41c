"""Puts results, claims and pages into a wheel as one file, and a README that any site can show."""

from __future__ import annotations

import lzma
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CARRIED = ("data", "book", "_config.yml", "_toc.yml", "CITATION.cff")
"""What `mnmt_repro.repository.ROOT` must hold beside the package."""


class CustomBuildHook(BuildHookInterface):
    """Adds `mnmt_repro/companion.tar.xz`, the files of `CARRIED` that git knows."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the archive before a wheel is built; an editable install reads the checkout."""
        if version == "editable":
            return
        root = Path(self.root)
        self._scratch = tempfile.TemporaryDirectory()  # `dist/` holds only distributions
        archive = Path(self._scratch.name) / "companion.tar.xz"
        with tarfile.open(archive, "w:xz", preset=9 | lzma.PRESET_EXTREME) as file:
            for path in _files(root):
                info = file.gettarinfo(root / path, arcname=path)
                info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
                with (root / path).open("rb") as content:
                    file.addfile(info, content)
        build_data["force_include"][str(archive)] = "mnmt_repro/companion.tar.xz"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the archive, which the wheel now holds."""
        if version != "editable":
            self._scratch.cleanup()


class CustomMetadataHook(MetadataHookInterface):
    """Takes the README for the page of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_files(text)}


def without_files(text: str) -> str:
    """Leave pictures, comments and links to files out of Markdown, for a page without the files."""
    text = re.sub(r"(!\[[^\]]*\]\([^)]*\)|<!--.*?-->)\n+", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]]*)\]\((?!https?://)[^)]*\)", r"\1", text)


def _files(root: Path) -> list[str]:
    """Files to carry, in order; those that git knows, or all where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", *CARRIED], capture_output=True, text=True
    )
    if listed.returncode == 0 and listed.stdout:
        return sorted(filter(None, listed.stdout.split("\0")))
    found = [path for name in CARRIED for path in [root / name, *(root / name).rglob("*")]]
    return sorted(str(path.relative_to(root)) for path in found if path.is_file())
