"""Sphinx extension: every script, style sheet and formula is served from the book's own `_static`.

List it under `sphinx.extra_extensions` in `_config.yml`. It writes these files:

- `mnmt.css` and `mnmt.js`, which style and enliven the charts and tables of `figures.display`;
- `vega.js`, the Vega, Vega-Lite and Vega-Embed bundle of the version altair writes, which `mnmt.js`
  loads on pages that hold a chart;
- `mathjax.js`, MathJax with every TeX extension and SVG output, which fetches nothing further;
- `openings.js`, what each page says first, which `mnmt.js` shows below the hits of a search.
"""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import vl_convert
from sphinx.application import Sphinx
from sphinx.config import Config

from mnmt_repro.papers.charts.theme import vega_lite_version

STATIC = ("mnmt.css", "mnmt.js")


def vega_bundle() -> str:
    """Return a script that defines `vegaEmbed`, and no other global."""
    snippet = "window.vegaEmbed = vegaEmbed;"
    bundle = vl_convert.javascript_bundle(snippet, vl_version=vega_lite_version())
    return "(() => {\n" + bundle + "\n})();\n"


def mathjax_file() -> Path:
    """Find the one MathJax file that the book needs, in the installed sphinx-mathjax-offline.

    Raises
    ------
    FileNotFoundError
        If that package is absent or does not hold the file.
    """
    spec = find_spec("sphinx-mathjax-offline")
    installed = Path(spec.origin if spec and spec.origin else "sphinx-mathjax-offline")
    path = installed.parent / "static" / "mathjax" / "tex-svg-full.js"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: formulas need it; install sphinx-mathjax-offline")
    return path


def write_assets(static: Path) -> None:
    """Write the files into the folder `static`, which is made if absent."""
    static.mkdir(parents=True, exist_ok=True)
    ours = resources.files("mnmt_repro.papers.pages") / "static"
    for name in STATIC:
        (static / name).write_text((ours / name).read_text(encoding="utf-8"), encoding="utf-8")
    (static / "vega.js").write_text(vega_bundle(), encoding="utf-8")
    shutil.copyfile(mathjax_file(), static / "mathjax.js")


def opening(page: str) -> str:
    """What a page says first: the finding of its answer box, or else its first sentences.

    Parameters
    ----------
    page : str
        HTML of the page.
    """
    article = page[page.find("<article") :]
    finding = re.search(r"<strong>We find\.</strong>(.*?)</p>", article, re.DOTALL)
    found = [finding] if finding else re.finditer(r"<p\b[^>]*>(.*?)</p>", article, re.DOTALL)
    texts = (" ".join(unescape(re.sub(r"<[^>]+>|\\[()]", "", each[1])).split()) for each in found)
    return next((text for text in texts if text.endswith(".")), "")  # no title of a folded cell


def _configure(app: Sphinx, config: Config) -> None:
    config.mathjax_path = "mathjax.js"
    config.html_context.setdefault("default_mode", "auto")  # light or dark as the reader's system
    config.nb_ipywidgets_js = {}  # the scripts of widgets come from another host


def _write(app: Sphinx) -> None:
    if app.builder.format == "html":
        write_assets(Path(app.outdir) / "_static")


def _write_openings(app: Sphinx, failure: Exception | None) -> None:
    if app.builder.format != "html" or failure:
        return
    html = Path(app.outdir)
    said = {
        name: opening((html / f"{name}.html").read_text(encoding="utf-8"))
        for name in sorted(app.env.found_docs)
        if (html / f"{name}.html").is_file()
    }
    script = f"window.mnmtOpenings = {json.dumps(said, ensure_ascii=False, indent=1)};\n"
    (html / "_static" / "openings.js").write_text(script, encoding="utf-8")


def _drop_thebe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Take out the scripts that run cells on a server of another host; jupyter-book adds them."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def _mend_citations(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Take the role of a list from a bibliography: its entries have roles that no list may hold."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', "<div>"
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("config-inited", _configure, priority=900)
    app.connect("builder-inited", _write)
    app.connect("build-finished", _write_openings)
    app.connect("html-page-context", _drop_thebe)
    app.connect("html-page-context", _mend_citations)
    app.add_css_file("mnmt.css")
    app.add_js_file("mnmt.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
