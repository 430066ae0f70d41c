"""Techniques taken out or exchanged: Paper B's Tables 3 to 6 and 11 (right), and its remarks.

A cell is a variant on a group of directions: the printed score with its difference from the control
and mark, and our loss with its gain over the same control.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mnmt_repro.claims.estimands_upgrade import directions_of
from mnmt_repro.claims.published import comparisons, printed_rows
from mnmt_repro.experiments.catalogue import find_cohort
from mnmt_repro.experiments.variants import VariantCohort
from mnmt_repro.figures.audit.tables import GROUPS
from mnmt_repro.figures.contrasts import NO_GAIN, Bench, star
from mnmt_repro.figures.verdicts import cell_table

SHARE = 0.3  # of the baselines' updates: all ablations are scored after 30k


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """A table of the paper, or a remark without one, in which variants meet their controls."""

    where: str
    cohort: str
    number: int = 0  # of the printed table; 0: the paper prints no numbers
    controls: tuple[str, ...]  # one for each model
    setup: str  # what the control is
    claims: tuple[str, ...]
    groups: tuple[str, ...] = GROUPS

    @property
    def name(self) -> str:
        """For anchors and files."""
        return self.cohort.removeprefix("software25-")

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the runs, in the order of the table; some are ours alone."""
        cohort = find_cohort(self.cohort)
        assert isinstance(cohort, VariantCohort)
        return tuple(dict.fromkeys(v.name for v in cohort.variants if v.updates_share == SHARE))

    def control_of(self, variant: str) -> str:
        """The control of a variant: that of its model, where there are several.

        >>> ABLATIONS[0].control_of("Mt25-wide, no up-sampling")
        'Mt25-wide, full recipe'
        """
        if len(self.controls) == 1:
            return self.controls[0]
        (control,) = (c for c in self.controls if c.split(",")[0] == variant.split(",")[0])
        return control


ABLATIONS = (
    Ablation(
        where="Table 3",
        cohort="software25-table3",
        number=3,
        controls=("Mt25, full recipe", "Mt25-wide, full recipe", "Mt25-deep, full recipe"),
        setup="the full recipe of the same model",
        claims=("B4",),
    ),
    Ablation(
        where="Table 4",
        cohort="software25-table4",
        number=4,
        controls=(
            "Mt25, new embeddings from unk",
            "Mt25-wide, concatenation",
            "Mt25-deep, average layer",
        ),
        setup="the paper's choice, with neither learning-rate scaling nor up-sampling of related "
        "languages (its footnote 9)",
        claims=("B5", "B6", "B7"),
    ),
    Ablation(
        where="Table 5",
        cohort="software25-table5",
        number=5,
        controls=("alpha 1",),
        setup="no up-sampling; Mt25 without learning-rate scaling",
        claims=("B8", "B19"),
    ),
    Ablation(
        where="Table 6",
        cohort="software25-table6",
        number=6,
        controls=("old 1, new 1",),
        setup="no scaling; Mt25-wide without up-sampling of related languages",
        claims=("B9",),
    ),
    Ablation(
        where="Table 11, right",
        cohort="software25-table11",
        number=11,
        controls=("full recipe",),
        setup="the full recipe of Mt25-wide, which slows down all old weights (Table 3)",
        claims=("B15",),
    ),
    Ablation(
        where="Footnote 7",
        cohort="software25-schedule",
        controls=("not reset",),
        setup="Mt25 with the full recipe, whose schedule goes on",
        claims=("B17",),
    ),
    Ablation(
        where="§4.2",
        cohort="software25-insertion",
        controls=("encoder bottom, decoder top",),
        setup="Mt25-deep with the full recipe, new layers where the paper has them",
        claims=("B18",),
    ),
    Ablation(
        where="Footnote 10",
        cohort="software25-noise",
        controls=("no noise",),
        setup="Mt25-wide as in Table 4, its new units copied without noise",
        claims=("B16",),
    ),
)


def cells(
    ablation: Ablation, bench: Bench, stored: Sequence[Mapping[str, Any]] = ()
) -> pd.DataFrame:
    """A table of the paper beside ours, a row a cell.

    Parameters
    ----------
    stored
        From `claims.read_stored`; its verdicts are those of the claims' own setting.

    Returns
    -------
    DataFrame
        ``variant, group``; ``paper``, ``difference`` and ``mark``: the printed spBLEU, less its
        control's, and whether that is significant (in brackets where the table prints no marks and
        the difference is one that the claims take for noticeable); our ``loss``, the columns
        `contrasts.GAIN` and ``seeds``; the cell's ``verdict``. Controls have no differences, and
        variants that only we ran no printed numbers.
    """
    printed = _printed(ablation)
    verdicts = cell_table(stored, *ablation.claims).set_index(["variant", "group"])["verdict"]
    rows = []
    for variant in ablation.variants:
        mine, control = bench.variant(variant, SHARE), ablation.control_of(variant)
        base = bench.variant(control, SHARE)
        for group in ablation.groups:
            pairs = directions_of(group)
            rows.append(
                {
                    "variant": variant,
                    "group": group,
                    **printed.get((variant, group), _NOT_PRINTED),
                    "loss": bench.mean(mine, pairs),
                    **(NO_GAIN if variant == control else bench.gain(mine, base, pairs)),
                    "seeds": bench.seeds(pairs, mine, base),
                    "verdict": verdicts.get((variant, group), None),
                }
            )
    return pd.DataFrame(rows)


_NOT_PRINTED = {"paper": math.nan, "difference": math.nan, "mark": ""}


def _printed(ablation: Ablation) -> dict[tuple[str, str], dict[str, Any]]:
    """Printed score, difference and mark by variant and group; empty without a table."""
    if not ablation.number:
        return {}
    rows = printed_rows(ablation.number)
    found = {
        (row["variant"], row["group"]): {**_NOT_PRINTED, "paper": float(row["value"])}
        for row in rows
    }
    marks = any(row["mark"] for row in rows)
    for cell in comparisons(ablation.number, ablation.controls):
        mark = star(cell.marked) if marks or not cell.marked else "(*)"
        found[cell.treated, cell.group] |= {"difference": cell.difference, "mark": mark}
    return found


def agreement(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many cells agree with the paper.

    Parameters
    ----------
    tables
        Name of each table to what `cells` returns.

    Returns
    -------
    DataFrame
        ``where``; ``differences`` that are printed, ``with rows`` of ours; of these ``not zero`` in
        the paper and ``same sign`` here; ``marked`` by the paper and then ``marked here``, with the
        same sign or the other. The last row adds them up.
    """
    rows = []
    for where, table in tables.items():
        printed = table.dropna(subset=["difference"])
        both = printed.dropna(subset=["gain, %"])
        signs = np.sign(both["difference"].round(6)) * np.sign(both["gain, %"])
        marked = both["mark"] != ""
        ours = marked & (both["our mark"] == "*")
        rows.append(
            {
                "where": where,
                "differences": len(printed),
                "with rows": len(both),
                "not zero": int((both["difference"].round(6) != 0).sum()),
                "same sign": int((signs > 0).sum()),
                "marked": int(marked.sum()),
                "marked here": int((ours & (signs > 0)).sum()),
                "marked here, other sign": int((ours & (signs < 0)).sum()),
            }
        )
    frame = pd.DataFrame(rows)
    total = frame.drop(columns="where").sum()
    return pd.concat([frame, pd.DataFrame([{"where": "all", **total}])], ignore_index=True)


def in_words(counts: pd.DataFrame) -> str:
    """What `agreement` comes to, in a sentence or two."""
    whole = counts.iloc[-1]
    if whole["with rows"] == 0:
        return f"None of the {whole['differences']} printed differences has rows of ours yet."
    return (
        f"Of the {whole['differences']} differences that the paper prints, {whole['with rows']} "
        f"have rows of ours. Of these, {whole['not zero']} are not zero in print, and "
        f"{whole['same sign']} of them have the same sign here; {whole['marked']} are marked in "
        f"print, {whole['marked here']} of them are significant here with the same sign, and "
        f"{whole['marked here, other sign']} with the other."
    )
