from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import papermill
import pytest
import small_book
import yaml
from small_book import ROOT, notebook, write_source

from mnmt_repro import disk_cache
from mnmt_repro.errors import InputError
from mnmt_repro.papers.pages import (
    PageError,
    book,
    build_book,
    declared_parameters,
    execute_page,
    execute_pages,
    executed,
    remote_resources,
)
from mnmt_repro.papers.pages.lessons import is_executed
from mnmt_repro.papers.pages.notebooks import match_parameters
from mnmt_repro.papers.pages.resources import raw_formulas


@pytest.fixture(scope="session")
def first_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_book.build(tmp_path_factory.getbasetemp() / "small-book")


class Elements(HTMLParser):
    """All start tags of a page with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.attributes: list[dict[str, str | None]] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append(dict(attrs))

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [each for each in self.attributes if name in (each.get("class") or "").split()]


def test_a_page_whose_process_is_killed_is_named(tmp_path: Path) -> None:
    killed = notebook("import os\nos.kill(os.getppid(), 9)")  # as where memory runs out
    source = write_source(tmp_path, killed=killed, well=notebook("1"))
    pages = {Path(f"book/{name}.ipynb"): {} for name in ("killed", "well")}
    done = execute_pages(source, pages)
    assert next(done)[0].stem == "well"
    with pytest.raises(
        PageError, match="^1 of 2 .*\n\nbook/killed.ipynb: its process ended with -9"
    ):
        next(done)


@pytest.mark.usefixtures("late_kernel")
def test_a_page_of_a_slow_kernel_is_executed(tmp_path: Path) -> None:
    source = write_source(tmp_path, first=notebook("7 * 6"))
    page = execute_page(source / "book/first.ipynb", {})
    assert page.cells[-1].outputs[0].data["text/plain"] == "42"


def test_the_printed_book_holds_charts_and_has_a_name(tmp_path: Path) -> None:
    cells = "scale = 1", small_book.CHART, small_book.TABLE
    source = write_source(tmp_path, first=notebook(*cells))
    begin = "from jupyter_book.cli.main import main; main()"
    command = ["-c", begin, "build", str(source), "--builder", "custom"]
    for kind in ("epub", "latex"):
        subprocess.run([sys.executable, *command, "--custom-builder", kind], check=True)
    title = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"]
    (book,) = tmp_path.glob("_build/epub/*.epub")
    with zipfile.ZipFile(book) as file:
        page = ElementTree.fromstring(file.read("book/first.xhtml"))
        assert title in file.read("content.opf").decode()
    images = [each.get("src", "") for each in page.iter() if each.tag.endswith("}img")]
    assert any(image.startswith("data:image/svg+xml") for image in images)
    (tex,) = tmp_path.glob("_build/latex/*.tex")
    assert f"\\title{{{title}}}" in tex.read_text("utf-8")
    (chart,) = re.findall(r"includegraphics{{(\w+)}.pdf}", tex.read_text("utf-8"))
    assert (tex.parent / f"{chart}.pdf").read_bytes().startswith(b"%PDF")


def write(path: Path, page: nbformat.NotebookNode) -> Path:
    nbformat.write(page, path)
    return path


# Parameters


def test_declared_parameters_are_read_with_their_defaults(tmp_path: Path) -> None:
    source = "tier = 'mini'\n# which\nseeds: list[int] = [1, 2]\nq = -0.5"
    page = write(tmp_path / "page.ipynb", notebook("x = 3", parameters=source))
    assert declared_parameters(page) == {"tier": "mini", "seeds": [1, 2], "q": -0.5}
    assert declared_parameters(write(page, notebook("x = 3"))) == {}


@pytest.mark.parametrize("source", ["import os", "a, b = 1, 2", "seed = int('1')", "seed = "])
def test_a_parameters_cell_of_anything_else_is_refused(tmp_path: Path, source: str) -> None:
    page = write(tmp_path / "page.ipynb", notebook(parameters=source))
    with pytest.raises(InputError, match="page.ipynb.*may only assign literals"):
        declared_parameters(page)


def test_a_broken_notebook_is_an_input_error(tmp_path: Path) -> None:
    page = tmp_path / "page.ipynb"
    page.write_text("no notebook", encoding="utf-8")
    with pytest.raises(InputError, match=r"page\.ipynb: not a notebook"):
        declared_parameters(page)


def test_a_value_goes_to_each_page_that_declares_its_name() -> None:
    a, b, c = map(Path, "abc")
    declared: dict[Path, dict[str, Any]] = {a: {"tier": "mini", "q": 0.5}, b: {"tier": "x"}, c: {}}
    matched = match_parameters(declared, {"tier": "gpu", "q": 2})
    assert matched == {a: {"tier": "gpu", "q": 2.0}, b: {"tier": "gpu"}, c: {}}
    assert isinstance(matched[a]["q"], float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"teir": "gpu"}, "no page has a parameter 'teir'; did you mean tier"),
        ({"tier": 3}, "a: parameter 'tier' is a str .* got the int 3"),
        ({"seed": True}, "parameter 'seed' is a int"),
        ({"sizes": "4, 8"}, r"'sizes' is a list \(default \[4\]\), but got the str '4, 8'"),
    ],
)
def test_an_unknown_or_mistyped_parameter_is_an_error(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        match_parameters({Path("a"): {"tier": "mini", "seed": 1, "sizes": [4]}}, values)


# The built book


def test_the_page_shows_the_chart_with_all_a_reader_needs(first_page: Path) -> None:
    page = Elements(first_page.with_name("chart.html"))
    alt = 'The loss falls with "size" & weight <p>.'
    (image,) = page.of_class("mnmt-static")
    assert image["alt"] == alt
    assert (first_page.parent / (image["src"] or "")).read_bytes().startswith(b"<svg")
    (live,) = page.of_class("mnmt-live")
    assert live["aria-label"] == alt
    (badge,) = page.of_class("mnmt-badge")
    assert badge["data-verdict"] == "reproduced"
    assert badge["title"] == "R² 0.999, rule: at least 0.99"
    assert len(page.of_class("mnmt-provenance")) == 2
    text = first_page.with_name("chart.html").read_text(encoding="utf-8")
    assert "Ends no script: &lt;/script&gt;." in text
    command = re.sub("<[^>]+>", "", text)
    assert "mnmt-repro book --only" in command and "-p scale=1" in command


def test_the_data_can_be_downloaded_as_computed_with_the_changed_parameter(
    first_page: Path,
) -> None:
    chart, table = Elements(first_page.with_name("chart.html")).of_class("mnmt-download")
    assert (chart["download"], table["download"]) == ("law.csv", "rows.csv")
    law, rows = ((first_page.parent / (link["href"] or "")).read_text() for link in (chart, table))
    assert law == (  # scale = 2 in place of the page's own 1
        "n,p,loss\n1,0.5,8.0\n10,0.5,6.0\n100,0.5,4.0\n1,1.0,6.0\n10,1.0,4.0\n100,1.0,2.0\n"
    )
    assert rows == "pair,tokens,gap,marked\nb,20,0.5,+0.0\na,1000,,-0.8(*)\nc,3,-1.0,-10.0*\n"


def test_the_book_loads_nothing_from_elsewhere(first_page: Path) -> None:
    html = first_page.parents[1]
    assert remote_resources(html) == []
    names = {path.name for path in (html / "_static").iterdir()}
    assert {"mnmt.css", "mnmt.js", "vega.js", "mathjax.js"} <= names
    page = first_page.read_text(encoding="utf-8")
    assert re.search(r'<script [^>]*src="\.\./_static/mathjax\.js', page)


def test_a_page_has_one_title_and_what_jupyterlab_takes_for_a_comment(first_page: Path) -> None:
    page = first_page.with_name("chart.html").read_text(encoding="utf-8")
    assert page.count("<h1") == 1 and "<strong>Only here.</strong>" in page


def test_a_link_leads_to_its_term(first_page: Path) -> None:
    assert 'id="term-seed"' in first_page.read_text(encoding="utf-8")
    page = first_page.with_name("chart.html").read_text(encoding="utf-8")
    assert re.search(r'href="first\.html#term-seed">.*seed', page)


def test_formulas_that_a_cell_prints_are_typeset(first_page: Path) -> None:
    page = first_page.with_name("system.html").read_text(encoding="utf-8")
    assert len(re.findall(r'class="math [^"]*"', page)) == 2
    assert raw_formulas(first_page.parents[1]) == []


def test_formulas_shown_as_source_are_listed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        r"""
        <p>It is $$ \beta </p><p>here $L_\infty$ too</p><p>from $5 to $6</p>
        <code>$$</code><script>"$$"</script><pre>echo $\alpha$</pre><p>\(\beta\)</p>
        """,
        encoding="utf-8",
    )
    assert [text for _, text in raw_formulas(tmp_path)] == [
        r"It is $$ \beta",
        r"here $L_\infty$ too",
    ]


def test_remote_resources_are_listed_wherever_they_hide(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        """
        <link rel="stylesheet" href="https://a.example/s.css">
        <link rel="canonical" href="https://ours.example/">
        <a href="https://b.example/">a link is fine</a>
        <script src="//c.example/s.js"></script>
        <script src="_static/local.js"></script>
        <img srcset="small.png 1x, http://d.example/large.png 2x" src="small.png">
        <style>@import "https://e.example/t.css";</style>
        <p style="background: url('https://f.example/b.png')">text</p>
        """,
        encoding="utf-8",
    )
    sheet = "@font-face { src: url(https://g.example/f.woff2) } p { background: url(local.png) }"
    (tmp_path / "sheet.css").write_text(sheet, encoding="utf-8")
    hosts = [re.sub(r".*//(\w)\.example.*", r"\1", url) for _, url in remote_resources(tmp_path)]
    assert sorted(hosts) == ["a", "c", "d", "e", "f", "g"]


# Failures


def test_every_failing_page_is_shown_with_its_cell(tmp_path: Path) -> None:
    source = write_source(
        tmp_path / "s",
        first="# First\n",
        sums=notebook("one = 1", "one / 0"),
        names=notebook("undefined_name"),
        good=notebook("print('fine')"),
    )
    with pytest.raises(PageError) as caught:
        build_book(source, jobs=2)
    message = str(caught.value)
    assert message.startswith("2 of 3 pages failed")
    assert "book/sums.ipynb, cell 3: ZeroDivisionError: division by zero" in message
    assert "book/names.ipynb, cell 2: NameError" in message
    assert "\x1b" not in message
    assert not (source / "_build" / "html").exists()
    assert [path.name for path in (source / "_build").rglob("*.ipynb")] == ["good.ipynb"]


def test_a_warning_of_the_typesetting_fails_the_build(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s", first="# First\n\n[nowhere](missing.md)\n")
    with pytest.raises(PageError, match=r"missing\.md"):
        build_book(source)


def test_a_resource_of_another_host_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typeset(source: Path, toc: Path, output: Path, *_: Any, **given: bool) -> None:
        page = output / "_build" / "html" / "book" / "first.html"
        page.parent.mkdir(parents=True)
        page.write_text('<img src="https://example.org/a.png" alt="far away">', encoding="utf-8")

    monkeypatch.setattr(book, "_typeset", typeset)
    with pytest.raises(PageError, match=r"book/first\.html: https://example\.org/a\.png"):
        build_book(write_source(tmp_path / "s", first="# First\n"))


def test_a_page_that_is_not_there_is_named(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s", first="# First\n", second="# Second\n")
    (source / "book" / "second.md").unlink()
    with pytest.raises(InputError, match="'book/second' has neither an .md nor an .ipynb file"):
        build_book(source)
    (source / "_toc.yml").unlink()
    with pytest.raises(InputError, match="_toc.yml is missing"):
        build_book(source)


# Builds that are never stale


@pytest.fixture
def executions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Ask for the executed pages of a book; the names of those that had to be executed."""
    for name in ("package", "root/data", "root/data/results", "store"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.py").write_text("x = 1", encoding="utf-8")
    monkeypatch.setattr(disk_cache, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(executed, "ROOT", tmp_path / "root")
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(tmp_path / "root" / "data" / "results"))
    source = write_source(
        tmp_path / "s",
        first=notebook("print(seed)", parameters="seed = 1\nstore = ''"),
        second=notebook("print(2)"),
    )

    def ask(**parameters: Any) -> list[str]:
        names = []

        def execute(source: Path, pages: dict[Path, Any], **_: Any) -> Iterator[Any]:
            for page in pages:
                names.append(page.stem)
                yield page, nbformat.read(source / page, as_version=4)

        monkeypatch.setattr(executed, "execute_pages", execute)
        pages = [Path("book/first.ipynb"), Path("book/second.ipynb")]
        executed.executed_pages(source, tmp_path / "executed", pages, parameters=parameters)
        return names

    assert ask() == ["first", "second"]
    return ask


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("s/book/second.ipynb", ["second"]),
        ("package/file.py", ["first", "second"]),
        ("root/data/results/file.py", ["first", "second"]),
        ("s/book/table.csv", ["first", "second"]),
        ("s/book/prose.md", []),
    ],
)
def test_a_page_is_executed_when_what_it_reads_changed(
    executions: Callable[..., list[str]], tmp_path: Path, changed: str, expected: list[str]
) -> None:
    assert executions() == []
    path = tmp_path / changed
    if path.suffix == ".ipynb":
        write(path, notebook("print(3)"))
    else:
        path.write_text("x = 2", encoding="utf-8")
    assert executions() == expected
    assert executions() == []


def test_a_page_is_executed_for_other_values_and_settings(
    executions: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert executions(seed=2) == ["first"]
    assert executions(seed=2) == []
    assert executions() == ["first"]  # only the last execution is kept
    assert executions(store=str(tmp_path / "store")) == ["first"]
    (tmp_path / "store" / "file.py").write_text("x = 2", encoding="utf-8")
    assert executions(store=str(tmp_path / "store")) == ["first"]
    monkeypatch.setenv("MNMT_REPRO_RESULTS", str(tmp_path / "store"))
    assert executions() == ["first", "second"]


def test_an_unchanged_book_is_not_built_again(
    first_page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, before = first_page.parents[3], first_page.stat().st_mtime_ns
    typeset: list[Path] = []

    def nothing(source: Path, pages: dict, **_: Any) -> Iterator[Any]:
        assert pages == {}
        return iter(())

    monkeypatch.setattr(executed, "execute_pages", nothing)
    monkeypatch.setattr(book, "_typeset", lambda *paths, **given: typeset.append(paths[0]))
    assert build_book(source, parameters={"scale": 2}) == first_page
    assert not typeset and first_page.stat().st_mtime_ns == before
    path = source / "_config.yml"
    text = path.read_text(encoding="utf-8")
    html = shutil.copytree(first_page.parents[1], source / "copy")
    path.write_text(text + "\n\n# changed\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError):  # the HTML is not there
        build_book(source, parameters={"scale": 2})
    path.write_text(text, encoding="utf-8")
    html.rename(first_page.parents[1])
    assert typeset == [source]


def test_an_edited_page_is_written_and_others_with_it_only_where_they_show_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def second(markdown: str) -> nbformat.NotebookNode:
        return notebook("print(6 * 7)", markdown=markdown)

    source = write_source(
        tmp_path / "s",
        first="# First\n\nSee [](second.ipynb).\n",
        second=second("# Second\n\nOld words."),
        third="# Third\n\n{cite:t}`fernandes-2023`\n\n```{bibliography}\n```\n",
    )
    html = build_book(source, jobs=1).parent
    assert "1 pages executed" in capfd.readouterr().err
    before = {path.stem: path.stat().st_mtime_ns for path in html.iterdir()}
    write(source / "book" / "second.ipynb", second("# Second\n\nNew words."))
    build_book(source, jobs=1)
    assert "0 pages executed" in capfd.readouterr().err
    text = (html / "second.html").read_text(encoding="utf-8")
    assert "New words." in text and "Old words." not in text and "42" in text
    changed = {each.stem for each in html.iterdir() if each.stat().st_mtime_ns != before[each.stem]}
    assert "second" in changed and "third" not in changed  # the first holds the contents
    write(source / "book" / "second.ipynb", second("# Renamed\n\nNew words."))
    build_book(source, jobs=1)
    for name in ("first", "third"):  # a link, and the table of contents
        text = (html / f"{name}.html").read_text(encoding="utf-8")
        assert "Renamed" in text and "Second" not in text


def test_some_pages_are_built_beside_the_book(first_page: Path) -> None:
    source = first_page.parents[3]
    page = build_book(source, parameters={"scale": 2}, only=["chart", "book/first"])
    assert page == source / "_build" / "only" / "_build" / "html" / "book" / "chart.html"
    assert "Made up." in page.read_text(encoding="utf-8") and first_page.is_file()
    assert page.with_name("first.html").is_file()
    assert not page.with_name("system.html").exists()
    with pytest.raises(InputError, match="--only chrat: no such page; did you mean chart"):
        build_book(source, only=["first", "chrat"])


def test_plain_jupyter_book_executes_for_real(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s", first=notebook("print(6 * 8)"))
    code = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", code, "build", str(source)]
    html = source / "_build" / "html"
    for cell, status in (("print(6 * 8)", 0), ("one / 0", 1)):
        write(source / "book" / "first.ipynb", notebook(cell))
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
    assert "book/first.ipynb, cell 2: NameError" in done.stdout + done.stderr
    assert "48" in (html / "book" / "first.html").read_text(encoding="utf-8")
    assert remote_resources(html) == []


# The repository's own pages


def test_source_notebooks_hold_no_outputs_but_those_of_lessons() -> None:
    for path in sorted((ROOT / "book").rglob("*.ipynb")):
        declared_parameters(path)
        page = nbformat.read(path, as_version=4)
        for cell in page.cells:
            if cell.cell_type == "code" and not is_executed(page):
                assert cell.outputs == [] and cell.execution_count is None, path


def test_pages_can_be_read_in_jupyterlab_and_run_by_papermill() -> None:
    for path in sorted((ROOT / "book").rglob("*.ipynb")):
        assert set(papermill.inspect_notebook(str(path))) == set(declared_parameters(path)), path
        for cell in nbformat.read(path, as_version=4).cells:
            folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            assert folded == ("hide-input" in cell.metadata.get("tags", [])), (path, cell.id)
            seen = re.sub(r"^<!-- book\n.*?\n-->$", "", cell.source, flags=re.DOTALL | re.MULTILINE)
            assert cell.cell_type == "code" or "{glue}" not in seen, (path, cell.id)


def test_every_page_is_in_the_table_of_contents() -> None:
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:root|file): (\S+)", toc))
    pages = [p for p in (ROOT / "book").rglob("*") if p.suffix in (".md", ".ipynb")]
    assert {p.relative_to(ROOT).with_suffix("").as_posix() for p in pages} == listed
    assert yaml.safe_load(toc)["format"] == "jb-book"
