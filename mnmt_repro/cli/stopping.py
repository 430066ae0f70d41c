"""Ctrl-C and SIGTERM as a wish to stop, which training grants at the end of a step."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mnmt_repro.errors import tell


@contextmanager
def workers_asked_to_stop(folder: Path) -> Iterator[Callable[[], bool]]:
    """As `asked_to_stop`, also for other processes, which see it by a file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    flag = folder / f".stop.{secrets.token_hex(4)}"
    with asked_to_stop(flag.touch):
        try:
            yield flag.exists
        finally:
            flag.unlink(missing_ok=True)


def status(stop: Callable[[], bool], failed: bool, folder: Path) -> int:
    """Exit status of runs in `folder`: 130 where they were asked to stop, and are told so."""
    if stop():
        tell(f"{folder}: stopped, and saved; the same command goes on from there")
        return 130
    return int(failed)


@contextmanager
def asked_to_stop(then: Callable[[], object] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM has come; a second one interrupts at once.

    Parameters
    ----------
    then
        Called when the first one comes.
    """
    asked = threading.Event()

    def note(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        then()
        os.write(2, b"\nmnmt-repro: stopping after this step; once more to stop at once\n")

    if threading.current_thread() is not threading.main_thread():  # signals go to that one
        yield asked.is_set
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # One that is ignored, as Ctrl-C is by what a script began in the background, stays so.
    before = {n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
