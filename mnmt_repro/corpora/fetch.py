"""Multi30k from its public repository: downloaded once, resumed when cut, checked by SHA-256.

`pooch` keeps the cache, retries and compares the hash before a file gets its name. `resume` is the
downloader that it calls, which goes on where a broken download stopped.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from mnmt_repro.corpora.registry import CorpusFile, locate
from mnmt_repro.errors import InputError
from mnmt_repro.repository import cache_root

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
_CHUNK = 1 << 12  # bytes; what a broken connection loses at most


def resume(url: str, output: str | Path, pooch: Any = None, *, timeout: float = 30.0) -> None:
    """Download `url` to `output`, going on from a part that an earlier call left behind.

    A download that breaks leaves what it has beside `output`, under the name at the end of `url`
    with ``.part`` added. The next one takes that file over by renaming it, so two processes never
    write to the same one. A progress bar is shown on a terminal. The signature is that of a
    `pooch` downloader.

    Parameters
    ----------
    url : str
        What to fetch, by HTTP or HTTPS.
    output : str or Path
        Where to put it.
    pooch : object
        Given by `pooch`; not used.
    timeout : float
        Seconds without a byte after which the connection counts as broken.

    Raises
    ------
    requests.exceptions.RequestException
        If the server cannot be reached, refuses, or closes the connection early.
    """
    output = Path(output)
    part = output.with_name(url.rpartition("/")[2] + ".part")
    with contextlib.suppress(FileNotFoundError):
        part.replace(output)
    try:
        _append(url, output, timeout)
    except BaseException:
        if output.exists() and output.stat().st_size:
            output.replace(part)
        raise


def _append(url: str, output: Path, timeout: float) -> None:
    """Fetch what `output` lacks of `url`, or all of it where the server cannot send a range."""
    import requests
    from tqdm import tqdm

    done = output.stat().st_size if output.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            output.unlink()  # what there is cannot be the beginning of the file
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            done = 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        name = url.rpartition("/")[2]
        bar = tqdm(desc=name, total=total, initial=done, unit="B", unit_scale=True, disable=None)
        with bar, output.open("ab" if done else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    size = output.stat().st_size
    if total is not None and size < total:
        raise requests.exceptions.ConnectionError(f"connection closed at {size} of {total} bytes")


def obtain(file: CorpusFile, *, base_url: str = MULTI30K_URL, retries: int = 3) -> Path:
    """Return the path of a Multi30k file, downloading it where it is not there yet.

    Looked for below ``MNMT_REPRO_DATA`` first, then in the cache (`registry.cache_root`), where a
    copy with another SHA-256 than its card is replaced.

    Parameters
    ----------
    file : CorpusFile
        From the card of ``multi30k``.
    base_url : str
        Folder of the files.
    retries : int
        How often to try again after the first failure; the pauses grow by a second each.

    Returns
    -------
    Path
        A file whose SHA-256 was compared with the card when it was downloaded.

    Raises
    ------
    InputError
        If it cannot be downloaded; what to do instead is told. Nothing is left under the file's
        name.
    """
    path = locate(file)
    folder = cache_root() / Path(file.path).parent
    if path is not None and path.parent != folder:
        return path
    try:
        return download(base_url, Path(file.path).name, file.sha256, folder, retries=retries)
    except InputError as error:
        raise InputError(
            f"{file.path}: {error}, or set MNMT_REPRO_DATA to a folder that holds {file.path}, or "
            "set MNMT_REPRO_CACHE to one that can be written to"
        ) from error


def download(base_url: str, name: str, sha256: str, folder: Path, *, retries: int = 3) -> Path:
    """Return ``folder/name``, downloaded from `base_url` where it is not there yet.

    Parameters
    ----------
    base_url : str
        Ends with a slash.
    sha256 : str
        Of the file; a copy with another one is replaced.

    Raises
    ------
    InputError
        If it cannot be downloaded, with the remedy. Nothing is left under the file's name.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(
        path=folder,
        base_url=base_url,
        registry={name: f"sha256:{sha256}"},
        retry_if_failed=retries,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Path(store.fetch(name, downloader=resume))
    except requests.exceptions.RequestException as error:
        reason = f"cannot be downloaded from {base_url} ({_short(error)})"
    except ValueError as error:
        reason = f"what {base_url} sends has another SHA-256 than expected ({_short(error)})"
    except OSError as error:
        raise InputError(
            f"cannot be kept in {folder} ({error.strerror}); name another folder"
        ) from error
    raise InputError(
        f"{reason}; connect to the network and try again, or put the file into {folder} yourself"
    )


def _short(error: Exception) -> str:
    """Return the kind of an error and the beginning of its text, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}{'…' if len(text) > 160 else ''}"
