"""Numbers that Paper B states in words, recomputed from its tables."""

from __future__ import annotations

from mnmt_repro.papers.effects.audit.checks import Relation, check, checked, rows_of
from mnmt_repro.papers.effects.audit.tables import UPGRADES, column_mean, over_all, printed_table
from mnmt_repro.papers.effects.framed import Rows


@checked
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


@checked
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


@checked
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
        for name, size, found in (("least", 2, min), ("greatest", 6, max)):
            where = f"§4.1, {name} loss without M20's weights, against {against}"
            yield check(where, size, found(values), tolerance=0.6)
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
