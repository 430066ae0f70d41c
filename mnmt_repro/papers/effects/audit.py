"""The papers' own numbers, added up again: what their tables and text say of one another.

Every function under `checked` recomputes one kind of aggregate. `checks` gives them as a table:

- ``check``, ``where``: the kind; which printed number, and what it is recomputed from;
- ``published``, ``relation``, ``recomputed``: the claim is "recomputed *relation* published";
- ``difference``: published minus recomputed;
- ``tolerance``: what rounding alone can explain: half of the printed number's last digit, and the
  most that the rounding of the numbers it is recomputed from can leave in the result;
- ``agrees``: whether the relation holds, for "=" within the tolerance;
- ``reading``: what would explain a disagreement; empty where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pandas as pd
from scipy import stats

from mnmt_repro.architecture import PAPER_A, parameter_counts
from mnmt_repro.papers.cohorts.languages25 import GROUPINGS, LEVELS, directions, foreign
from mnmt_repro.papers.effects.cells import Rows, framed
from mnmt_repro.papers.effects.published import (
    GROUPS,
    METRIC_NAMES,
    UPGRADES,
    column_mean,
    grouping,
    of_group,
    over_all,
    printed_scores,
    printed_table,
)

Relation = Literal["=", ">", ">=", "<"]
Checks = Callable[[], Rows]
CHECKS: dict[str, Checks] = {}
"""Every kind of check, by its name in the table."""


def checked(kind: str) -> Callable[[Checks], Checks]:
    """List a function that yields checks among the `CHECKS`."""

    def register(function: Checks) -> Checks:
        CHECKS[kind] = function
        return function

    return register


def checks(*kinds: str) -> pd.DataFrame:
    """Every check, or those of some kinds."""
    rows = [{"check": kind} | row for kind in kinds or CHECKS for row in CHECKS[kind]()]
    return pd.DataFrame(rows)


def check(
    where: str,
    printed: Any,
    recomputed: Any,
    relation: Relation = "=",
    *,
    tolerance: float = 0.0,
    reading: str = "",
) -> dict[str, Any]:
    """Compare one printed number, or word, with what it is recomputed to."""
    if isinstance(printed, str):
        difference, agrees = float("nan"), printed == recomputed
    else:
        difference = round(float(printed - recomputed), 9) + 0.0  # no -0.0, no binary dust
        slack = tolerance + 1e-9
        agrees = {
            "=": abs(difference) <= slack,
            ">": difference < -1e-9,
            ">=": difference <= 1e-9,
            "<": difference > 1e-9,
        }[relation]
    return {
        "where": where,
        "published": printed,
        "relation": relation,
        "recomputed": recomputed,
        "difference": difference,
        "tolerance": tolerance,
        "agrees": bool(agrees),
        "reading": "" if agrees else reading,
    }


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Go over a frame's rows as named tuples."""
    return iter(frame.itertuples(index=False))


def half_unit(decimals: int) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -int(decimals)


_OTHER_RUN = (
    "Table 12's Mt25 column is another run or checkpoint than Table 1's: no printed row has its "
    "three means; out of English it loses on the related languages and on no others, so it looks "
    "like a run of the earlier setup of Table 6's caption, which does not up-sample them"
)
_LATER = (
    "Table 12's heading says 30k updates, but the column averages to Table 1's model at 50k: the "
    "heading is wrong"
)
_EARLIER = (
    "Table 8 is at 30k updates, Table 12 at 50k despite its heading: these six added directions "
    "stand lower in Table 8 by 0.88 on average, as the added languages of Table 3 at 30k do"
)


@checked("Table 1 from Table 12")
def table_1_from_table_12() -> Rows:
    """Average Table 12 over all, original and added directions; compare with Table 1's cells."""
    for cell in rows_of(printed_table(1)):
        if cell.model == "M20":  # Table 12 does not have it
            continue
        detail = 0.05 if cell.metric == "spbleu" else 0.5  # chrF++ is printed to 0.01 of 1
        yield check(
            f"Table 1, {cell.model}, {METRIC_NAMES[cell.metric]}, {cell.group}: mean of Table 12",
            cell.value,
            column_mean(cell.model, cell.group, cell.metric),
            tolerance=half_unit(cell.decimals) + detail,
            reading=_OTHER_RUN if cell.model == "Mt25" else "",
        )


@checked("Table 3 from Table 12")
def table_3_from_table_12() -> Rows:
    """Compare Table 12's columns headed 30k with Table 3's full recipe after 30k updates."""
    table = printed_table(3)
    chosen = table[(table["setting"] == "full recipe") & (table["model"] != "Mt25")]
    for cell in rows_of(chosen):
        yield check(
            f"Table 3, {cell.model} at 30k, {cell.group}: mean of Table 12, headed 30k",
            cell.value,
            column_mean(cell.model, cell.group),
            tolerance=0.1,
            reading=_LATER,
        )


@checked("Table 8 from Table 12")
def table_8_from_table_12() -> Rows:
    """Subtract M25-wide from Mt25-wide in Table 12; compare with Table 8's first column.

    Table 8 trains wider models (its section says) for 30k updates. Its other two columns are of
    models whose directions no table prints.
    """
    scores = printed_scores().pivot(index="pair", columns="model", values="spbleu")
    gain = scores["Mt25-wide"] - scores["M25-wide"]
    table = printed_table(8)
    for cell in rows_of(table[table["grouping"] == "Mt25"]):
        yield check(
            f"Table 8, Mt25, {cell.pair}: Mt25-wide minus M25-wide of Table 12",
            cell.value,
            gain[cell.pair],
            tolerance=0.15,  # three numbers, each rounded to 0.1
            reading=_EARLIER,
        )


@checked("means over groups")
def means_over_groups() -> Rows:
    """Recompute every printed mean over all directions from those of its groups.

    Tables 1, 3, 4, 5, 6 and 11 print the 40 original and 10 added directions; of Table 7, which
    prints resource levels, see `levels`.
    """
    for number in (1, 3, 4, 5, 6, 11):
        table = printed_table(number)
        table = table[table["value"].notna() & table["group"].isin(GROUPS)]
        keys = ["metric", "model"] if number == 1 else ["row"]
        for _, cells in table.groupby(keys, sort=False):
            by_group = cells.set_index("group")
            if "added" not in by_group.index:  # M20 knows only the original languages
                continue
            value, half = by_group["value"], by_group["decimals"].map(half_unit)
            yield check(
                f"Table {number}, {_row_name(cells.iloc[0])}, all: of original and added",
                value["all"],
                0.8 * value["original"] + 0.2 * value["added"],
                tolerance=half["all"] + 0.8 * half["original"] + 0.2 * half["added"],
            )


@checked("rows printed twice")
def repeated_rows() -> Rows:
    """Compare the rows of two tables that describe the same model."""
    recipe = "setting == 'full recipe' and model =="
    at_30k = "model == 'Mt25' and metric == 'spbleu'"
    unscaled = "model == 'Mt25' and setting == 'no learning-rate scaling'"
    from_unk, alike = "setting == 'new embeddings from unk'", "gamma_old == 1 and gamma_new == 1"
    same = (
        ((3, "Mt25, full recipe", f"{recipe} 'Mt25'"), (1, "Mt25 at 30k", at_30k)),
        (
            (3, "Mt25, no learning-rate scaling", unscaled),
            (5, "related languages too", "related == 'yes'"),
        ),
        (
            (4, "new embeddings from unk", from_unk),
            (5, "factor 5", "alpha == 5 and related == 'no'"),
        ),
        ((4, "concatenation", "setting == 'concatenation'"), (6, "factors 1 and 1", alike)),
        (
            (3, "Mt25-wide, full recipe", f"{recipe} 'Mt25-wide'"),
            (7, "Mt25", "grouping == 'Mt25'"),
        ),
    )
    for pair in same:
        where = ", and ".join(f"Table {number}, {name}" for number, name, _ in pair)
        left, right = (
            printed_table(number).query(rows).rename(columns={"level": "group"}).set_index("group")
            for number, _, rows in pair
        )
        for group in left.index.intersection(right.index):
            yield check(f"{where}: {group}", left["value"][group], right["value"][group])


@checked("gains over the baseline")
def printed_gains() -> Rows:
    """Compare each upgraded model with its baseline: Table 1's difference and Table 12's.

    A further column, `p`, is that of the paired t-test over Table 12's directions, the test that
    the paper uses in other tables.
    """
    table = printed_table(1)
    spbleu = table[table["metric"] == "spbleu"]
    printed = {(cell.model, cell.group): cell.value for cell in rows_of(spbleu)}
    scores = printed_scores().pivot(index=["pair", "group"], columns="model", values="spbleu")
    for new, old in UPGRADES.items():
        for group in GROUPS:
            chosen = of_group(scores.reset_index(), group)
            gain = chosen[new] - chosen[old]
            row = check(
                f"Table 1, {new} minus {old}, {group}: mean of Table 12",
                printed[new, group] - printed[old, group],
                float(gain.mean()),
                tolerance=0.2,  # two printed means and two columns of details
                reading=_OTHER_RUN,
            )
            yield row | {"p": float(stats.ttest_1samp(gain, 0.0).pvalue)}


def _row_name(cell: pd.Series[Any]) -> str:
    """Describe a row of a table by what sets it apart from the others."""
    if cell["table"] == "1":
        return f"{cell['model']}, {METRIC_NAMES[cell['metric']]}"
    if "setting" in cell:
        return f"{cell['model']}, {cell['setting']}"
    return f"row {cell['row']}"


@checked("resource levels")
def resource_levels() -> Rows:
    """Derive each language's resource level from its sentence pairs, by the rule of Table 9."""
    for row in rows_of(printed_table(9)):
        where = f"Table 9, {row.language}: {int(row.value):,} sentence pairs"
        yield check(where, row.level, resource_level(row.value))


def resource_level(sentence_pairs: float) -> str:
    """Name the resource level of Table 9.

    Examples
    --------
    >>> [resource_level(n) for n in (99_999, 100_000, 1_000_000, 1_000_001, 10_000_001)]
    ['very low', 'low', 'low', 'mid', 'high']
    """
    if sentence_pairs > 10_000_000:
        return "high"
    if sentence_pairs > 1_000_000:
        return "mid"
    return "low" if sentence_pairs >= 100_000 else "very low"


@checked("languages")
def language_facts() -> Rows:
    """Count what the paper says about its languages in Tables 2, 8, 9, 10 and 11."""
    by_name = {name: grouping(name) for name in GROUPINGS}
    base = by_name["Mt25"]
    added = {name: frame[frame["group"] == "added"] for name, frame in by_name.items()}
    old = {name: frame[frame["group"] == "original"] for name, frame in by_name.items()}
    low = ("low", "very low")
    below = int(old["M12t25"]["level"].isin(low).sum())
    new_scripts = len({*added["Mt25-v2"]["script"]} - {*old["Mt25-v2"]["script"]})
    hindi = "Hindi, just above the limit with 1,032,502 pairs, is among the added ones"
    yield check("§3, languages: Table 9", 25, len(base))
    yield check("§3, language families: Table 9", 10, base["family"].nunique())
    yield check("§3, resource levels: Table 9", 4, base["level"].nunique())
    yield check("§3, scripts: Table 9", 4, base["script"].nunique())
    yield check("§3, families of the added languages", 4, added["Mt25"]["family"].nunique())
    yield check("§3, scripts of the added languages", 4, added["Mt25"]["script"].nunique())
    yield check("§3, added languages above low", 0, _above(added["Mt25"]))
    yield check("§5.1, mid languages among those that v1 adds", 1, _above(added["Mt25-v1"]))
    yield check("§5.1, new scripts among those that v2 adds", 0, new_scripts)
    yield check("Table 11, original languages of M12t25 below mid", 0, below)
    above = _above(added["M12t25"])
    yield check("Table 11, added languages of M12t25 above low", 0, above, reading=hindi)
    for name in tuple(GROUPINGS)[:3]:
        kin = old[name]["family"].isin(added[name]["family"]) & old[name]["level"].isin(low)
        related, starred = set(old[name].index[kin]), set(old[name].index[old[name]["upsampled"]])
        missing = sorted(related - starred)
        yield check(
            f"§4.3, related low-resource languages of {name} without the star",
            0,
            len(missing),
            reading=f"not up-sampled, by mistake or choice: {', '.join(missing)}",
        )
        where = f"§4.3, starred languages of {name} that are not related or not low"
        yield check(where, 0, len(starred - related))
    for cell in rows_of(printed_table(8)):
        starred_here = by_name[cell.grouping].loc[foreign(cell.pair), "upsampled"]
        where = f"Table 8, {cell.grouping}, {cell.pair}: up-sampled"
        yield check(where, cell.upsampled, "yes" if starred_here else "no")


def _above(languages: pd.DataFrame) -> int:
    return int(languages["level"].isin(("high", "mid")).sum())


_AT_30K = "Table 7 is at 30k updates, Table 12 at 50k despite its heading"


@checked("Table 7 over its levels")
def table_7_over_levels() -> Rows:
    """Recompute Table 7's means over all languages from its levels, counted in Table 9.

    By Table 9's caption the very low level is a part of the low one.
    """
    printed = _printed()
    within, beside = (_languages(nested=nested) for nested in (True, False))
    apart = (printed.loc[beside.index].mul(beside, axis=0).sum() / beside.sum()).to_numpy()
    reading = (
        f"{_other_levels()}; with the very low level beside the low one and not inside it, the "
        f"means would be {apart.min():.1f} to {apart.max():.1f}"
    )
    for name in GROUPINGS:
        where = f"Table 7, {name}, all: of its levels, by Table 9's counts"
        mean = float((printed[name][within.index] * within).sum() / within.sum())
        yield check(where, float(printed[name]["all"]), mean, tolerance=0.1, reading=reading)


@checked("Table 7 from Table 12")
def table_7_from_table_12() -> Rows:
    """Average Table 12's Mt25-wide over Table 9's levels; compare with Table 7's first column."""
    printed, scores = _printed()["Mt25"], _by_language()
    levels = printed_table(9).set_index("language")["level"]
    for level in LEVELS:
        inside = ("low", "very low") if level == "low" else (level,)
        yield check(
            f"Table 7, Mt25, {level}: mean of Table 12's Mt25-wide",
            float(printed[level]),
            float(scores[levels[scores.index].isin(inside)].mean()),
            tolerance=0.1,
            reading=_AT_30K if level == "very low" else _other_levels(),
        )


@checked("Table 7 from Tables 8 and 12")
def very_low_from_tables_8_and_12() -> Rows:
    """Table 7's very low level from Table 8's differences and Table 12's wide baseline.

    By Table 9 its languages are Belarusian and Nepali, whose four directions are among Table 8's.
    """
    codes = printed_table(9).query("level == 'very low'")["language"]
    baseline = printed_scores().pivot(index="pair", columns="model", values="spbleu")["M25-wide"]
    printed, pairs = _printed(), [*directions(tuple(codes))]
    gains = printed_table(8).pivot(index="pair", columns="grouping", values="value")
    for name in map(str, gains):
        mean = float((baseline + gains[name])[pairs].mean())
        where = f"Table 7, {name}, very low: of Tables 8 and 12"
        value = float(printed[name]["very low"])
        yield check(where, value, mean, tolerance=0.15)  # three numbers, each rounded to 0.1


def _printed() -> pd.DataFrame:
    """Table 7: a row a level, a column a grouping."""
    return printed_table(7).pivot(index="level", columns="grouping", values="value")


def _languages(*, nested: bool) -> pd.Series[int]:
    """How many languages Table 9 has of each level; `nested`, the very low ones among the low."""
    counts = printed_table(9)["level"].value_counts()
    return counts.rename({"very low": "low"}).groupby(level=0).sum() if nested else counts


def _by_language() -> pd.Series[float]:
    """Mean spBLEU of Table 12's Mt25-wide, both directions, by language."""
    table = printed_scores().query("model == 'Mt25-wide'")
    return table.groupby("language")["spbleu"].mean()


def _other_levels() -> str:
    level = printed_scores().query("model == 'Mt25-wide'").groupby("level")["spbleu"].mean()
    return (
        "the levels behind Table 7 are not those of Table 9: Table 12's Mt25-wide has "
        f"{level['high']:.1f} on the high and {level['mid']:.1f} on the mid level, but "
        f"{level['low']:.1f} and {level['very low']:.1f} on the two low ones"
    )


@framed()
def model_sizes() -> Rows:
    """One row a size of Appendix A: its shape, both printed counts, ours, and the differences."""
    for size in PAPER_A:
        shape, counts = size.config, parameter_counts(size.config)
        yield {
            "layers": f"{shape.encoder_layers} + {shape.decoder_layers}",
            "d": shape.d_model,
            "heads": shape.heads,
            "feed-forward": shape.d_ff,
            "total, printed": size.published_total,
            "total, counted": counts["total"],
            "printed − counted": size.published_total - counts["total"],
            "N, printed": size.published_non_embedding,
            "N, counted": counts["non_embedding"],
            "printed − counted N": size.published_non_embedding - counts["non_embedding"],
        }


@checked("parameter counts")
def parameters_paper_a() -> Rows:
    """Compare both counts of each size of Paper A's Appendix A with those of its shape."""
    pieces = PAPER_A[0].config.vocab_size
    for row in model_sizes().to_dict("records"):
        for kind, apart in (("total", "printed − counted"), ("N", "printed − counted N")):
            excess = row[apart] // row["d"]
            name = kind.replace("N", "non embedding")
            yield check(
                f"Paper A, Appendix A, {row['layers']} layers, d {row['d']}: {name}",
                row[f"{kind}, printed"],
                row[f"{kind}, counted"],
                reading=(
                    f"{excess} more rows in the two embedding tables together, "
                    f"{pieces + excess // 2:,} pieces in place of {pieces:,}, would explain it"
                ),
            )


@checked("compute and recovery")
def compute_and_recovery() -> Rows:
    """Check what the text says of compute and recovered quality against Tables 1, 3 and 12."""
    table = printed_table(1)
    updates = table.drop_duplicates("model").set_index("model")["updates"]
    compute = {new: 100 * updates[new] / updates[old] for new, old in UPGRADES.items()}
    one = over_all(1, "metric == 'spbleu'")
    twelve = {model: column_mean(model, "all") for models in UPGRADES.items() for model in models}
    at_30k = over_all(3, "setting == 'full recipe'")["Mt25-wide"]
    share = 100 * at_30k / twelve["M25-wide"]
    half = (
        "exactly half by the updates of Table 1; less only for a little less quality: "
        f"at 30k updates Table 3 has {at_30k:.1f}, {share:.1f} % of the baseline"
    )
    saved, needed = 100 - compute["Mt25-wide"], compute["Mt25-wide"]
    for model, percent in zip(UPGRADES, (30, 50, 50), strict=True):
        yield check(f"Table 1, {model}, % of the baseline's updates", percent, compute[model])
    yield check("Abstract, larger model, % of compute saved", 50, saved, ">", reading=half)
    yield check("§1, wider model, % of compute needed", 50, needed, "<", reading=half)
    said: tuple[tuple[int, Relation], ...] = ((100, ">"), (100, ">="), (98, ">"))
    for number, scores in ((1, one), (12, twelve)):
        for (new, old), (percent, relation) in zip(UPGRADES.items(), said, strict=True):
            recovered = 100 * scores[new] / scores[old]
            where = f"§3, {new}, % of {old}'s spBLEU in Table {number}"
            yield check(where, percent, recovered, relation)
    yield check(
        "§5.3, 10k updates as % of Mt25-wide's training",
        10,
        100 * 10_000 / updates["Mt25-wide"],
        reading="a tenth of M25-wide's 100k updates is meant; Mt25-wide's training has 50k",
    )


SAID: dict[tuple[str, str], Relation] = {
    ("no up-sampling", "added"): ">",
    ("no up-sampling", "original"): ">=",
    ("no learning-rate scaling", "original"): ">",
}
"""What §4.1 says of ablations beside that each hurts all directions together: without up-sampling
added languages lose and old ones lose barely or slightly, without scaling old ones lose."""


@checked("ablations")
def ablations() -> Rows:
    """Check the full recipe against the ablations of Table 3, wherever §4.1 says which is ahead."""
    table = printed_table(3)
    for model in UPGRADES:
        cells = table[table["model"] == model]
        full = cells[cells["setting"] == "full recipe"].set_index("group")["value"]
        for cell in rows_of(cells[cells["setting"] != "full recipe"]):
            said: Relation | None = (
                ">" if cell.group == "all" else SAID.get((cell.setting, cell.group))
            )
            if said is None:
                continue
            gain = round(float(full[cell.group] - cell.value), 2)
            marked = "marked significant" if cell.mark else "not marked significant"
            yield check(
                f"Table 3, {model}, {cell.group}: full recipe minus {cell.setting}",
                0.0,
                gain,
                said,
                reading=f"{'a tie' if gain == 0 else 'the reverse'}, {marked}",
            )


@checked("numbers in the text")
def prose() -> Rows:
    """Recompute the differences that the text states in numbers, from Tables 3, 5 and 8."""
    three, five, eight = printed_table(3), printed_table(5), printed_table(8)
    scores = {(cell.model, cell.setting, cell.group): cell.value for cell in rows_of(three)}
    full = over_all(3, "setting == 'full recipe'")
    one = over_all(1, "metric == 'spbleu'")
    without = over_all(3, "setting == 'random init all'")
    losses = {  # which of the two "the baseline" of this sentence is, the paper does not say
        "the full recipe": [full[model] - without[model] for model in UPGRADES],
        "the model from scratch": [one[UPGRADES[model]] - without[model] for model in UPGRADES],
    }
    for against, values in losses.items():
        for name, size, extreme in (("least", 2, min), ("greatest", 6, max)):
            where = f"§4.1, {name} loss without M20's weights, against {against}"
            yield check(where, size, extreme(values), tolerance=0.6)
    for model in UPGRADES:
        where = f"§4.1, loss on added languages without up-sampling, {model}"
        whole_recipe, plain = (scores[model, s, "added"] for s in ("full recipe", "no up-sampling"))
        yield check(where, 3, whole_recipe - plain, tolerance=0.6)
    added = five[five["group"] == "added"]
    base = float(added["value"].iloc[0])  # without up-sampling
    for cell in rows_of(added.iloc[1:]):
        where = f"§4.3, gain on added languages, factor {cell.alpha}"
        where += ", related languages too" * (cell.related == "yes")
        yield check(where, 3, cell.value - base, tolerance=0.6)
    out = eight["pair"].str.startswith("eng")
    above = [int((eight["value"][side] > 0).sum()) for side in (out, ~out)]
    yield check("§5.1, cells out of English above 0, of 12", 6, above[0], ">")
    yield check("§5.1, cells into English above 0, of 12", 6, above[1], "<")
