"""`report`: the page of verdicts for a reviewer, and the list of outputs for CODECHECK."""

from __future__ import annotations

import hashlib
import html
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro import __version__
from mnmt_repro.cli.options import add_command
from mnmt_repro.errors import tell
from mnmt_repro.papers.commands.verify import Inputs, outcome
from mnmt_repro.typed_config import setting

if TYPE_CHECKING:
    import pandas as pd

    from mnmt_repro.papers.claims.schema import Claim, Exhibit

COMPUTED_WITH = ("numpy", "scipy", "pandas")
"""Packages whose version can move a number."""
SPECIFICATION = "https://codecheck.org.uk/spec/config/2.0/"

_WIDE = "body { max-width: 90rem; }"


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Inputs):
    """The options of `report`."""

    out: Path = setting("folder in which report.html is written", Path("report"), metavar="DIR")
    codecheck: bool = setting(
        "write no report: print the list of outputs for https://codecheck.org.uk", False
    )


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "report",
        "check all verdicts as `verify` does, and write one page for a reviewer as HTML: effects "
        "with limits and intervals, order of commits, environment, hashes",
        examples=[
            "mnmt-repro report --out review",
            "mnmt-repro report --codecheck > codecheck.yml",
        ],
        act=act,
    )


def act(options: ReportOptions) -> int:
    """Write the report and print its paths; 1 where a stored verdict does not follow."""
    from mnmt_repro.atomic import write_bytes
    from mnmt_repro.papers import claims
    from mnmt_repro.results.files import results_root

    declared = claims.load_claims(options.root / claims.FOLDER)
    if options.codecheck:
        exhibits = claims.load_exhibits(options.root, declared)
        print(codecheck(options.root, declared, exhibits), end="")
        return 0
    tell("reading the rows and judging the claims; without a cache this takes minutes")
    verdicts = claims.verify(options.root, store=options.results, fresh=options.fresh)
    tell("writing the report, with a hash of each file")
    stored = claims.read_stored(options.root)
    wrong = claims.differences(verdicts, stored)
    store = results_root(options.results, checkout=options.root)
    table = with_stored_order(claims.to_table(verdicts), stored)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "report.html"
    write_bytes(path, report(options.root, store, table, declared, wrong).encode())
    print(path)
    print(outcome(wrong), file=sys.stderr)
    return 1 if wrong else 0


def with_stored_order(table: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """The table of verdicts, whose order of commits is the stored one where there is no history.

    A wheel has no history, and its stored verdicts were made with one.
    """
    import pandas as pd

    place = ["claim", "role"]
    known = stored[stored["post_hoc"] != ""].set_index(place)["post_hoc"]
    keys = pd.MultiIndex.from_frame(table[place])
    then = known.reindex(keys).fillna("not known").to_numpy()
    return table.assign(post_hoc=table["post_hoc"].where(table["post_hoc"] != "not known", then))


def report(
    root: Path,
    store: Path,
    table: pd.DataFrame,
    claims: Sequence[Claim],
    wrong: Mapping[str, str],
) -> str:
    """Write the list of the page of verdicts with environment and hashes, as one HTML file.

    Parameters
    ----------
    root, store
        Top folder of the checkout, and folder of the rows.
    table
        Verdicts as `claims.to_table` makes them.
    claims
        Their entries in `data/claims`.
    wrong
        Claim id to what differs from its stored verdict.
    """
    import pandas as pd

    from mnmt_repro.cli.fit_report import page
    from mnmt_repro.papers import pages
    from mnmt_repro.papers.charts.claim_list import claim_list
    from mnmt_repro.papers.claims.report import headlines

    before = int((headlines(table)["post_hoc"] == "no").sum())
    differ = pd.DataFrame({"claim": [*wrong], "difference": [*wrong.values()]})
    title = f"Review of mnmt-repro {__version__}"
    body = [
        f"<h1>{title}</h1><p><b>{html.escape(outcome(wrong))}</b></p>",
        _table(differ) if wrong else "",
        f"<p>For {before} claims the limit was committed before the rows that "
        "decide it. This report computes effects from stored rows. It does not check that "
        "training gives these rows: see <code>mnmt-repro retrain</code>.</p>",
        claim_list(table, claims, linked=False).html,
        "<h2>Environment</h2>",
        _table(pd.DataFrame(environment().items(), columns=["what", "value"])),
        "<h2>Hashes</h2><p>Each command prints the hash beside it when it runs in the top folder "
        "of a checkout.</p>",
        _table(pd.DataFrame(hashes(root, store))),
    ]
    style = (Path(pages.__file__).parent / "static" / "mnmt.css").read_text(encoding="utf-8")
    return page(title, "\n".join(body), style + _WIDE)


def _table(frame: pd.DataFrame) -> str:
    return f'<div class="wide" tabindex="0">{frame.to_html(index=False, border=0)}</div>'


def environment() -> dict[str, str]:
    """What computed the report: names and versions."""
    from mnmt_repro.runs.environment import current_commit, processor

    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "mnmt-repro": __version__,
        "commit": current_commit(),
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in COMPUTED_WITH},
        "system": platform.platform(),
        "processor": processor(),
    }


def hashes(root: Path, store: Path) -> list[dict[str, Any]]:
    """SHA-256 of code and data, a row a folder.

    Returns
    -------
    list of dict
        `what`, `files` (how many), `sha256` (of the lines that `sha256sum` prints for them in the
        order of their names) and `command`, which prints the same hash in the top folder.
    """
    package = Path(__file__).resolve().parents[2]
    folders = [("code", package, package.parent, "*.py"), ("results", store, root, "*")]
    folders += [
        (name, root / "data" / name, root, "*") for name in ("claims", "papers", "external")
    ]
    return [
        {"what": what, **_hash(folder, base, pattern)} for what, folder, base, pattern in folders
    ]


def _hash(folder: Path, base: Path, pattern: str) -> dict[str, Any]:
    base = base if folder.is_relative_to(base) else folder.parent
    paths = [path for path in folder.rglob(pattern) if path.is_file()]
    names = {path.relative_to(base).as_posix(): path for path in paths}
    whole = hashlib.sha256()
    for name in sorted(names, key=str.encode):
        whole.update(f"{hashlib.sha256(names[name].read_bytes()).hexdigest()}  {name}\n".encode())
    where = folder.relative_to(base).as_posix()
    command = f"find {where} -type f" + f" -name '{pattern}'" * (pattern != "*")
    return {
        "files": len(names),
        "sha256": whole.hexdigest(),
        "command": f"{command} | LC_ALL=C sort | xargs sha256sum | sha256sum",
    }


def codecheck(root: Path, claims: Sequence[Claim], exhibits: Sequence[Exhibit]) -> str:
    """Write `codecheck.yml`: what a checker should compute, and the papers it belongs to.

    What only a checker can fill in is left out: names, certificate and its report.
    """
    import yaml

    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    pages: dict[str, list[str]] = {}
    for exhibit in exhibits:
        pages.setdefault(exhibit.page, []).append(f"Paper {exhibit.id}")
    judged: dict[str, list[str]] = {}
    for claim in claims:
        judged.setdefault(claim.page, []).append(claim.id)
    manifest = [
        {
            "file": "data/claims/verdicts.csv",
            "comment": f"verdicts of all {len(claims)} claims (mnmt-repro verify --write)",
        }
    ]
    for page in dict.fromkeys([*pages, *judged]):
        if page:
            ids = [f"claims {', '.join(judged[page])}"] if page in judged else []
            comment = "; ".join([*pages.get(page, []), *ids])
            manifest.append({"file": f"_build/html/{page}.html", "comment": comment})
    content = {
        "version": SPECIFICATION,
        "paper": {
            "title": "; ".join(paper["title"] for paper in cited),
            "authors": [
                {"name": f"{author['given-names']} {author['family-names']}"}
                for paper in cited
                for author in paper["authors"]
            ],
            "reference": cited[0]["url"],
            "reference-other": [paper["url"] for paper in cited[1:]],
        },
        "manifest": manifest,
    }
    head = (
        "---\n# Outputs for CODECHECK (https://codecheck.org.uk). Renew this file with:\n"
        "#   mnmt-repro report --codecheck > codecheck.yml\n"
        "# `make book` writes the pages. A checker adds codechecker, summary, certificate and\n"
        "# report.\n"
    )
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
