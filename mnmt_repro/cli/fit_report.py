"""`fit --report`: the notebook `fit_report.ipynb`, executed with the options, as one HTML file."""

from __future__ import annotations

import dataclasses
import html
from importlib import resources

from mnmt_repro.cli.losses_table import TableOptions
from mnmt_repro.errors import InputError


def fit_report(options: TableOptions) -> str:
    """The executed notebook as HTML that needs no other file and runs no script."""
    import papermill
    from nbconvert import HTMLExporter

    # Only what was asked for: the first cell then says what the report is of.
    plain = {"file": str, "where": list, "column": list}  # papermill takes no path and no tuple
    asked = {
        each.name: plain.get(each.name, lambda value: value)(value)
        for each in dataclasses.fields(options)
        if (value := getattr(options, each.name)) != each.default
        and each.name not in ("report", "json")
    }
    with resources.as_file(resources.files("mnmt_repro.cli") / "fit_report.ipynb") as notebook:
        try:
            executed = papermill.execute_notebook(
                notebook,
                None,
                {"options": asked},
                kernel_name="python3",
                progress_bar=False,
                iopub_timeout=600,  # its 4 seconds are too few on a busy machine
                extra_arguments=["--log-level=ERROR"],
            )
        except RuntimeError as error:  # the kernel died, or another program took its port
            raise InputError(f"--report: its notebook did not run ({error}); try again") from error
    # The other templates of nbconvert fetch scripts from the network.
    exporter = HTMLExporter(
        template_name="basic",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        anchor_link_text="",
    )
    title = f"Scaling laws of {options.file.name}"
    body, _ = exporter.from_notebook_node(executed)
    return page(title, f"<h1>{html.escape(title)}</h1>\n{body}")


def page(title: str, body: str, style: str = "") -> str:
    """Write an HTML file that needs no other file, from the HTML of its body and more CSS."""
    from jinja2 import PackageLoader

    from mnmt_repro.templates import templates

    template = templates(PackageLoader("mnmt_repro.cli")).get_template("page.html")
    return template.render(title=title, body=body, style=style)
