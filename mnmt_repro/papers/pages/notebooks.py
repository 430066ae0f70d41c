"""Pages: their declared parameters, and their execution by papermill, several at once."""

from __future__ import annotations

import ast
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
import yaml

from mnmt_repro.errors import InputError, remedy

CELL_TIMEOUT = 600  # seconds; a page reads cached results, so this only ends a hang
KERNEL_STARTS = 3  # Jupyter picks free ports before its kernel opens them; others may be faster
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class PageError(RuntimeError):
    """One or more pages failed to execute; the message shows each failing cell and its error."""


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """One page to execute, and how that went.

    Parameters
    ----------
    source, output
        The notebook without outputs, and where the executed one is written.
    name
        How messages call the page.
    parameters
        Values that replace those of the page's `parameters` cell.
    folder
        Where its cells run; by default that of `output`.
    seconds
        Wall time of the execution; 0 before it.
    error
        The failing cell and its error, ready to print; empty when the page succeeded.
    """

    source: Path
    output: Path
    name: str
    parameters: Mapping[str, Any]
    folder: Path | None = None
    seconds: float = 0.0
    error: str = ""


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
    if not tagged:
        return {}
    if len(tagged) > 1:
        raise InputError(f"{notebook}: {len(tagged)} cells are tagged `parameters`; keep one")
    try:
        statements = ast.parse(tagged[0].source).body
    except SyntaxError as error:
        raise InputError(f"{notebook}: the `parameters` cell is not Python ({error})") from error
    parameters: dict[str, Any] = {}
    for statement in statements:
        try:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    parameters[name] = ast.literal_eval(value)
                case ast.Expr(value=ast.Constant()):
                    pass  # a bare string, as a comment
                case _:
                    raise ValueError
        except ValueError:
            raise InputError(
                f"{notebook}: the `parameters` cell may only assign literals to names, "
                f"not {ast.unparse(statement)!r}"
            ) from None
    return parameters


def match_parameters(
    declared: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Hand each given value to every page that declares a parameter of that name.

    Parameters
    ----------
    declared
        Page name to the parameters that page declares.
    given
        The values asked for.

    Returns
    -------
    dict
        Page name to the values that replace its defaults.

    Raises
    ------
    InputError
        If no page declares a name, or a value's type is not that of the page's default.

    Examples
    --------
    >>> match_parameters({"a": {"seed": 1}, "b": {}}, {"seed": 2})
    {'a': {'seed': 2}, 'b': {}}
    >>> match_parameters({"a": {"seed": 1}}, {"sed": 2})
    Traceback (most recent call last):
    mnmt_repro.errors.InputError: no page has a parameter 'sed'; did you mean seed?
    """
    known = sorted({name for parameters in declared.values() for name in parameters})
    for name in given:
        if name not in known:
            raise InputError(f"no page has a parameter {name!r}; {remedy(name, known)}")
    matched: dict[str, dict[str, Any]] = {page: {} for page in declared}
    for page, parameters in declared.items():
        for name in given.keys() & parameters.keys():
            matched[page][name] = _same_type(page, name, parameters[name], given[name])
    return matched


def _same_type(page: str, name: str, default: Any, value: Any) -> Any:
    """Return `value` if it may replace `default`: one type, an int for a float, or either None.

    A text in place of a list is a list of names between commas.
    """
    if isinstance(default, list) and isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
        if not all(isinstance(item, str) for item in default):
            raise InputError(
                f"{page}: parameter {name!r} is a list such as {default!r}: write it in brackets"
            )
    if default is None or value is None or type(value) is type(default):
        return value
    if isinstance(default, float) and type(value) is int:
        return float(value)
    raise InputError(
        f"{page}: parameter {name!r} is a {type(default).__name__} (default {default!r}), "
        f"but got the {type(value).__name__} {value!r}"
    )


def execute_pages(runs: Sequence[PageRun], *, jobs: int | None = None) -> Iterator[PageRun]:
    """Execute pages, `jobs` at once in kernels of their own; yield each as it ends.

    A failing page is yielded with its `error` set; the others go on. By default `jobs` is one more
    than the processors, since a kernel waits while it starts and ends.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the pages already share the cores
    pool = ThreadPoolExecutor(jobs or (os.cpu_count() or 1) + 1)
    try:
        for future in as_completed([pool.submit(_execute, run) for run in runs]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # an interruption reaches the kernels, too


def fold_parameters(page: nbformat.NotebookNode) -> None:
    """Fold the cell of parameters between title and answer, on a page that folds other code."""
    tags = [cell.metadata.get("tags", []) for cell in page.cells]
    if any("hide-input" in each for each in tags[2:]) and "parameters" in tags[1]:
        prompts = {"code_prompt_show": "Parameters", "code_prompt_hide": "Hide the parameters"}
        page.cells[1].metadata |= {"tags": [*tags[1], "hide-input"], "mystnb": prompts}


def command_cell(page: Path, parameters: Mapping[str, Any]) -> nbformat.NotebookNode:
    """The end of an executed page: the command that executes it with other parameters."""
    given = (f"-p {shlex.quote(f'{name}={_written(value)}')}" for name, value in parameters.items())
    name = page.with_suffix("").as_posix().removeprefix("book/")
    command = " \\\n  ".join([f".venv/bin/mnmt-repro book --only {name}", *given])
    said = "**Run this page with other parameters.** Change a value, then run in the repository:"
    text = f"---\n\n{said}\n\n```sh\n{command}\n```"
    return nbformat.v4.new_markdown_cell(text, id="command")


def _written(value: Any) -> str:
    if value == "":
        return ""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("...\n").strip()


def without_colours(text: str) -> str:
    """Strip the codes that colour text on a terminal."""
    return _ANSI.sub("", text)


def _papermill(run: PageRun, part: Path, folder: Path) -> None:
    """Execute a page. A kernel that lost one of its ports before it began is started again."""
    import papermill  # slow to import

    from mnmt_repro.papers.pages.preloaded import use_forked_kernels

    use_forked_kernels()
    for starts_left in reversed(range(KERNEL_STARTS)):
        try:
            papermill.execute_notebook(
                str(run.source),
                str(part),
                parameters=dict(run.parameters),
                kernel_name="python3",
                resources={"metadata": {"path": str(folder)}},  # `cwd` would move all threads
                progress_bar=False,
                execution_timeout=CELL_TIMEOUT,
                extra_arguments=["--log-level=CRITICAL"],  # of the kernel's log, not of the page
            )
            return
        except RuntimeError as error:
            if not starts_left or "before replying to kernel_info" not in str(error):
                raise


def _execute(run: PageRun) -> PageRun:
    from papermill.exceptions import PapermillExecutionError

    folder = run.folder or run.output.parent
    for each in (folder, run.output.parent):
        each.mkdir(parents=True, exist_ok=True)
    part = run.output.with_name(f"part-{run.output.name}")
    started = time.perf_counter()
    message = ""
    try:
        _papermill(run, part, folder)
        part.replace(run.output)  # papermill writes after every cell; here is a whole page or none
    except PapermillExecutionError as error:
        message = (
            f"{run.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}\n"
            + without_colours("\n".join(error.traceback))
        )
    except Exception as error:  # a dead kernel, a timeout: whatever it is, it names its page
        message = f"{run.name}: {type(error).__name__}: {error}"
    part.unlink(missing_ok=True)
    return replace(run, seconds=time.perf_counter() - started, error=message)
