"""Numbers that Paper B states in words, recomputed from its tables."""

from __future__ import annotations

import pandas as pd

from mnmt_repro.analysis.audit.checks import Relation, check, frame_of, rows_of
from mnmt_repro.analysis.audit.tables import UPGRADES, column_mean, published


def compute_and_recovery() -> pd.DataFrame:
    """Recompute the percentages of compute, by updates, and of the baseline's spBLEU recovered."""
    table = published(1)
    updates = table.drop_duplicates("model").set_index("model")["updates"]
    compute = {new: 100 * updates[new] / updates[old] for new, old in UPGRADES.items()}
    spbleu = table[(table["metric"] == "spbleu") & (table["group"] == "all")]
    one = spbleu.set_index("model")["value"]
    printed = {new: 100 * one[new] / one[old] for new, old in UPGRADES.items()}
    recovered = {
        new: 100 * column_mean(new, "all") / column_mean(old, "all")
        for new, old in UPGRADES.items()
    }
    three = published(3)
    full = three[(three["setting"] == "full recipe") & (three["group"] == "all")]
    at_30k = full.set_index("model")["value"]["Mt25-wide"]
    share = 100 * at_30k / column_mean("M25-wide", "all")
    half = (
        "exactly half by the updates of Table 1; less only for a little less quality: "
        f"at 30k updates Table 3 has {at_30k:.1f}, {share:.1f} % of the baseline"
    )
    rows = [
        check("Table 1, Mt25, % of the baseline's updates", 30, compute["Mt25"]),
        check("Table 1, Mt25-wide, % of the baseline's updates", 50, compute["Mt25-wide"]),
        check("Table 1, Mt25-deep, % of the baseline's updates", 50, compute["Mt25-deep"]),
        check(
            "Abstract, larger model, % of compute saved",
            50,
            100 - compute["Mt25-wide"],
            ">",
            reading=half,
        ),
        check("§1, wider model, % of compute needed", 50, compute["Mt25-wide"], "<", reading=half),
        check("§3, Mt25, % of M25's spBLEU in Table 1", 100, printed["Mt25"], ">"),
        check("§3, Mt25-wide, % of M25-wide's spBLEU in Table 1", 100, printed["Mt25-wide"], ">="),
        check("§3, Mt25-deep, % of M25-deep's spBLEU in Table 1", 98, printed["Mt25-deep"], ">"),
        check("§3, Mt25, % of M25's spBLEU in Table 12", 100, recovered["Mt25"], ">"),
        check(
            "§3, Mt25-wide, % of M25-wide's spBLEU in Table 12", 100, recovered["Mt25-wide"], ">="
        ),
        check("§3, Mt25-deep, % of M25-deep's spBLEU in Table 12", 98, recovered["Mt25-deep"], ">"),
        check(
            "§5.3, 10k updates as % of Mt25-wide's training",
            10,
            100 * 10_000 / updates["Mt25-wide"],
            reading="a tenth of M25-wide's 100k updates is meant; Mt25-wide's training has 50k",
        ),
    ]
    return frame_of(rows)


SAID: dict[tuple[str, str], Relation] = {
    ("no up-sampling", "added"): ">",
    ("no up-sampling", "original"): ">=",
    ("no learning-rate scaling", "original"): ">",
}
"""What §4.1 says of ablations beside that each hurts all directions together: without up-sampling
added languages lose and old ones lose barely or slightly, without scaling old ones lose."""


def ablations() -> pd.DataFrame:
    """Check the full recipe against the ablations of Table 3, wherever §4.1 says which is ahead."""
    table = published(3)
    rows = []
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
            rows.append(
                check(
                    f"Table 3, {model}, {cell.group}: full recipe minus {cell.setting}",
                    0.0,
                    gain,
                    said,
                    reading=f"{'a tie' if gain == 0 else 'the reverse'}, {marked}",
                )
            )
    return frame_of(rows)


def prose() -> pd.DataFrame:
    """Recompute the differences that the text states in numbers, from Tables 3, 5 and 8."""
    three, five, eight = published(3), published(5), published(8)
    scores = {(cell.model, cell.setting, cell.group): cell.value for cell in rows_of(three)}
    loss = {
        (model, setting, group): scores[model, "full recipe", group] - value
        for (model, setting, group), value in scores.items()
    }
    whole = published(1).query("metric == 'spbleu' and group == 'all'")
    one = whole.set_index("model")["value"]
    without = {model: scores[model, "random init all", "all"] for model in UPGRADES}
    losses = {  # which of the two "the baseline" of this sentence is, the paper does not say
        "the full recipe": [loss[model, "random init all", "all"] for model in UPGRADES],
        "the model from scratch": [one[UPGRADES[model]] - without[model] for model in UPGRADES],
    }
    rows = [
        check(
            f"§4.1, {name} loss without M20's weights, against {against}",
            size,
            found(values),
            tolerance=0.6,
        )
        for against, values in losses.items()
        for name, size, found in (("least", 2, min), ("greatest", 6, max))
    ]
    rows += [
        check(
            f"§4.1, loss on added languages without up-sampling, {model}",
            3,
            loss[model, "no up-sampling", "added"],
            tolerance=0.6,
        )
        for model in UPGRADES
    ]
    added = five[five["group"] == "added"]
    base = float(added["value"].iloc[0])  # without up-sampling
    rows += [
        check(
            f"§4.3, gain on added languages, factor {cell.alpha}"
            + ", related languages too" * (cell.related == "yes"),
            3,
            cell.value - base,
            tolerance=0.6,
        )
        for cell in rows_of(added.iloc[1:])
    ]
    out = eight[eight["pair"].str.startswith("eng")]["value"]
    into = eight[~eight["pair"].str.startswith("eng")]["value"]
    rows += [
        check("§5.1, cells out of English above 0, of 12", 6, int((out > 0).sum()), ">"),
        check("§5.1, cells into English above 0, of 12", 6, int((into > 0).sum()), "<"),
    ]
    return frame_of(rows)
