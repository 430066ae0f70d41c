"""Pages: their declared parameters, and their execution by papermill, several at once."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from multiprocessing import connection
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode
from tqdm import tqdm

from mnmt_repro.errors import InputError, remedy

CELL_TIMEOUT = 600  # seconds; a page reads cached results, so this only ends a hang
KERNEL_STARTS = 3  # Jupyter picks free ports before its kernel opens them; others may be faster
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class PageError(RuntimeError):
    """One or more pages failed to execute; the message shows each failing cell and its error."""


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """Read the parameters that a page declares, with their default values.

    They are the assignments in the cell tagged `parameters`; each must assign a literal, such as
    ``tier = "mini"`` or ``seeds: list[int] = [1, 2]``. A page without such a cell has none.

    Raises
    ------
    InputError
        If the file is no notebook, or the cell holds anything but such assignments.
    """
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError) as error:
        raise InputError(f"{notebook}: not a notebook ({error}); expected .ipynb JSON") from error
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    parameters: dict[str, Any] = {}
    try:
        for statement in ast.parse("\n".join(cell.source for cell in tagged)).body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    parameters[name] = ast.literal_eval(value)
                case _:
                    raise ValueError(ast.unparse(statement))
    except (SyntaxError, ValueError) as error:
        raise InputError(
            f"{notebook}: the `parameters` cell may only assign literals to names ({error})"
        ) from error
    return parameters


def match_parameters(
    declared: Mapping[Path, Mapping[str, Any]], values: Mapping[str, Any]
) -> dict[Path, dict[str, Any]]:
    """Hand each value to every page that declares a parameter of that name.

    Parameters
    ----------
    declared
        Page to the parameters that it declares.
    values
        Name to value.

    Returns
    -------
    dict
        Page to the values that replace its defaults.

    Raises
    ------
    InputError
        If no page declares a name, or a value's type is not that of the page's default.

    Examples
    --------
    >>> match_parameters({Path("a"): {"seed": 1}}, {"sed": 2})
    Traceback (most recent call last):
    mnmt_repro.errors.InputError: no page has a parameter 'sed'; did you mean seed?
    """
    known = sorted({name for parameters in declared.values() for name in parameters})
    for name in values:
        if name not in known:
            raise InputError(f"no page has a parameter {name!r}; {remedy(name, known)}")
    return {
        page: {
            name: _same_type(page, name, default, values[name])
            for name, default in parameters.items()
            if name in values
        }
        for page, parameters in declared.items()
    }


def _same_type(page: Path, name: str, default: Any, value: Any) -> Any:
    """Return `value` if it may replace `default`: one type, an int for a float, or either None."""
    if default is None or value is None or type(value) is type(default):
        return value
    if isinstance(default, float) and type(value) is int:
        return float(value)
    raise InputError(
        f"{page}: parameter {name!r} is a {type(default).__name__} (default {default!r}), "
        f"but got the {type(value).__name__} {value!r}"
    )


def execute_page(source: Path, parameters: Mapping[str, Any], name: str = "") -> NotebookNode:
    """Execute a page in a kernel of its own, and return it with its outputs.

    Parameters
    ----------
    source
        The notebook. Its cells run in its folder.
    parameters
        Values that replace those of the page's `parameters` cell.
    name
        How messages call the page; by default its path.

    Raises
    ------
    PageError
        With page, cell and error.
    """
    import papermill  # slow to import
    from papermill.exceptions import PapermillExecutionError

    name = name or str(source)
    for starts_left in reversed(range(KERNEL_STARTS)):
        try:
            return papermill.execute_notebook(
                str(source),
                None,
                parameters=dict(parameters),
                kernel_name="python3",
                cwd=source.parent,
                progress_bar=False,
                execution_timeout=CELL_TIMEOUT,
                iopub_timeout=CELL_TIMEOUT,  # its 4 seconds are too few on a busy machine
                extra_arguments=["--log-level=CRITICAL"],  # of the kernel's log, not of the page
            )
        except PapermillExecutionError as error:
            where = f"{name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
            trace = without_colours("\n".join(error.traceback))
            raise PageError(f"{where}\n{trace}") from error
        except Exception as error:  # a dead kernel, a timeout: whatever it is, it names its page
            lost_port = "before replying to kernel_info" in str(error)
            if not (lost_port and starts_left):
                raise PageError(f"{name}: {type(error).__name__}: {error}") from error
    raise AssertionError("the last start returns or raises")


def execute_pages(
    source: Path, pages: Mapping[Path, Mapping[str, Any]], *, jobs: int | None = None
) -> Iterator[tuple[Path, NotebookNode]]:
    """Execute pages, `jobs` at once in kernels of their own; yield each as it ends.

    Parameters
    ----------
    source
        Folder of the book.
    pages
        Page, relative to `source`, to the values of its parameters.
    jobs
        Pages executed at once. The default is one more than the processors, because a kernel waits
        while it starts and ends.

    Raises
    ------
    PageError
        After the last page, with the error of each page that failed.
    """
    if not pages:
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the pages already share the cores
    errors = []
    with tqdm(total=len(pages), desc="executing pages", unit="page", disable=None) as bar:
        for page, executed in _in_processes(source, pages, jobs or (os.cpu_count() or 1) + 1):
            bar.update()
            if isinstance(executed, PageError):
                bar.write(f"FAILED {page}", file=sys.stderr)
                errors.append(str(executed))
            else:
                bar.write(f"done   {page}", file=sys.stderr)
                yield page, executed
    if errors:
        raise PageError(f"{len(errors)} of {len(pages)} pages failed\n\n" + "\n\n".join(errors))


def _in_processes(
    source: Path, pages: Mapping[Path, Mapping[str, Any]], jobs: int
) -> Iterator[tuple[Path, NotebookNode | PageError]]:
    """Execute each page in a process; a pool would wait for ever for one that is killed."""
    waiting = list(pages.items())
    running: dict[Any, tuple[Path, multiprocessing.Process]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            page, values = waiting.pop(0)
            ours, theirs = multiprocessing.Pipe(duplex=False)
            asked = theirs, source / page, values, str(page)
            # As a daemon it ends with this process, also by Ctrl-C, and its kernel with it.
            process = multiprocessing.Process(target=_attempt, args=asked, daemon=True)
            process.start()
            theirs.close()
            running[ours] = page, process
        ends: Any = connection.wait(list(running))
        for end in ends:
            page, process = running.pop(end)
            try:
                yield page, end.recv()
            except EOFError:
                process.join()
                why = f"its process ended with {process.exitcode}; is there enough memory?"
                yield page, PageError(f"{page}: {why}")


def _attempt(end: connection.Connection, *asked: Any) -> None:
    try:
        end.send(execute_page(*asked))
    except PageError as error:
        end.send(error)


def fold_parameters(page: NotebookNode) -> None:
    """Fold the cell of parameters between title and answer, on a page that folds other code."""
    tags = [cell.metadata.get("tags", []) for cell in page.cells]
    if any("hide-input" in each for each in tags[2:]) and "parameters" in tags[1]:
        prompts = {"code_prompt_show": "Parameters", "code_prompt_hide": "Hide the parameters"}
        page.cells[1].metadata |= {"tags": [*tags[1], "hide-input"], "mystnb": prompts}


def command_cell(page: Path, parameters: Mapping[str, Any]) -> NotebookNode:
    """The end of an executed page: the command that executes it with other parameters."""
    options = [f"-p {shlex.quote(f'{name}={_yaml(value)}')}" for name, value in parameters.items()]
    name = page.with_suffix("").as_posix().removeprefix("book/")
    command = " \\\n  ".join([f".venv/bin/mnmt-repro book --only {name}", *options])
    text = "**Run this page with other parameters.** Its last line says where the new page is."
    return nbformat.v4.new_markdown_cell(f"---\n\n{text}\n\n```sh\n{command}\n```", id="command")


def _yaml(value: Any) -> str:
    if value == "":
        return ""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("...\n").strip()


def without_colours(text: str) -> str:
    """Strip the codes that colour text on a terminal."""
    return _ANSI.sub("", text)
