"""JSON files that are written once and read whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnmt_repro.atomic import write_new
from mnmt_repro.errors import InputError


def write_once(path: Path, content: Mapping[str, Any], *, refusal: str) -> Path:
    """Write `content` as JSON, whole or not at all; writing the same again does nothing.

    Raises
    ------
    InputError
        With the path and `refusal`, when the file holds something else.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if not write_new(path, text.encode()) and path.read_text(encoding="utf-8") != text:
        raise InputError(f"{path}: {refusal}")
    return path


def read_json(path: Path) -> Any:
    """What a file of the store holds, not checked yet.

    Raises
    ------
    InputError
        When the file cannot be read, or is torn.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: not whole JSON (line {error.lineno}: {error.msg}); restore the file"
        ) from error
