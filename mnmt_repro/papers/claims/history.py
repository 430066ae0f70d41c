"""Was the rule fixed before the rows it reads? Asked of git.

A rule counts from the commit after which its fingerprint no longer changed, so that adding or
rewording other claims of the same file does not touch it. It came first when that commit is an
ancestor of, or equal to, the commit that each of its rows names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

from mnmt_repro.disk_cache import as_json, kept_values, text_digest
from mnmt_repro.errors import InputError
from mnmt_repro.papers.claims import schema
from mnmt_repro.papers.effects import evidence
from mnmt_repro.repository import git


@dataclass(frozen=True, kw_only=True)
class Ancestry:
    """Whether a rule came after its rows; `post_hoc` is None where that cannot be told."""

    post_hoc: bool | None
    note: str


@dataclass(frozen=True)
class History:
    """The history of the rules below `root`, the top folder of a checkout.

    Parameters
    ----------
    root : Path
    fresh : bool
        Read the rules of every version again, also those in the cache.
    """

    root: Path
    fresh: bool = False

    @cached_property
    def unavailable(self) -> str:
        """Why the history cannot be asked; empty when it can."""
        try:
            shallow = git(self.root, "rev-parse", "--is-shallow-repository")
            top = git(self.root, "rev-parse", "--show-toplevel")
        except FileNotFoundError:
            return "git is not installed"
        except subprocess.CalledProcessError:
            return "not a git checkout"
        if Path(top).resolve() != self.root.resolve():
            return "not a git checkout of its own"
        if not git(self.root, "rev-list", "--all", "--max-count=1"):
            return "no commit yet"
        if shallow == "true":
            return "a shallow clone holds no history (git fetch --unshallow)"
        return ""

    def check(self, claim: str, fingerprint: str, commits: Iterable[str]) -> Ancestry:
        """Compare the rule of `claim` that has this fingerprint with the `commits` of its rows.

        A commit may carry a mark behind a plus sign, such as ``+changes`` of a run whose code
        differed from it; the commit itself counts.
        """
        wanted = sorted({commit.partition("+")[0] for commit in commits})
        if not wanted:
            return Ancestry(post_hoc=False, note="reads no rows")
        if self.unavailable:
            return Ancestry(post_hoc=None, note=f"ancestry not checked: {self.unavailable}")
        rule = self._fixed.get((claim, fingerprint))
        if rule is None:
            return Ancestry(post_hoc=True, note="post hoc: the rule is not committed")
        late, unknown = [], []
        for commit in wanted:
            before = _ancestors(self.root, commit)
            if before is None:
                unknown.append(commit)
            elif rule not in before:
                late.append(commit)
        if late:
            return Ancestry(
                post_hoc=True,
                note=f"post hoc: rule of {rule[:10]} is no ancestor of rows of {_short(late)}",
            )
        if unknown:
            return Ancestry(
                post_hoc=None,
                note=f"ancestry not checked: no commit {_short(unknown)} in this repository",
            )
        return Ancestry(post_hoc=False, note=f"rule of {rule[:10]} is older than all its rows")

    @cached_property
    def _fixed(self) -> Mapping[tuple[str, str], str]:
        """The commit from which each rule (claim id, fingerprint) of HEAD holds."""
        fixed: dict[tuple[str, str], str] = {}
        code = [Path(str(module.__file__)).read_bytes() for module in (schema, evidence)]
        version = text_digest(*code, schema.yaml.__version__, sys.version)
        paths = f":(glob){schema.FOLDER.as_posix()}/*.yml"
        log = git(self.root, "log", "--reverse", "--topo-order", "--format=%H", "--", paths)
        rules = as_json(set[tuple[str, str]])
        with kept_values("rules", rules, fresh=self.fresh, most=5000) as recall:
            for commit in log.split():
                present = recall(text_digest(version, commit), partial(self._rules_at, commit))
                fixed = {key: fixed.get(key, commit) for key in present}
        return fixed

    def _rules_at(self, commit: str) -> set[tuple[str, str]]:
        """Claim and fingerprint of each rule of a commit."""
        lines = git(self.root, "ls-tree", commit, f"{schema.FOLDER.as_posix()}/").splitlines()
        files = [line.split()[2] for line in lines if line.endswith(".yml")]
        return {rule for blob in files for rule in _rules(self.root, blob)}


@cache  # most commits share their files with others
def _rules(root: Path, blob: str) -> frozenset[tuple[str, str]]:
    """Claim and fingerprint of each rule of a file; a layout that cannot be read has none."""
    text = git(root, "cat-file", "blob", blob)
    if not re.search(r"schema\W+2\b", text):  # to read the YAML of an old layout takes long
        return frozenset()
    try:
        claims = schema.parse_claims(text, blob)
    except InputError:
        return frozenset()
    return frozenset(
        (claim.id, claim.fingerprint(setting))
        for claim in claims
        for setting in claim.settings.values()
    )


@cache
def _ancestors(root: Path, commit: str) -> frozenset[str] | None:
    """A commit and all that lead to it; None of one that git does not know."""
    try:
        return frozenset(git(root, "rev-list", commit, "--").split())
    except subprocess.CalledProcessError:
        return None


def _short(commits: list[str]) -> str:
    shown = ", ".join(commit[:10] or "(none)" for commit in commits[:3])
    return shown + (f" and {len(commits) - 3} more" if len(commits) > 3 else "")
