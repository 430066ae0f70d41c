"""Text files as lines: plain, gzip or xz, strict UTF-8, and never half-read.

Everything a corpus is read from passes through `read_lines`. A file is read and unpacked whole
before its first line is handed out, so a file that is cut short gives one error and no lines.
"""

from __future__ import annotations

import errno
import lzma
import stat
import zlib
from pathlib import Path
from typing import Any

from mnmt_repro.errors import InputError

_XZ = b"\xfd7zXZ\x00"
_GZIP = b"\x1f\x8b"
SMALL, TIMES = 2**26, 100
"""Bytes that any file may unpack to, and times its own size that a larger one may."""


def _unpack(packed: bytes) -> bytes:
    """Unpack every stream of an xz or gzip file; no trailing byte is ignored.

    Raises
    ------
    OverflowError
        When there is more than text packs.
    """
    left, parts, rest = max(SMALL, TIMES * len(packed)), [], packed
    while rest:
        if packed.startswith(_XZ):
            stream: Any = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
        else:
            stream = zlib.decompressobj(wbits=31)
        parts.append(stream.decompress(rest, left))
        left -= len(parts[-1])
        if not left:
            raise OverflowError
        if not stream.eof:
            raise EOFError
        rest = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def read_whole(path: str | Path) -> bytes:
    """All bytes of a file or a pipe; `OSError` also for a device, which may never end."""
    mode = Path(path).stat().st_mode
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) and Path(path).name != "stdin":
        raise OSError(errno.ENODEV, "it is a device", str(path))
    return Path(path).read_bytes()


def read_packed(path: str | Path) -> bytes:
    """Return a file as it lies on the disk.

    Raises
    ------
    InputError
        If the file is absent or unreadable.
    """
    try:
        return read_whole(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def unpack(packed: bytes, path: str | Path) -> bytes:
    """Return the whole content of a file that may be gzip or xz.

    The first bytes say what the file is; an ending ``.gz`` or ``.xz`` that its content
    does not bear out is an error.

    Parameters
    ----------
    packed : bytes
        The file as it lies on the disk.
    path : str or Path
        Its name, for the ending and for errors.

    Raises
    ------
    InputError
        If the content is cut short, damaged, or packed in another way.
    """
    suffix = Path(path).suffix.lower()
    expected = {".xz": _XZ, ".gz": _GZIP}.get(suffix)
    if expected and not packed.startswith(expected):
        raise InputError(
            f"{path}: its name ends in {suffix}, its content is not {suffix[1:]}; rename or mend it"
        )
    try:
        if packed.startswith((_XZ, _GZIP)):
            return _unpack(packed)
    except OverflowError:
        why = f"unpacks to more than {TIMES} times its size; unpack it, and give the plain file"
        raise InputError(f"{path}: {why}") from None
    except EOFError:
        raise InputError(f"{path}: is cut short; fetch it again") from None
    except (lzma.LZMAError, zlib.error, OSError) as error:
        raise InputError(f"{path}: is damaged ({error}); fetch it again") from None
    return packed


def read_lines(path: str | Path) -> list[str]:
    r"""Return the lines of a text file, without their ends.

    Lines end in ``\n`` or ``\r\n`` only, so a sentence that holds U+2028 or a form feed stays
    whole. A byte order mark is dropped; the last line may lack its end.

    Parameters
    ----------
    path : str or Path
        UTF-8 text: plain, gzip or xz.

    Returns
    -------
    list of str
        One string a line; empty for an empty file.

    Raises
    ------
    InputError
        If the file cannot be read whole, is not UTF-8, or holds a NUL byte; the line is named.
    """
    return decode_lines(unpack(read_packed(path), path), path)


def decode_lines(data: bytes, name: str | Path) -> list[str]:
    r"""Decode unpacked bytes into lines; `name` is what an error calls the file (see `read_lines`).

    >>> decode_lines("Guten Tag\nBis bald\n".encode(), "greetings.de")
    ['Guten Tag', 'Bis bald']
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}: line {line}: not UTF-8 (byte 0x{data[error.start]:02x} at byte offset "
            f"{error.start}); give UTF-8 text, plain, .gz or .xz"
        ) from None
    nul = data.find(b"\0")
    if nul >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise InputError(f"{name}: line {line}: a NUL byte at byte offset {nul}; remove it")
    lines = text.removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines
