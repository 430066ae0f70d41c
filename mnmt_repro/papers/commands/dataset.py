"""`dataset`: the stored losses of Paper A's grids as one flat CSV, with a data card and Croissant.

Croissant (https://docs.mlcommons.org/croissant) describes a data set for the tools that load it.
Its addresses are relative, so that the folder can be published as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_repro.cli.options import add_command
from mnmt_repro.errors import InputError
from mnmt_repro.papers.cohorts.names import span
from mnmt_repro.papers.commands.verify import StoreOption
from mnmt_repro.repository import ROOT
from mnmt_repro.typed_config import required

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).with_name("dataset.md.jinja")
FILES = ("losses.csv", "README.md", "croissant.json")
KEY = ["run_id", "pair", "test_set"]
"""Columns that tell a row from every other row."""
COLUMNS = {
    "tier": "scale of the experiments that the run belongs to",
    "cohorts": "declared grids that hold the run, separated by semicolons",
    "corpus": "text that the run was trained on",
    "pair": "language pair that was scored, source first",
    "p": "weight of the pair in the training objective, from 0 to 1",
    "mixture": "share with which each pair was drawn, as PAIR:SHARE, separated by commas",
    "way": "how the weight was given to the model: sampled, text-matched or equal-first",
    "size": "width of the model and layers of its encoder, such as d16x1",
    "n_non_embedding": "parameters without embeddings",
    "n_total": "parameters with embeddings",
    "seed": "number that decides the initial weights and the order of the text",
    "learning_rate": "scale of the learning-rate schedule; no unit",
    "steps": "updates of the weights",
    "target_tokens": "target tokens that the run read, of all pairs together",
    "pair_target_tokens": "target tokens of this pair that the run read",
    "passes": "passes over this pair's training text; 0 for generated text, which has no end",
    "test_set": "test set that was scored",
    "cross_entropy": "loss on the test set, in nats per target token, end of sentence included",
    "test_tokens": "target tokens of the test set",
    "run_id": "hash of the configuration, the text and the version of the code",
    "commit": "commit of the code that trained the run",
    "data_hash": "hash of the training text, or of what generates it",
    "config_hash": "hash of the run's configuration",
}
"""Columns of the CSV, with their units; their names are those of `results.load`."""
_TERMS = """citeAs column equivalentProperty extract field fileObject fileProperty fileSet format
includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace
samplingRate separator source subField transform"""
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{term: {"@id": f"cr:{term}", "@type": "@json"} for term in ("data", "examples")},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
"""What the names in a Croissant file mean: the context that its specification recommends."""


@dataclass(frozen=True, kw_only=True)
class DatasetOptions(StoreOption):
    """The options of `dataset`."""

    out: Path = required(
        "folder of the three files; it may hold those of an earlier call, and no other file",
        required=True,
        metavar="FOLDER",
    )


def add(commands: Any) -> None:
    """Declare the command."""
    add_command(
        commands,
        "dataset",
        "write the stored losses of Paper A's grids as a data set: losses.csv, a data card and a "
        "Croissant file",
        examples=["mnmt-repro dataset --out losses"],
        act=act,
    )


def act(options: DatasetOptions) -> int:
    """Write the three files and print their paths."""
    import yaml

    from mnmt_repro import results
    from mnmt_repro.atomic import write_bytes

    held = {path.name for path in options.out.iterdir()} if options.out.is_dir() else set()
    if others := sorted(name for name in held - {*FILES} if not name.startswith(".")):
        raise InputError(f"{options.out}: holds {others[0]}; name a new folder")
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    table = dataset(results.load(root=options.results))
    for name, content in zip(FILES, contents(table, about), strict=True):
        write_bytes(options.out / name, content)
        print(options.out / name)
    return 0


def dataset(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each run, pair and test set, of rows as `results.load` gives them.

    Runs of Paper B, runs that no cohort holds and scores by single domain are left out.

    Raises
    ------
    InputError
        When no run of Paper A's grids is left.
    """
    kept = rows[(rows["cohort"] != "") & (rows["variant"] == "") & (rows["domain"] == "all")]
    if kept.empty:
        raise InputError("no run of Paper A's grids is stored here")
    kept = kept.sort_values(["tier", "corpus", "pair", "test_set", "n_total", "run_id", "cohort"])
    named = kept.groupby(KEY)["cohort"].transform(";".join)
    return kept.assign(cohorts=named).drop_duplicates(KEY)[[*COLUMNS]].reset_index(drop=True)


def contents(table: pd.DataFrame, about: Mapping[str, Any]) -> tuple[bytes, bytes, bytes]:
    """Return what the three `FILES` hold; `about` is the content of `CITATION.cff`."""
    losses = table.to_csv(index=False, lineterminator="\n").encode()
    author, published = about["authors"][0]["name"], about["date-released"]
    title = f"{{{about['title']}}}: losses of multilingual translation models"
    cite = f"@misc{{mnmt-repro, title={{{title}}}, author={{{{{author}}}}}, "
    cite += f"year={{{published:%Y}}}, version={{{about['version']}}}}}"
    kinds = {"i": "sc:Integer", "f": "sc:Float"}
    types = {name: kinds.get(table[name].dtype.kind, "sc:Text") for name in COLUMNS}
    card = _card(table, columns=COLUMNS, types=types, cite=cite, about=about)
    croissant = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "mnmt-repro-losses",
        "description": card.split("\n\n")[1].replace("\n", " "),
        "url": "README.md",
        "license": f"https://spdx.org/licenses/{about['license']}.html",
        "creator": {"@type": "sc:Organization", "name": author},
        "datePublished": str(published),
        "version": about["version"],
        "keywords": about["keywords"],
        "citeAs": cite,
    }
    sha256, size = hashlib.sha256(losses).hexdigest(), f"{len(losses)} B"
    file = {"@id": "losses.csv", "name": "losses.csv", "contentUrl": "losses.csv"}
    file |= {"contentSize": size, "encodingFormat": "text/csv", "sha256": sha256}
    croissant["distribution"] = [{"@type": "cr:FileObject", **file}]
    fields = [
        {"@type": "cr:Field", "@id": f"losses/{name}", "name": name, "description": text}
        | {"dataType": types[name]}
        | {"source": {"fileObject": {"@id": "losses.csv"}, "extract": {"column": name}}}
        for name, text in COLUMNS.items()
    ]
    records = {"@type": "cr:RecordSet", "@id": "losses", "name": "losses", "field": fields}
    croissant["recordSet"] = [records | {"key": [{"@id": f"losses/{name}"} for name in KEY]}]
    return losses, card.encode(), (json.dumps(croissant, indent=1) + "\n").encode()


def _card(table: pd.DataFrame, **values: Any) -> str:
    """Write the data card as Markdown, with its numbers from the table."""
    from jinja2 import FileSystemLoader

    from mnmt_repro.templates import templates

    counts = {"runs": "run_id", "pairs": "pair", "seeds": "seed"}
    grids = table.groupby(["tier", "corpus", "way"], as_index=False).agg(
        **{name: (column, "nunique") for name, column in counts.items()},
        parameters=("n_non_embedding", list),
        tokens=("target_tokens", list),
    )
    environment = templates(FileSystemLoader(TEMPLATE.parent), escape=False)
    environment.filters["count"] = "{:,}".format
    environment.filters["span"] = span
    rendered = environment.get_template(TEMPLATE.name)
    return rendered.render(table=table, grids=grids.to_dict("records"), **values)
