"""`report`: one page for a reviewer as HTML and Markdown, and the list of outputs for CODECHECK."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro import __version__
from mnmt_repro.cli.options import add_command
from mnmt_repro.papers.commands.verify import Inputs, outcome
from mnmt_repro.typed_config import setting

if TYPE_CHECKING:
    import pandas as pd

    from mnmt_repro.papers.claims.schema import Claim, Exhibit

TEMPLATE = Path(__file__).with_name("report.md.jinja")
COMPUTED_WITH = ("numpy", "scipy", "pandas")
"""Packages whose version can move a number."""
SPECIFICATION = "https://codecheck.org.uk/spec/config/2.0/"


_STYLE = """
body { max-width: 90rem; }
th, td { text-align: left; vertical-align: top; white-space: normal; }
summary { cursor: pointer; }
@media (max-width: 50rem) { th, td { min-width: 7rem; } }
a { color: inherit; }
code { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Inputs):
    """The options of `report`."""

    out: Path = setting(
        "folder in which report.html and report.md are written", Path("report"), metavar="DIR"
    )
    codecheck: bool = setting(
        "write no report: print the list of outputs for https://codecheck.org.uk", False
    )


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "report",
        "check all verdicts as `verify` does, and write one page for a reviewer as HTML and "
        "Markdown: effects with limits and intervals, order of commits, environment, hashes",
        examples=[
            "mnmt-repro report --out review",
            "mnmt-repro report --codecheck > codecheck.yml",
        ],
        act=act,
        options=ReportOptions,
    )


def act(options: ReportOptions) -> int:
    """Write the report and print its paths; 1 where a stored verdict does not follow."""
    from mnmt_repro.atomic import write_bytes
    from mnmt_repro.papers import claims
    from mnmt_repro.results.files import results_root

    declared = claims.load_claims(options.root / "data" / "claims")
    exhibits = claims.load_exhibits(options.root, declared)
    if options.codecheck:
        print(codecheck(options.root, declared, exhibits), end="")
        return 0
    verdicts = claims.verify(options.root, store=options.results, fresh=options.fresh)
    stored = claims.read_stored(options.root)
    wrong = claims.differences(verdicts, stored)
    store = results_root(options.results, checkout=options.root)
    table = with_stored_order(claims.to_table(verdicts), stored)
    text = report(options.root, store, table, declared, wrong, len(exhibits))
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in (("report.md", text), ("report.html", as_html(text))):
        write_bytes(options.out / name, content.encode())
        print(options.out / name)
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
    exhibits: int,
) -> str:
    """Write the report as Markdown.

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
    exhibits
        How many figures and tables of the papers have a page or a reason.
    """
    from jinja2 import FileSystemLoader

    from mnmt_repro.papers.charts.badge import STYLE
    from mnmt_repro.papers.charts.measures import limit_written, measured, named
    from mnmt_repro.papers.charts.verdicts import count
    from mnmt_repro.papers.claims.report import headlines
    from mnmt_repro.papers.claims.schema import VERDICTS
    from mnmt_repro.templates import templates

    first = headlines(table)
    found = templates(FileSystemLoader(TEMPLATE.parent), escape=False)
    found.filters["plain"] = _plain
    return found.get_template(TEMPLATE.name).render(
        version=__version__,
        outcome=outcome(wrong),
        count=count(table),
        groups={
            name: first[first["verdict"] == name].to_dict("records")
            for name in VERDICTS
            if name in set(first["verdict"])
        },
        effects={
            claim.id: table[(table["claim"] == claim.id) & (table["limit"] != "")].to_dict(
                "records"
            )
            for claim in claims
        },
        claims={claim.id: claim for claim in claims},
        before=int((first["post_hoc"] == "no").sum()),
        unchecked=int((first["post_hoc"] == "not known").sum()),
        signs={name: sign for name, (sign, _) in STYLE.items()},
        limit=limit_written,
        measured=measured,
        named=named,
        wrong=wrong,
        papers=papers(root),
        exhibits=exhibits,
        environment=environment(),
        hashes=hashes(root, store),
    )


def _plain(text: Any) -> str:
    r"""Write a text on one line, without a meaning in Markdown, in a cell of a table too.

    >>> _plain("a|b\n *c* <d>")
    'a\\|b \\*c\\* \\<d\\>'
    """
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", " ".join(str(text).split()))


def as_html(markdown: str) -> str:
    """Write a report that was made as Markdown as one HTML file, without other files."""
    from markdown_it import MarkdownIt

    from mnmt_repro.cli.fit_report import page

    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    body = body.replace("<table>", '<div class="wide" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    title = markdown.partition("\n")[0].removeprefix("# ")
    return page(title, body, _STYLE)


def papers(root: Path) -> list[dict[str, Any]]:
    """Read what the two papers are: the references of `CITATION.cff`."""
    import yaml

    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["references"]
    return found


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
    found = f"find {where} -type f" + f" -name '{pattern}'" * (pattern != "*")
    return {
        "files": len(names),
        "sha256": whole.hexdigest(),
        "command": f"{found} | LC_ALL=C sort | xargs sha256sum | sha256sum",
    }


def codecheck(root: Path, claims: Sequence[Claim], exhibits: Sequence[Exhibit]) -> str:
    """Write `codecheck.yml`: what a checker should compute, and the papers it belongs to.

    What only a checker can fill in is left out: names, certificate and its report.
    """
    import yaml

    cited = papers(root)
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
