"""The landing page: a row for each figure and table of both papers, and how the scales differ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair
import numpy as np
import pandas as pd
import yaml
from IPython.display import Markdown

from mnmt_repro.errors import InputError
from mnmt_repro.papers.charts.badge import NOT_MEASURED, STYLE
from mnmt_repro.papers.charts.measures import is_ratio, limit_written, measured, named
from mnmt_repro.papers.charts.template import Html, render
from mnmt_repro.papers.charts.theme import BILLIONS, INK, looks
from mnmt_repro.papers.charts.verdicts import badge, claims_by_id, headline, reason, tally
from mnmt_repro.papers.claims.report import headlines
from mnmt_repro.papers.claims.schema import EXHIBITS_FILE, OUT_OF_REACH, UNDECIDED, Exhibit
from mnmt_repro.papers.cohorts.names import span
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.repository import ROOT

NO_BREAK = "\N{NO-BREAK SPACE}"
_CLAIM = re.compile(r"\{([AB]\d+)(?: (\w+))?(?: on '([^']+)')?\}")
_THUMBNAIL = "../_attached/book/{page}/{chart}.svg"


@framed("claim", "title", "effect", "group", "verdict", "ours", "value", "low", "high", "page")
def claim_effects(stored: pd.DataFrame) -> Rows:
    """How far the effect of each claim lies from its limit, in halves of its 95 % interval.

    Ratios are compared by their logarithms, so that 0.5 and 2 lie equally far from 1.

    Parameters
    ----------
    stored
        From `claims.read_stored`.

    Returns
    -------
    DataFrame
        A row for each claim whose effect has an interval: ``claim, title``, ``effect`` (its name),
        ``group`` (paper and kind of text), ``verdict``, ``ours`` (the effect in its own unit, and
        the limit), ``value, low, high`` (positive on the claim's side of its limit) and ``page``.
    """
    for name, row in headlines(stored).iterrows():
        claim = claims_by_id()[str(name)]
        if not row["resolution"] > 0:
            continue
        of = math.log if is_ratio(row["measure"], claim.id) else float
        value, low, high = (of(row[end]) for end in ("value", "low", "high"))
        limits = [of(end) for end in np.atleast_1d(claim.limit)]
        spots = np.array([value, low, high, np.clip(np.mean(limits), low, high)])  # the middle
        above, below = spots - limits[0], limits[-1] - spots  # of a range, the nearer end counts
        beyond = {">=": above, "<=": below, "within": np.minimum(above, below)}[claim.side]
        beyond /= (high - low) / 2
        group = f"Claims of Paper {claim.paper}, measured on {row['kind']}"
        sign, limit = STYLE[row["verdict"]][0], limit_written(claim.measure, claim)
        ours = f"{sign} {measured(row['measure'], row, claim.id)}; {limit}"
        title, effect = f"{claim.id} {claim.title}", named(claim.measure, claim.id)
        drawn = (ours, beyond[0], min(beyond), max(beyond), f"{claim.page}.html")
        yield (claim.id, title, effect, group, row["verdict"], *drawn)


def effects_chart(effects: pd.DataFrame) -> altair.VConcatChart:
    """Draw `claim_effects`, a row a claim, which leads to its page, and a panel a group."""
    signs = {verdict: colour for verdict, (_, colour) in STYLE.items()}
    most = effects[["low", "high"]].abs().to_numpy().max()
    scale = altair.Scale(type="symlog", domain=[-most, most])
    title = [
        f"← the claim fails{8 * NO_BREAK}the claim holds →",
        "Distance from the limit: 1 is half of the 95 % interval (logarithmic beyond 1).",
        "A claim is decided where its whole line lies on one side of the limit.",
    ]
    panels = []
    for group, rows in effects.groupby("group", sort=False):
        last = group == effects["group"].iloc[-1]
        axis = altair.Axis(
            values=[-10, -3, -1, 0, 1, 3, 10],
            labelExpr="datum.value == 0 ? 'limit' : datum.label",
            **dict.fromkeys(("labels", "ticks", "domain"), last),
        )
        base = altair.Chart(rows).encode(
            y=altair.Y("title:N", sort=None, title=None)
            .axis(labelLimit=400, ticks=False, domain=False)
            .scale(domain=[*rows["title"]]),
            color=altair.Color("verdict:N", legend=None).scale(
                domain=[*signs], range=[*signs.values()]
            ),
            href="page:N",
            tooltip=["title", "effect", "verdict", "ours"],
        )
        x = altair.X("value:Q", scale=scale, axis=axis, title=title if last else None)
        limit = base.mark_tick(size=11, thickness=2).encode(
            altair.XDatum(0), color=altair.value(INK)
        )
        said = base.mark_text(align="left", dx=10)
        layers = altair.layer(
            limit,
            base.mark_rule(strokeWidth=2).encode(altair.X("low:Q", scale=scale), x2="high:Q"),
            base.mark_point(filled=True, size=60, opacity=1).encode(x),
            said.encode(x=altair.value("width"), text="ours:N"),
        )
        panels.append(layers.properties(title=str(group), width=300, height=18 * len(rows)))
    return altair.vconcat(*panels, spacing=6)


def scoreboard(exhibits: Sequence[Exhibit], stored: pd.DataFrame, paper: str) -> Html:
    """List the exhibits (`claims.load_exhibits`) of one paper with their stored verdicts.

    A row leads to the page that re-makes its exhibit.
    """
    own = [each for each in exhibits if each.id.startswith(f"{paper} ")]
    pictures = [_THUMBNAIL.format(page=each.page, chart=each.chart) for each in own]
    rows = [
        _row(exhibit, stored) | {"picture": picture * (picture not in pictures[:i])}
        for i, (exhibit, picture) in enumerate(zip(own, pictures, strict=True))
    ]
    words = "\n".join(f"{row['exhibit'].id}: {row['ours']}" for row in rows)
    return Html(html=render("scoreboard", rows=rows), words=words)


def what_is_missing(exhibits: Sequence[Exhibit], stored: pd.DataFrame) -> Markdown:
    """Say which exhibits are missing, re-made in part or without a verdict, and why.

    The verdicts are those of `scoreboard`, row for row.
    """
    missing = {
        OUT_OF_REACH: "Out of reach",
        NOT_MEASURED: "Drawn from earlier runs, not judged yet",
    }
    kinds = ("Not re-made", *missing.values(), "Re-made in part", "Re-made, not judged")
    lists: dict[str, dict[tuple[str, ...], list[str]]] = {kind: {} for kind in kinds}
    for exhibit in exhibits:
        badges = _row(exhibit, stored)["badges"]
        verdicts = dict(zip(exhibit.claims, (each.verdict for each in badges), strict=False))
        gaps = [f"{claim} is {said}" for claim, said in verdicts.items() if said in missing]
        if not badges:
            kind, why = kinds[4] if exhibit.page else kinds[0], exhibit.reason
        elif badges[0].verdict in missing:
            kind, why = missing[badges[0].verdict], reason(headline(stored, exhibit.claims[0]))
        elif gaps:
            kind, why = kinds[3], ", ".join(gaps)
        else:
            continue
        paper, sort, number = exhibit.id.split(" ", 2)
        lists[kind].setdefault((paper, sort, why), []).append(number)
    lines = []
    for kind, ids in lists.items():
        listed = "; ".join(
            f"Paper {paper}, {sort}{'s' * (len(numbers) > 1)} {', '.join(numbers)} ({why})"
            for (paper, sort, why), numbers in ids.items()
        )
        lines.append(f"- **{kind}**: {listed or 'none'}.")
    return Markdown("\n".join(lines))


def _row(exhibit: Exhibit, stored: pd.DataFrame) -> dict[str, Any]:
    """The first claim's badge says its verdict in words; those of the others have its sign."""
    badges = [badge(stored, claim, "verdicts.html") for claim in exhibit.claims]
    badges[1:] = [
        replace(each, text=claim + ", post hoc" * each.text.endswith("post hoc"))
        for each, claim in zip(badges[1:], exhibit.claims[1:], strict=True)
    ]
    evidence, ours = "–", _answer(exhibit, stored)
    if exhibit.claims:  # that of the first effect of the answer
        told = _CLAIM.findall(exhibit.answer) or [(exhibit.claims[0], "", "")]
        evidence = _effect(stored, *told[0])["kind"] + ", not judged" * bool(told[0][2])
        if all(on for _, _, on in told) and not ours.startswith(("Not measured", "Out of reach")):
            badges = []  # which are of the claims' first settings
    return {"exhibit": exhibit, "ours": ours, "badges": badges, "evidence": evidence}


def _answer(exhibit: Exhibit, stored: pd.DataFrame) -> str:
    """Our answer, with the measured effects that it names."""

    def number(name: re.Match[str]) -> str:
        row = _effect(stored, *name.groups())
        if not math.isfinite(row["value"]):
            return NOT_MEASURED
        return measured(row["measure"], row, name[1])

    if not exhibit.page:
        return f"Not re-made: {exhibit.reason}"
    for row in (headline(stored, name) for name in exhibit.claims[:1]):
        if not math.isfinite(row["value"]):
            state = row["verdict"].replace(UNDECIDED, NOT_MEASURED)
            return f"{state.capitalize()}: {reason(row)}."
    text = _CLAIM.sub(number, exhibit.answer)
    return text[:1].upper() + text[1:]


def _effect(
    stored: pd.DataFrame, claim: str, measure: str | None, setting: str | None
) -> pd.Series:
    """The stored effect of a claim, or another measure of its headline, or one of its settings."""
    if measure:
        own = "claim == @claim and measure == @measure and role == 'headline'"
        return stored.query(own).iloc[0]
    if not setting:
        return headline(stored, claim)
    effects = stored[(stored["claim"] == claim) & (stored["limit"] != "")]
    there = effects[effects["setting"] == setting]
    if there.empty:
        names = ", ".join(effects["setting"])
        raise InputError(f"claim {claim} has no setting {setting!r}; there are {names}")
    return there.iloc[0]


def tally_line(stored: pd.DataFrame) -> Html:
    """Display how many claims have which verdict, in a line of badges."""
    badges = tally(stored, "verdicts.html")
    claims, words = stored["claim"].nunique(), ", ".join(map(str, badges))
    return Html(html=render("tally", claims=claims, badges=badges), words=words)


@framed("paper", "quantity", "whose", "low", "high")
def scales(rows: pd.DataFrame) -> Rows:
    """How large the papers' runs are (`data/papers/exhibits.yml`), and ours.

    Parameters
    ----------
    rows
        From `results.load`, of one test set and all domains.

    Returns
    -------
    DataFrame
        ``paper, quantity, whose, low, high``.
    """
    mine = {
        "A": rows[rows["variant"].isna() | (rows["variant"] == "")],
        "B": rows[rows["corpus"] == "software25"],
    }
    columns = {
        "parameters without embeddings": "n_non_embedding",
        "target tokens a run": "target_tokens",
        "chrF++": "chrfpp",
    }
    listed = yaml.safe_load((ROOT / EXHIBITS_FILE).read_text(encoding="utf-8"))["scale"]
    for entry in listed:
        paper, quantity = entry["paper"], entry["quantity"]
        ours = mine[paper][columns[quantity]].dropna()
        if quantity == "chrF++":  # the mean over directions of a run, as the paper's
            ours = mine[paper].dropna(subset="chrfpp").groupby("run_id")["chrfpp"].mean()
        low, high = entry["papers"]
        yield (paper, quantity, "the paper", low, high)
        if not ours.empty:
            yield (paper, quantity, "ours", ours.min(), ours.max())


def times_larger(table: pd.DataFrame, quantity: str) -> str:
    """How many times as much of a quantity of `scales` each paper has at most as we have.

    >>> rows = [("A", "the paper", 8790.0), ("A", "ours", 1.0), ("B", "the paper", 3e6)]
    >>> frame = pd.DataFrame([*rows, ("B", "ours", 2e3)], columns=["paper", "whose", "high"])
    >>> frame = frame.assign(quantity="tokens")
    >>> times_larger(frame, "tokens")
    '8,800 (A) and 1,500 (B)'
    """
    most = table[table["quantity"] == quantity].pivot(index="paper", columns="whose", values="high")
    ratios = most["the paper"] / most["ours"]
    return " and ".join(
        f"{float(f'{times:.2g}'):,.0f} ({paper})" for paper, times in ratios.items()
    )


def judged_sizes(rows: pd.DataFrame) -> str:
    """Parameters of the mixtures behind most verdicts on Paper A.

    >>> rows = {"cohort": "conlang-steady", "p": [1, 0.5, 0.5], "n_non_embedding": [7, 15, 3700]}
    >>> judged_sizes(pd.DataFrame(rows))
    '15 to 3,700'
    """
    return span(rows.query("cohort == 'conlang-steady' and p < 1")["n_non_embedding"])


def scale_chart(table: pd.DataFrame) -> altair.HConcatChart:
    """Ranges of `scales` on log axes, a panel a quantity."""
    table = table.assign(label="Paper " + table["paper"] + ", " + table["whose"])
    look = looks("whose:N", ("ours", "the paper"), None)
    panels = []
    for quantity in table["quantity"].unique():
        mine = table[table["quantity"] == quantity]
        base = altair.Chart(mine).encode(
            y=altair.Y("label:N", title=None, sort=None), color=look["color"]
        )
        scale = altair.Scale(type="log", nice=True)
        if quantity == "chrF++":
            scale = altair.Scale(domain=[0, 100])
        x = altair.X("low:Q", scale=scale, title=quantity)
        x = x.axis(labelExpr=BILLIONS, tickCount=4)
        bar = base.mark_bar(height=8, cornerRadius=4).encode(x=x, x2="high:Q")
        # A range of one value has a bar of no length, but a dot.
        end = base.mark_point(size=70, opacity=1).encode(x="high:Q", shape=look["shape"])
        panels.append((bar + end).properties(width=170, height=22 * len(mine)))
    return altair.hconcat(*panels)
