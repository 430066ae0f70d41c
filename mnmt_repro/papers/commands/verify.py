"""`verify`: evaluate the papers' claims from the stored rows."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_repro.cli.options import JsonOption, add_command
from mnmt_repro.repository import ARCHIVE, ROOT, git
from mnmt_repro.typed_config import setting

PASSED = "Passed: every stored verdict follows from the stored rows."
REMEDY = (
    "where no rule or row was meant to change, restore the rows (`git status data` names what "
    "changed); else store the new verdicts with verify --write"
)


@dataclass(frozen=True, kw_only=True)
class StoreOption:
    """The results store."""

    results: Path | None = setting(
        "folder of the results store (default: MNMT_REPRO_RESULTS, else data/results)",
        metavar="DIR",
    )


@dataclass(frozen=True, kw_only=True)
class Inputs(StoreOption):
    """What outcomes are computed from: cache, checkout and results store."""

    fresh: bool = setting(
        "compute every outcome again; by default the cache has those of the same claims, rows and "
        "code",
        False,
    )
    root: Path = setting("top folder of the checkout (default: this one)", ROOT)


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(JsonOption, Inputs):
    """The options of `verify`."""

    only: str | None = setting(
        "evaluate this claim alone, such as A3, and print its limit and every measure",
        metavar="ID",
    )
    write: bool = setting("store the verdicts in data/claims/verdicts.csv", False)


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "verify",
        "evaluate every claim of data/claims from the stored rows, and compare with the stored "
        "verdicts; the exit status is 1 if one differs",
        examples=["mnmt-repro verify", "mnmt-repro verify --only A3"],
        act=act,
    )


def act(options: VerifyOptions) -> int:
    """Print all verdicts; 1 where a stored verdict does not follow from the rows."""
    from mnmt_repro.errors import InputError, tell
    from mnmt_repro.papers import claims
    from mnmt_repro.results.files import results_root

    if options.write and options.only:
        raise InputError("--write stores all verdicts: leave out --only")
    if options.write and options.root == ROOT and ARCHIVE.is_file():
        raise InputError(
            "--write needs the git checkout, whose history tells which rules came first"
        )
    verdicts = claims.verify(
        options.root, store=options.results, only=options.only, fresh=options.fresh
    )
    if not options.only:
        exhibits = claims.load_exhibits(options.root, [verdict.claim for verdict in verdicts])
    if options.json:
        print(claims.to_json(verdicts))
    elif options.only:
        print(claims.to_detail(verdicts[0]))
    else:
        print(claims.to_text(verdicts))
        print(f"{len(exhibits)} figures and tables of the papers: each has a page or a reason")
    if options.write:
        print(f"written: {claims.write_stored(verdicts, options.root)}", file=sys.stderr)
        return 0
    stored = claims.read_stored(options.root)
    if options.only:
        stored = stored[stored["claim"] == verdicts[0].claim.id]
    wrong = claims.differences(verdicts, stored)
    store = results_root(options.results, checkout=options.root)
    if changed := changed_files(store):
        tell(
            f"{store}: {len(changed)} file(s) are not as in the last commit, and rows never "
            f"change: {changed[0]}; restore them with git"
        )
    for claim, difference in wrong.items():
        print(f"{claim}: {difference}", file=sys.stderr)
    if wrong:
        tell(outcome(wrong), REMEDY)
    elif not (options.json or changed):
        print(f"The stored verdict of {options.only} agrees." if options.only else PASSED)
    return 1 if wrong or changed else 0


def changed_files(store: Path) -> list[str]:
    """Files of a results store that differ from the last commit; none known without git.

    Some rows are read by no claim, so that no verdict shows a change of them.
    """
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return git(store, "diff", "--name-only", "--relative", "HEAD", "--", ".").splitlines()
    return []


def outcome(wrong: Mapping[str, str]) -> str:
    """Say in a sentence whether the stored verdicts hold.

    >>> outcome({"A3": "stored 1.2, but the rows give 1.3", "B1": "no stored verdict"})
    'Failed: 2 stored verdicts do not follow from the stored rows: A3, B1.'
    """
    if not wrong:
        return PASSED
    do = "verdict does" if len(wrong) == 1 else "verdicts do"
    return f"Failed: {len(wrong)} stored {do} not follow from the stored rows: {', '.join(wrong)}."
