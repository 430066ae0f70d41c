"""Sphinx extension: every script, style sheet and formula is served from the book's own `_static`.

List it under `sphinx.extra_extensions` in `_config.yml`. It writes these files:

- `mnmt.css` and `mnmt.js`, which style and enliven the charts and tables of `charts.display`;
- `vega.js`, the Vega, Vega-Lite and Vega-Embed bundle of the version altair writes, which `mnmt.js`
  loads on pages that hold a chart;
- `mathjax.js`, MathJax with every TeX extension and SVG output, which fetches nothing further.

Each page has one title, since `templates/layout.html` takes out the theme's second one. Links in
Markdown may name a term of the glossary.
"""

from __future__ import annotations

import shutil
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import vl_convert
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

from mnmt_repro import __version__
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


_REPEATED = (' id="exercise-content"', ' id="solution-content"')
"""Attributes that sphinx-exercise writes for every exercise of a page."""


def write_assets(static: Path) -> None:
    """Write the files into the folder `static`, which is made if absent."""
    static.mkdir(parents=True, exist_ok=True)
    ours = resources.files("mnmt_repro.papers.pages") / "static"
    for name in STATIC:
        (static / name).write_text((ours / name).read_text(encoding="utf-8"), encoding="utf-8")
    (static / "vega.js").write_text(vega_bundle(), encoding="utf-8")
    shutil.copyfile(mathjax_file(), static / "mathjax.js")


def _configure(app: Sphinx, config: Config) -> None:
    config.project, config.version = config.html_title, __version__  # of an EPUB
    config.mathjax_path = "mathjax.js"
    config.html_context.setdefault("default_mode", "auto")  # light or dark as the reader's system
    config.nb_ipywidgets_js = {}  # the scripts of widgets come from another host
    ours = resources.files("mnmt_repro.papers.pages")
    config.html_search_scorer = str(ours / "static/scorer.js")
    config.templates_path.append(str(ours / "templates"))


def _write(app: Sphinx) -> None:
    if app.builder.format == "html":
        write_assets(Path(app.outdir) / "_static")


def _drop_thebe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Take out the scripts that run cells on a server of another host; jupyter-book adds them."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def _mend_body(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Take out a role that no list may have, and ids that each exercise repeats."""
    for mark in (' role="list" class="citation-list"', *_REPEATED):
        if "body" in context:
            context["body"] = context["body"].replace(mark, "")
    if app.builder.name == "epub" and "body" in context:  # whose readers take nothing but XML
        soup = BeautifulSoup(context["body"], "html.parser")
        for script in soup("script"):
            script.decompose()
        context["body"] = str(soup)


def _link_terms(app: Sphinx, env: BuildEnvironment) -> None:
    """Let a link end at a term of a glossary, ``glossary.md#term-seed``, as at a heading."""
    for (kind, term), (page, anchor) in env.domaindata["std"]["objects"].items():
        if kind == "term":
            env.metadata[page].setdefault("myst_slugs", {})[anchor] = (0, anchor, term)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("config-inited", _configure, priority=900)
    app.connect("builder-inited", _write)
    app.connect("env-updated", _link_terms)
    app.connect("html-page-context", _drop_thebe)
    app.connect("html-page-context", _mend_body)
    app.add_css_file("mnmt.css")
    app.add_js_file("mnmt.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
