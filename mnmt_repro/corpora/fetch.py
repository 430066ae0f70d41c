"""Multi30k from its public repository: downloaded once, and checked by SHA-256.

`pooch` keeps the cache, retries and compares the hash before a file gets its name.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mnmt_repro.corpora.registry import CorpusFile, locate
from mnmt_repro.errors import InputError
from mnmt_repro.repository import cache_root

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"


def obtain(file: CorpusFile, *, base_url: str = MULTI30K_URL) -> Path:
    """Return the path of a Multi30k file, downloading it where it is not there yet.

    Looked for below ``MNMT_REPRO_DATA`` first, then in the cache (`registry.cache_root`), where a
    copy with another SHA-256 than its card is replaced.

    Parameters
    ----------
    file : CorpusFile
        From the card of ``multi30k``.
    base_url : str
        Folder of the files.

    Returns
    -------
    Path
        A file whose SHA-256 was compared with the card when it was downloaded.

    Raises
    ------
    InputError
        If it cannot be downloaded; the message says what to do instead. Nothing is left under the
        file's name.
    """
    path = locate(file)
    folder = cache_root() / Path(file.path).parent
    if path is not None and path.parent != folder:
        return path
    try:
        return download(base_url, Path(file.path).name, file.sha256, folder)
    except InputError as error:
        raise InputError(
            f"{file.path}: {error}, or set MNMT_REPRO_DATA to a folder that holds {file.path}, or "
            "set MNMT_REPRO_CACHE to one that can be written to"
        ) from error


def download(base_url: str, name: str, sha256: str, folder: Path) -> Path:
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
        retry_if_failed=3,  # the pauses grow by a second each
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Path(store.fetch(name, progressbar=sys.stderr.isatty()))
    except (requests.exceptions.RequestException, ValueError) as error:
        text = " ".join(str(error).split())
        raise InputError(
            f"cannot be downloaded from {base_url} ({type(error).__name__}: {text[:160]}); connect "
            f"to the network and try again, or put the file into {folder} yourself"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot be kept in {folder} ({error.strerror}); name another folder"
        ) from error
